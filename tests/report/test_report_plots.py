"""The matplotlib figures: what they draw is what the estimator says."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ptad import DataError, MissingExtraError, SettingError
from ptad.report import plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


def drawn(display) -> None:
    """Every display can be rendered, and its names are those of scikit-learn."""
    assert display.figure_ is np.ravel(display.ax_)[0].figure
    display.figure_.canvas.draw()


def test_score_histogram_counts_and_colours_at_the_threshold(model, table):
    display = plot.ScoreHistogramDisplay.from_estimator(model, table)
    drawn(display)
    bars = display.ax_.patches
    strange = int((model.predict(table) < 0).sum())
    assert sum(bar.get_height() for bar in bars) == len(table)
    assert display.threshold == -model.offset_
    red = [bar for bar in bars if bar.get_facecolor() == matplotlib.colors.to_rgba("#c8452f")]
    assert sum(bar.get_height() for bar in red) == strange
    assert all(bar.get_x() >= display.threshold * (1 - 1e-9) for bar in red if bar.get_height())


def test_score_histogram_takes_labels_and_axes(model, table):
    _, ax = matplotlib.pyplot.subplots()
    y = np.arange(len(table)) < 10
    display = plot.ScoreHistogramDisplay.from_estimator(model, table, y, ax=ax)
    assert display.ax_ is ax
    assert "known anomalies: 10 rows" in [t.get_text() for t in ax.get_legend().get_texts()]
    with pytest.raises(DataError, match="3 values for 120 rows"):
        plot.ScoreHistogramDisplay.from_estimator(model, table, [True, False, True])


def test_cell_heatmap_is_reddest_where_the_cell_was_planted(model, table):
    display = plot.CellHeatmapDisplay.from_estimator(model, table, top=5)
    drawn(display)
    scores = model.anomaly_score(table)
    assert display.rows == [str(i) for i in np.argsort(-scores)[:5]]
    image = np.asarray(display.image_.get_array())
    assert image.shape == (5, len(display.columns))
    row = display.rows.index("7")
    assert display.columns[int(np.argmax(display.contributions[row]))] == "length"
    assert image[row].max() == image.max() <= 1.0


def test_masks_of_chosen_and_of_matched_rows(model, table):
    explanation = model.explain(table)
    display = plot.MaskDisplay.from_estimator(model, table, normal=0, strange=7)
    drawn(display)
    np.testing.assert_allclose(display.masking_rate[1], explanation.masking_rate.iloc[7])
    np.testing.assert_allclose([b.get_height() for b in display.ax_[1, 0].patches], explanation.data_mask.iloc[0])
    matched = plot.MaskDisplay.from_estimator(model, table)
    assert matched.rows[1].endswith(str(int(np.argmax(explanation.score))))
    number = int(matched.rows[0].split()[-1])
    assert explanation.score[number] <= np.median(explanation.score)
    with pytest.raises(DataError, match="no row 500"):
        plot.MaskDisplay.from_estimator(model, table, normal=500)
    with pytest.raises(SettingError, match="2 x 2"):
        matched.plot(ax=matplotlib.pyplot.subplots(1, 2)[1])


def test_prototypes_and_basis_vectors(model):
    display = plot.PrototypeDisplay.from_estimator(model)
    drawn(display)
    network = model.scorer_.network
    assert display.basis_vectors.shape == (network.config.n_basis_vectors, model.schema_.n_encoded)
    decoded = network.backbone.decode(network.projection.basis_vectors[:, None], None)[0]
    np.testing.assert_allclose(display.basis_vectors, decoded[0, 0].abs().numpy())
    np.testing.assert_array_equal(display.prototypes, network.prototypes.prototypes[0].numpy())


def test_basis_vectors_made_of_cells_are_drawn_by_their_length(make_detector, rows):
    model = make_detector("paper").fit(rows)
    display = plot.PrototypeDisplay.from_estimator(model)
    total = model.scorer_.network.projection.basis_vectors[0].norm(dim=1).numpy()
    np.testing.assert_allclose(np.linalg.norm(display.basis_vectors, axis=1), total, rtol=1e-6)


def test_history_draws_every_part_that_was_trained(model):
    display = plot.HistoryDisplay.from_estimator(model)
    drawn(display)
    lines = {line.get_label(): line for line in display.ax_.get_lines()}
    assert {"total", "reconstruction", "basis", "prototype"} <= set(lines)
    first = [entry["total"] for entry in model.history_ if entry["member"] == 0]
    np.testing.assert_allclose(lines["total"].get_ydata(), first)


def test_projection_shows_all_rows_and_basis_vectors(model, table):
    display = plot.ProjectionDisplay.from_estimator(model, table)
    drawn(display)
    assert display.rows.shape == (120, 2)
    assert display.basis_vectors.shape == (model.scorer_.network.config.n_basis_vectors, 2)
    np.testing.assert_array_equal(display.strange, model.predict(table) < 0)
    np.testing.assert_allclose(display.reference.mean(axis=0), 0.0, atol=1e-4)
    assert display.explained[0] >= display.explained[1]


def test_missing_matplotlib_is_named(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"ptad\[plot\]"):
        plot.HistoryDisplay.from_estimator(model)
