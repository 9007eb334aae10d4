"""The figures of the comparison: average bars, critical differences; lines over a swept setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ptad.benchmark.board import make_board
from ptad.benchmark.catalogue import dataset_title
from ptad.benchmark.metrics import TITLES
from ptad.benchmark.results import Results
from ptad.benchmark.statistics import Comparison, compare, compare_values
from ptad.benchmark.store import Row
from ptad.benchmark.summary import Summary, summarise
from ptad.errors import MissingExtraError

_OURS = "#b5482a"
_OTHERS = "#5b7c99"
_INK = "#222222"
#: Experiments that sweep one number: (experiment, start of the variant's name) -> label of the axis.
SWEEPS = {
    ("counts", "K = "): "Basis vectors (K)",
    ("counts", "M = "): "Prototypes (M)",
    ("weights", "orthogonality "): "Orthogonality weight",
    ("weights", "kappa = alpha = "): "Score weights (kappa = alpha)",
}


def draw_all(results: Path, directory: Path) -> list[Path]:
    """Draw the pictures of the documentation from a folder of results; return the files."""
    found = Results(results)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in _named_figures(found.rows("paper")):
        written.append(directory / f"{name}.png")
        _save(figure, written[-1])
    image = directory / "macro_critical_difference.png"
    return [*written, image] if save_critical_difference(found.rows("macro"), "macro", image) else written


def _named_figures(rows: Sequence[Row]) -> Iterator[tuple[str, Any]]:
    """File names and figures of the paper's tables, drawn one at a time."""
    main = [row for row in rows if row["experiment"] == "main"]
    for metric in ("auc_pr", "auc_roc"):
        summary = summarise(main, metric)
        result = compare(summary)
        yield f"{metric}_average", average_figure(summary, result)
        yield f"{metric}_critical_difference", critical_difference_figure(result, metric)
    for (experiment, prefix), label in SWEEPS.items():
        swept = [row for row in rows if row["experiment"] == experiment and str(row["variant"]).startswith(prefix)]
        if swept:
            yield f"{experiment}_{label.split()[0].lower()}", sweep_figure(swept, prefix, label)


def save_critical_difference(rows: Sequence[Row], collection: str, path: Path) -> bool:
    """Draw the critical differences of a leaderboard into a file; too few methods or tables have none."""
    board = make_board(rows, collection)
    if len(board.methods) < 2 or len(board.datasets) < 6:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    result = compare_values(board.methods, board.datasets, board.values["auc_pr"])
    _save(critical_difference_figure(result, "auc_pr"), path)
    return True


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})
    _pyplot().close(figure)


def sweep_figure(rows: Sequence[Row], prefix: str, label: str) -> Any:
    """AUC-PR and AUC-ROC of every table over the swept setting, at equal steps: the values grow in multiples."""
    figure, axes = _pyplot().subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axis, metric in zip(axes, ("auc_pr", "auc_roc"), strict=True):
        summary = summarise(rows, metric)
        values = sorted(summary.methods, key=lambda name: float(name.removeprefix(prefix)))
        for dataset in summary.datasets:
            heights = [summary.value(value, dataset) for value in values]
            axis.plot(range(len(values)), heights, marker="o", ms=4, label=dataset_title(dataset))
        axis.set_xticks(range(len(values)), [v.removeprefix(prefix) for v in values], fontsize=8)
        axis.set_xlabel(label, fontsize=9)
        axis.set_ylabel(TITLES[metric], fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
    return figure


def average_figure(summary: Summary, result: Comparison) -> Any:
    """Bars of the average over the tables that all methods share, best first."""
    means = np.array([np.mean([summary.value(m, d) for d in result.datasets]) for m in result.methods])
    order = np.argsort(-means, kind="stable")
    names, values = [result.methods[i] for i in order], means[order]
    title = f"Average {TITLES[summary.metric]} over {len(result.datasets)} tables"
    low = max(0.0, float(np.floor(values.min() * 10 - 1) / 10))
    return _bars(names, values, title, TITLES[summary.metric], low, "{:.3f}")


def critical_difference_figure(result: Comparison, metric: str) -> Any:
    """Mean ranks on a line; bars join methods that Holm-corrected Wilcoxon tests do not tell apart."""
    try:
        import pandas
        import scikit_posthocs
    except ImportError as error:
        raise MissingExtraError("scikit-posthocs", "bench", "The critical-difference diagram") from error
    figure, axes = _pyplot().subplots(figsize=(9, 1.2 + 0.2 * len(result.methods)))
    names = result.methods
    scikit_posthocs.critical_difference_diagram(
        pandas.Series(result.ranks, index=names),
        pandas.DataFrame(result.p_values, index=names, columns=names),
        ax=axes,
        label_fmt_left="{label} ({rank:.2f}) ",
        label_fmt_right=" {label} ({rank:.2f})",
        color_palette={name: _colour(name) for name in names},
        # A group need not be contiguous: a bar may pass methods that do differ. Dots say who belongs to it.
        crossbar_props={"marker": "o", "markersize": 5, "linewidth": 1.5, "color": _INK},
    )
    axes.set_title(
        f"Mean ranks by {TITLES[metric]}, {len(result.datasets)} tables; dots on one bar: p ≥ 0.05", fontsize=10
    )
    return figure


def _bars(names: Sequence[str], values: Any, title: str, label: str, low: float, number: str) -> Any:
    figure, axes = _pyplot().subplots(figsize=(7, 0.8 + 0.28 * len(names)))
    positions = np.arange(len(names))[::-1]
    axes.barh(positions, np.asarray(values) - low, left=low, color=[_colour(name) for name in names], height=0.72)
    for position, value in zip(positions, values, strict=True):
        axes.annotate(
            number.format(value), (value, position), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8
        )
    axes.set_yticks(positions, names, fontsize=9)
    axes.set_xlabel(label if low == 0.0 else f"{label} (axis starts at {low:g})", fontsize=9)
    axes.set_title(title, fontsize=10, loc="left")
    axes.margins(x=0.12)
    axes.set_xlim(left=low)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_INK)
    return figure


def _colour(name: str) -> str:
    return _OURS if name.startswith("ptad") else _OTHERS


def _pyplot() -> Any:
    try:
        import matplotlib

        matplotlib.use("Agg")  # files only: no window, no display needed
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing figures") from error
    return pyplot
