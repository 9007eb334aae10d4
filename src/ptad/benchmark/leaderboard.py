"""The leaderboard of a collection: a page made from its results alone."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from ptad.benchmark.collections import COLLECTIONS, Collection, fixed_sample, group_of
from ptad.benchmark.encoding import OWN, SCALINGS
from ptad.benchmark.markdown import Table, emphasise, to_markdown
from ptad.benchmark.metrics import RATES, TITLES, bootstrap_interval, elo_ratings, mean_ranks, win_rates, wins
from ptad.benchmark.peers import DEEP_PEERS
from ptad.benchmark.results import ALARM_COLUMNS, MEASURED, Row
from ptad.benchmark.summary import METRICS, Board, experiment_rows, grouped, make_board, scaling_means
from ptad.benchmark.tables import coverage_table

#: The first neighbour in clipped min-max columns, which every method is compared with.
BASELINE = "nn1-clip1"
#: Number of tables of a large collection that the deep methods are measured on.
SAMPLE = 100
#: Classes of tables: title, column of the results, upper bounds of the classes, format of a bound.
TABLE_CLASSES: tuple[tuple[str, str, tuple[float, ...], str], ...] = (
    ("columns", "n_features", (4, 8, 16), ".0f"),
    ("training rows", "n_train", (1_000, 2_999, 10_000), ",.0f"),
    ("share of anomalies", "prevalence", (0.05, 0.1, 0.2), ".0%"),
)


def leaderboard_page(rows: Sequence[Row], collection: str, image: str = "") -> str:
    """Return the page as Markdown; ``image`` is the path of its critical-difference diagram."""
    board, main = make_board(rows, collection), experiment_rows(rows, "main")
    means, *gains = board_tables(board)
    parts = [
        f"# Leaderboard of the collection `{collection}`",
        f"Generated from the results: no figure is typed by hand. {len(board.datasets)} tables that all of "
        f"{len(board.methods)} methods were measured on. A method without a scaling of its own counts under the "
        "better of two, one for all tables. A table on which a method failed counts as chance for it. Intervals: 95 %, "
        "tables drawn with replacement. Elo: a Bradley-Terry model of all pairs of methods on all tables, by AUC-PR; "
        "the win rate is the share of tables and other methods that a method beats." + _removed_terms(collection),
        to_markdown(means),
        *([f"![Mean ranks by AUC-PR; joined methods are not told apart]({image})"] if image else []),
        to_markdown(*gains, *class_tables(board, main)),
    ]
    if sample := rows_of_sample(main):
        few = make_board(sample, collection)
        parts += [
            f"## Deep methods: a fixed sample of {SAMPLE} tables",
            f"Drawn from the sorted names with seed 0 (`--sample {SAMPLE}`): no result had a say. All methods on "
            f"the {len(few.datasets)} of these tables that all {len(few.methods)} were measured on. "
            f"{_scalings_of_sample(sample)} Trainings that met the ceiling of steps are counted as capped in the "
            "coverage.",
            to_markdown(*board_tables(few)),
            "## Thresholds, scalings, cost, coverage",
        ]
    tables = [alarm_table(main, collection), scaling_table(main), cost_table(main), coverage_table(main)]
    parts.append(to_markdown(*(table for table in tables if table.rows)))
    return "\n\n".join(parts) + "\n"


def _removed_terms(collection: str) -> str:
    """Return a sentence for each method that is measured without terms trained on these tables."""
    settings = COLLECTIONS.get(collection, Collection).settings
    return "".join(
        f" `{method}` does without {', '.join(f'`{name}`' for name in chosen['without'])}, a term that was trained on "
        "these tables."
        for method, chosen in settings.items()
    )


def rows_of_sample(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the fixed sample; none if no deep method was measured, or there are no more tables."""
    names = {str(row["dataset"]) for row in rows}
    sample = set(fixed_sample(sorted(names), SAMPLE))
    deep = {row["variant"] for row in rows} & set(DEEP_PEERS)
    return [row for row in rows if row["dataset"] in sample] if deep and len(names) > SAMPLE else []


def _scalings_of_sample(rows: Sequence[Row]) -> str:
    deep = {(row["variant"], row["scaling"]) for row in rows if row["variant"] in DEEP_PEERS}
    if len(deep) > len({variant for variant, _ in deep}):
        return "A method without a scaling of its own counts under the one that is better on the sample."
    return "Deep methods were run under one scaling each; the others count under the better of two."


def board_tables(board: Board) -> list[Table]:
    """Return the means of all methods, and their gains over the baseline if it was measured."""
    return [means_table(board), *([baseline_table(board)] if BASELINE in board.methods else [])]


def means_table(board: Board, title: str = "Means over tables") -> Table:
    """Return Elo, mean rank and win rate by AUC-PR; mean AUC-PR and AUC-ROC of every group."""
    columns: dict[str, Sequence[str]] = {
        "Method": board.methods,
        "Scaling": [board.scaling[method] for method in board.methods],
    }
    values = board.values["auc_pr"]
    if len(board.methods) > 1:
        anchor = board.methods.index(BASELINE) if BASELINE in board.methods else 0
        columns["Elo"] = _format(elo_ratings(values, anchor), "{:.0f}")
        columns["Mean rank"] = _format(mean_ranks(values), "{:.2f}", sign=-1)
        columns["Win rate"] = _format(win_rates(values), "{:.0%}")
    for group, members in board.groups.items():
        for metric in METRICS:
            means = board.values[metric][members].mean(axis=0)
            columns[f"{TITLES[metric]}, {group} ({int(members.sum())})"] = _format(means)
    return Table.of_columns(title, columns)


def _format(values: Any, form: str = "{:.4f}", sign: int = 1) -> list[str]:
    """Return numbers as text; the best (largest, or smallest if ``sign`` is -1) and equal texts in bold."""
    texts = [form.format(value) for value in values]
    best = form.format(sign * (sign * values).max())
    return emphasise(texts, [float(text == best) or np.nan for text in texts])


def gain_table(boards: Sequence[Board], base: str, title: str) -> Table:
    """Return the gains of all other methods over ``base`` in every group of the boards, with intervals."""
    methods = [method for method in boards[0].methods if method != base]
    columns: dict[str, Sequence[str]] = {"Method": methods}
    for board in boards:
        others = [board.methods.index(method) for method in methods]
        for group, members in board.groups.items():
            for metric in METRICS:
                head = f"{TITLES[metric]}, {group} ({int(members.sum())})"
                columns[head] = _format_gains(board.gains(base, metric)[members][:, others])
    return Table.of_columns(title, columns)


def _format_gains(gains: Any) -> list[str]:
    """Return mean gains over tables with their intervals."""
    rows = zip(gains.mean(axis=0), *bootstrap_interval(gains), strict=True)
    return [f"{m:+.4f} ({a:+.4f} to {b:+.4f})".replace("-0.0000", "+0.0000") for m, a, b in rows]


def baseline_table(board: Board) -> Table:
    """Return the gain of every method over the baseline, its win rate, and its share of the gap to the best."""
    columns: dict[str, Sequence[str]] = {"Method": board.methods}
    for group, members in board.groups.items():
        gains = board.gains(BASELINE, "auc_pr")[members]
        gap = gains.max(axis=1).mean()
        columns[f"Gain, {group}"] = _format_gains(gains)
        columns[f"Won, {group}"] = [f"{share:.0%}" for share in wins(gains).mean(axis=0)]
        columns[f"Gap closed, {group}"] = [f"{m / gap:.0%}" if gap > 0 else "" for m in gains.mean(axis=0)]
    notes = ["the gap to the best: what the best method of every table, picked with its labels, would gain"]
    return Table.of_columns(f"AUC-PR against the first neighbour ({BASELINE})", columns, notes)


def class_tables(board: Board, rows: Sequence[Row]) -> list[Table]:
    """Return mean AUC-PR by number of columns, by number of training rows, and by share of anomalies."""
    row_of = {str(row["dataset"]): row for row in rows if row["status"] in MEASURED}
    tables = []
    for title, name, bounds, form in TABLE_CLASSES:
        classes = np.searchsorted(bounds, [float(row_of[dataset][name]) for dataset in board.datasets], side="left")
        columns: dict[str, Sequence[str]] = {"Method": board.methods}
        for number in np.unique(classes):
            members = classes == number
            head = f"above {bounds[-1]:{form}}" if number == len(bounds) else f"to {bounds[number]:{form}}"
            columns[f"{head} ({int(members.sum())})"] = _format(board.values["auc_pr"][members].mean(axis=0))
        tables.append(Table.of_columns(f"AUC-PR by {title}", columns))
    return tables


def alarm_table(rows: Sequence[Row], collection: str) -> Table:
    """Return the mean observed false-alarm rates of methods with a calibrated threshold, by group."""
    calibrated = [row for row in rows if any(row.get(name) is not None for name in ALARM_COLUMNS)]
    body = []
    for variant, variant_rows in grouped(calibrated).items():
        groups = grouped(variant_rows, lambda row: group_of(collection, row["dataset"]))
        for group, members in sorted(groups.items()):
            rates = [[row[name] for row in members if row.get(name) is not None] for name in ALARM_COLUMNS]
            body.append([variant, group, *map(_format_rates, rates)])
    header = ["Method", "Group", *(f"at {rate:g}" for rate in RATES)]
    return Table("Observed false alarms, mean over tables", header, body)


def _format_rates(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = bootstrap_interval(np.array(values, dtype=np.float64))
    return f"{np.mean(values):.4f} ({low:.4f} to {high:.4f})"


def scaling_table(rows: Sequence[Row]) -> Table:
    """Return the means of methods without their own scaling under both scalings, on the splits that both have."""
    body = []
    for variant, variant_rows in grouped(row for row in rows if row["scaling"] != OWN).items():
        means = [scaling_means(variant_rows, metric) for metric in METRICS]
        if len(means[0]) == len(SCALINGS):
            body.append([variant, *(f"{by_scaling[name]:.4f}" for by_scaling in means for name in SCALINGS)])
    header = [f"{TITLES[metric]}, {name}" for metric in METRICS for name in SCALINGS]
    return Table("Both scalings", ["Method", *header], body)


def cost_table(rows: Sequence[Row]) -> Table:
    """Return seconds and memory of every method on every device."""
    body = []
    measured = grouped((row for row in rows if row["status"] in MEASURED), itemgetter("variant", "device"))
    for (variant, device), cells in measured.items():
        seconds = np.array([row["fit_seconds"] + row["score_seconds"] for row in cells])
        memory = [max(row.get(name) or 0.0 for row in cells) for name in ("peak_rss_mb", "peak_cuda_mb")]
        texts = (variant, device, f"{np.median(seconds):.3f}", f"{seconds.max():.1f}", f"{seconds.sum():,.0f}")
        body.append((*texts, *(f"{peak:,.0f}" if peak else "" for peak in memory)))
    header = ["Method", "Device", "Seconds per cell, median", "largest", "all cells"]
    header += ["Peak memory of its process (MB)", "of the GPU (MB)"]
    return Table("Fit and score: time and memory", header, body)
