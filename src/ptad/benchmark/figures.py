"""The figures of the comparison: critical differences, and lines over a swept setting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptad.benchmark.collections import dataset_title
from ptad.benchmark.metrics import TITLES, compare_methods
from ptad.benchmark.results import ResultsFolder, Row
from ptad.benchmark.summary import METRICS, Board, Summary, make_board
from ptad.errors import needs_extra

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
    folder = ResultsFolder(results)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for collection, metric in (("paper", "auc_pr"), ("paper", "auc_roc"), ("macro", "auc_pr"), ("keel", "auc_pr")):
        name = f"{metric if collection == 'paper' else collection}_critical_difference.png"
        if save_critical_difference(folder.rows(collection), collection, directory / name, metric):
            written.append(directory / name)
    for (experiment, prefix), label in SWEEPS.items():
        swept = [row for row in folder.experiment("paper", experiment) if str(row["variant"]).startswith(prefix)]
        if swept:
            written.append(directory / f"{experiment}_{label.split()[0].lower()}.png")
            save(sweep_figure(swept, prefix, label), written[-1])
    return written


def save_critical_difference(rows: Sequence[Row], collection: str, path: Path, metric: str = "auc_pr") -> bool:
    """Draw the critical-difference diagram of a leaderboard; return False if it has too few methods or tables."""
    board = make_board(rows, collection)
    if len(board.methods) < 2 or len(board.datasets) < 6:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    save(critical_difference_figure(board, metric), path)
    return True


def save(figure: Any, path: Path) -> None:
    """Write a figure, with the same bytes every time, and close it."""
    figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})
    pyplot_for_files().close(figure)


def sweep_figure(rows: Sequence[Row], prefix: str, label: str) -> Any:
    """Plot AUC-PR and AUC-ROC of every table over a swept setting, whose values are equally spaced on the axis."""
    summary = Summary(rows)
    names = sorted(summary.methods, key=lambda name: float(name.removeprefix(prefix)))
    figure, axes = pyplot_for_files().subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axis, metric in zip(axes, METRICS, strict=True):
        for dataset, heights in summary.values(metric)[names].iterrows():
            axis.plot(range(len(names)), heights, marker="o", ms=4, label=dataset_title(dataset))
        axis.set_xticks(range(len(names)), [name.removeprefix(prefix) for name in names], fontsize=8)
        axis.set_xlabel(label, fontsize=9)
        axis.set_ylabel(TITLES[metric], fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
    return figure


def critical_difference_figure(board: Board, metric: str) -> Any:
    """Plot mean ranks; bars join methods without a significant difference (Wilcoxon tests, Holm-corrected)."""
    ranks, p_values = compare_methods(board.methods, board.values[metric])
    import scikit_posthocs

    figure, axes = pyplot_for_files().subplots(figsize=(9, 1.2 + 0.2 * len(ranks)))
    # Numbers instead of names: sets of text have another order in every process, and the lines would change with it.
    methods, names = list(ranks.index), range(len(ranks))
    scikit_posthocs.critical_difference_diagram(
        ranks.set_axis(names),
        p_values.set_axis(names, axis=0).set_axis(names, axis=1),
        ax=axes,
        label_fmt_left="{label} ({rank:.2f}) ",
        label_fmt_right=" {label} ({rank:.2f})",
        color_palette={place: _OURS if name.startswith("ptad") else _OTHERS for place, name in enumerate(methods)},
        # Members of a bar have dots: it may also pass methods that differ from them.
        crossbar_props={"marker": "o", "markersize": 5, "linewidth": 1.5, "color": _INK},
    )
    for text in axes.texts:
        text.set_text(re.sub(r"\d+", lambda number: methods[int(number[0])], text.get_text(), count=1))
    axes.set_title(
        f"Mean ranks by {TITLES[metric]}, {len(board.datasets)} tables; dots on one bar: p ≥ 0.05", fontsize=10
    )
    return figure


def pyplot_for_files() -> Any:
    """Return matplotlib's pyplot with a backend that only writes files."""
    with needs_extra("plot", "Drawing figures", "matplotlib"):
        import matplotlib

        matplotlib.use("Agg")  # no window, no display needed
        from matplotlib import pyplot
    return pyplot
