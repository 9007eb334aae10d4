"""The matplotlib figures: what they draw is what the estimator says."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ptad import DataError, MissingExtraError, SettingError
from ptad.report import plot
from ptad.report.plot.canvas import network_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pytest.importorskip("matplotlib.pyplot")


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
    flagged = int((model.predict(table) < 0).sum())
    assert sum(bar.get_height() for bar in bars) == len(table)
    assert display.threshold == -model.offset_
    red = [bar for bar in bars if bar.get_facecolor() == matplotlib.colors.to_rgba("#c8452f")]
    assert sum(bar.get_height() for bar in red) == flagged
    assert all(bar.get_x() >= display.threshold - 1e-9 for bar in red if bar.get_height())
    ticks = display.ax_.get_xticks()
    assert 3 <= len(ticks) <= 12 and (np.diff(ticks) > 0).all()


def test_score_histogram_takes_labels_and_axes(model, table):
    _, ax = matplotlib.pyplot.subplots()
    y = np.arange(len(table)) < 10
    display = plot.ScoreHistogramDisplay.from_estimator(model, table, y, ax=ax)
    assert display.ax_ is ax
    assert "known anomalies: 10 rows" in [t.get_text() for t in ax.get_legend().get_texts()]
    with pytest.raises(DataError, match="3 labels for 120 rows"):
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


def test_masks_of_chosen_and_of_matched_rows(paper_model, table):
    scores = paper_model.anomaly_score(table)
    cells = network_of(paper_model, "a figure").cells(paper_model.schema_.encode(table))
    display = plot.MaskDisplay.from_estimator(paper_model, table, normal=0, anomaly=7)
    drawn(display)
    np.testing.assert_allclose(display.masking_rate[1], cells.masking_rate[7])
    np.testing.assert_allclose([b.get_height() for b in display.ax_[1, 0].patches], cells.data_mask[0])
    matched = plot.MaskDisplay.from_estimator(paper_model, table)
    assert matched.rows[1].endswith(str(int(np.argmax(scores))))
    number = int(matched.rows[0].split()[-1])
    assert scores[number] <= np.median(scores)
    with pytest.raises(DataError, match="no row 500"):
        plot.MaskDisplay.from_estimator(paper_model, table, normal=500)
    with pytest.raises(SettingError, match="2 x 2"):
        matched.plot(ax=matplotlib.pyplot.subplots(1, 2)[1])


def test_prototypes_and_basis_vectors(paper_model):
    display = plot.PrototypeDisplay.from_estimator(paper_model)
    drawn(display)
    term = network_of(paper_model, "a figure")
    np.testing.assert_array_equal(display.basis_vectors, term.basis_strength)
    np.testing.assert_array_equal(display.prototypes, term.prototypes)
    assert len(display.columns) == display.prototypes.shape[1]
    assert {"city=Bonn", "city=unseen", "length"} <= set(display.columns)


def test_history_draws_every_part_that_was_trained(paper_model):
    display = plot.HistoryDisplay.from_estimator(paper_model)
    drawn(display)
    lines = {line.get_label(): line for line in display.ax_.get_lines()}
    assert {"total", "reconstruction", "basis", "prototype"} <= set(lines)
    np.testing.assert_allclose(lines["total"].get_ydata(), [entry["total"] for entry in paper_model.history_])


def test_projection_shows_all_rows_and_basis_vectors(paper_model, table):
    display = plot.ProjectionDisplay.from_estimator(paper_model, table)
    drawn(display)
    assert display.rows.shape == (120, 2)
    term = network_of(paper_model, "a figure")
    assert display.basis_vectors.shape == (len(term.basis_vectors), 2)
    np.testing.assert_array_equal(display.anomalous, paper_model.predict(table) < 0)
    np.testing.assert_allclose(display.reference.mean(axis=0), 0.0, atol=1e-4)
    assert display.explained[0] >= display.explained[1]


def test_figures_of_the_network_say_that_they_are_for_the_paper_preset(model, table):
    for draw in (
        lambda: plot.MaskDisplay.from_estimator(model, table),
        lambda: plot.PrototypeDisplay.from_estimator(model),
        lambda: plot.ProjectionDisplay.from_estimator(model, table),
        lambda: plot.HistoryDisplay.from_estimator(model),
    ):
        with pytest.raises(SettingError, match=r"preset='paper'"):
            draw()


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"ptad\[plot\]"):
        plot.ScoreHistogramDisplay(scores=[1.0, 2.0]).plot()
