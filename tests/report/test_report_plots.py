"""The matplotlib figures: what they draw is what the estimator says."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from ptad import PTAD, DataError, MissingExtraError, Model, SettingError
from ptad.report.plot.network import network_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


def drawn(axes):
    """Every figure can be rendered."""
    np.ravel(axes)[0].figure.canvas.draw()
    return axes


def names_of(axis) -> list[str]:
    return [text.get_text() for text in axis.get_ticklabels()]


def test_score_histogram_counts_and_colours_at_the_threshold(model, table):
    ax = drawn(model.plot.scores(table))
    bars = ax.patches
    flagged = int((model.predict(table) < 0).sum())
    assert sum(bar.get_height() for bar in bars) == len(table)
    threshold = ax.get_lines()[0].get_xdata()[0]
    assert threshold == -model.offset_
    red = [bar for bar in bars if bar.get_facecolor() == matplotlib.colors.to_rgba("#c8452f")]
    assert sum(bar.get_height() for bar in red) == flagged
    assert all(bar.get_x() >= threshold - 1e-9 for bar in red if bar.get_height())
    ticks = ax.get_xticks()
    assert 3 <= len(ticks) <= 12 and (np.diff(ticks) > 0).all()


def test_score_histogram_takes_labels_and_axes(model, table):
    _, ax = matplotlib.pyplot.subplots()
    y = np.arange(len(table)) < 10
    assert model.plot.scores(table, y, ax=ax) is ax
    assert "known anomalies: 10 rows" in [t.get_text() for t in ax.get_legend().get_texts()]
    with pytest.raises(DataError, match="3 labels for 120 rows"):
        model.plot.scores(table, [True, False, True])


def test_cell_heatmap_is_reddest_where_the_cell_was_planted(model, table):
    ax = drawn(model.plot.cells(table, top=5))
    scores = model.anomaly_score(table)
    rows, columns = names_of(ax.yaxis), names_of(ax.xaxis)
    assert rows == [str(i) for i in np.argsort(-scores)[:5]]
    image = np.asarray(ax.images[0].get_array())
    assert image.shape == (5, len(columns))
    row = rows.index("7")
    assert columns[int(np.argmax(image[row]))] == "length" and image[row].max() == image.max() <= 1.0


def heights(ax) -> list[float]:
    return [bar.get_height() for bar in ax.patches]


def test_masks_of_chosen_and_of_matched_rows(paper_model, table):
    scores = paper_model.anomaly_score(table)
    hidden, soft = network_of(paper_model, "a figure").masks(paper_model.schema_.encode(table))
    axes = drawn(paper_model.plot.masks(table, normal=0, anomaly=7))
    np.testing.assert_allclose(heights(axes[0, 1]), hidden[7])
    np.testing.assert_allclose(heights(axes[1, 0]), soft[0])
    normal, anomaly = (ax.get_title().splitlines()[0] for ax in paper_model.plot.masks(table)[0])
    assert anomaly == f"anomalous row {int(np.argmax(scores))}"
    assert scores[int(normal.split()[-1])] <= np.median(scores)
    with pytest.raises(DataError, match="no row 500"):
        paper_model.plot.masks(table, normal=500)
    with pytest.raises(SettingError, match="2 x 2"):
        paper_model.plot.masks(table, ax=matplotlib.pyplot.subplots(1, 2)[1])


def test_prototypes_and_basis_vectors(paper_model):
    axes = drawn(paper_model.plot.prototypes())
    term = network_of(paper_model, "a figure")
    basis_vectors, prototypes = (np.asarray(ax.images[0].get_array()) for ax in axes[:, 0])
    np.testing.assert_array_equal(basis_vectors, term.basis_strength)
    np.testing.assert_array_equal(prototypes, term.prototypes)
    columns = names_of(axes[-1, 0].xaxis)
    assert len(columns) == prototypes.shape[1] and {"city=Bonn", "city=unseen", "length"} <= set(columns)


def test_history_draws_every_part_that_was_trained(paper_model):
    lines = {line.get_label(): line for line in drawn(paper_model.plot.history()).get_lines()}
    assert {"total", "reconstruction", "basis", "prototype"} <= set(lines)
    np.testing.assert_allclose(lines["total"].get_ydata(), [entry["total"] for entry in paper_model.history_])


def test_projection_shows_all_rows_and_basis_vectors(paper_model, table):
    ax = drawn(paper_model.plot.projection(table))
    reference, normal, anomalous, vectors = (points.get_offsets() for points in ax.collections)
    flagged = int((paper_model.predict(table) < 0).sum())
    assert (len(normal), len(anomalous)) == (120 - flagged, flagged)
    assert len(vectors) == len(network_of(paper_model, "a figure").basis_vectors)
    np.testing.assert_allclose(reference.mean(axis=0), 0.0, atol=1e-4)
    assert np.var(reference[:, 0]) >= np.var(reference[:, 1])


def test_figures_of_the_network_say_that_they_are_for_the_paper_preset(model, table):
    for draw in (
        lambda: model.plot.masks(table),
        lambda: model.plot.prototypes(),
        lambda: model.plot.projection(table),
        lambda: model.plot.history(),
    ):
        with pytest.raises(SettingError, match=r"preset='paper'"):
            draw()


def texts_of(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


def test_figures_are_methods_of_the_model_and_return_the_axes(model, model_folder, table):
    light = Model.load(model_folder, device="cpu")
    for held in (model, light):
        scores, cells = held.plot.scores(table), held.plot.cells(table, top=5)
        assert isinstance(scores, matplotlib.axes.Axes) and scores.get_xlabel().startswith("anomaly score")
        assert isinstance(cells, matplotlib.axes.Axes) and len(cells.get_yticks()) == 5
        _, ax = matplotlib.pyplot.subplots()
        assert held.plot.scores(table, labels=np.arange(len(table)) < 10, ax=ax) is ax
        assert held.plot.cells(table, n_columns=2, ax=matplotlib.pyplot.subplots()[1]).get_xticks().size == 2
    with pytest.raises(NotFittedError):
        PTAD().plot.scores(table)


def test_figures_of_the_paper_preset_are_methods_too(paper_model, table, tmp_path):
    paper_model.save(tmp_path / "model")
    for held in (paper_model, Model.load(tmp_path / "model", device="cpu")):
        _, ax = matplotlib.pyplot.subplots()
        assert held.plot.history(ax=ax) is ax
        assert held.plot.masks(table, normal=0, anomaly=7).shape == (2, 2)
        assert held.plot.prototypes().shape == (2, 1)
        drawn_on = held.plot.projection(table)
        expected = int((paper_model.predict(table) < 0).sum())
        assert f"anomalous: {expected} row" in " ".join(texts_of(drawn_on.figure))


@pytest.mark.parametrize("labels", [["a"] * 120, [-1, 1] * 60, [np.nan] * 120])
def test_labels_that_may_mean_something_else_are_refused(model, table, labels):
    with pytest.raises(DataError, match="A label must be 1 or true for an anomaly"):
        model.plot.scores(table, labels)


def test_labels_of_every_library(model, table):
    wanted = np.arange(120) < 10
    for labels in (wanted, wanted.astype(int), wanted.tolist(), pd.Series(wanted), wanted.astype(float)):
        assert "known anomalies: 10 rows" in texts_of(model.plot.scores(table, labels).figure)


def test_one_row_is_no_rows(model, table):
    labels = np.arange(120) == 3
    assert "known anomalies: 1 row" in texts_of(model.plot.scores(table, labels).figure)


def test_few_rows_have_few_bins(model, table):
    assert len(model.plot.scores(table[:30]).patches) <= 2 * 12


def test_contributions_of_a_row(model, table):
    explanation = model.explain(table)
    ax = explanation.plot(row=7, n=3)
    assert isinstance(ax, matplotlib.axes.Axes)
    lengths = sorted((bar.get_width() for bar in ax.patches), reverse=True)
    np.testing.assert_allclose(lengths, np.sort(explanation.contribution_values[7])[::-1][:3])
    texts = texts_of(ax.figure)
    assert any(text.startswith("length\n90, expected ") for text in texts) and "unusual value" in texts
    assert any(text.startswith("Row 7: anomaly score ") for text in texts)
    assert any("3 more not shown" in text for text in texts)
    _, given = matplotlib.pyplot.subplots()
    assert explanation.plot(-1, ax=given) is given
    given.figure.canvas.draw()
    with pytest.raises(DataError, match="There is no row 500"):
        explanation.plot(500)
    with pytest.raises(SettingError, match="'n' must be at least 1"):
        explanation.plot(0, n=0)


def test_no_text_of_a_figure_is_clipped(rows_of, paper_model, table):
    """Long names and long cells stay inside the figure."""
    wide = table.rename(columns={"length": "a column whose name is much longer than anyone would like"})
    long = PTAD(verbose=0).fit(rows_of(240, 0).set_axis(wide.columns, axis=1))
    wide["note"] = "a text that goes on and on, costs 5$ to 6$, and has more words than there is room for"
    figures = [long.explain(wide).plot(7).figure, long.plot.cells(wide).figure, long.plot.scores(wide).figure]
    figures += [paper_model.plot.masks(table)[0, 0].figure, paper_model.plot.history().figure]
    for figure in figures:
        figure.canvas.draw()
        inside = figure.bbox.padded(2.0)
        for text in figure.findobj(matplotlib.text.Text):
            if text.get_text() and text.get_visible() and text.axes is not None:
                box = text.get_window_extent()
                assert inside.contains(box.x0, box.y0) and inside.contains(box.x1, box.y1), text.get_text()


def test_missing_matplotlib_is_named(monkeypatch, model, table):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (lambda: model.plot.scores(table), lambda: model.explain(table[:1]).plot()):
        with pytest.raises(MissingExtraError, match=r"ptad\[plot\]") as caught:
            draw()
        assert "\n" not in str(caught.value)
