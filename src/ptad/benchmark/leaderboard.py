"""The leaderboard of a collection: a page that is a pure read of its results."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from ptad.benchmark.collections import COLLECTIONS, Collection, fixed_sample, group_of
from ptad.benchmark.encoding import SCALINGS
from ptad.benchmark.markdown import Table, emphasise, to_markdown
from ptad.benchmark.metrics import RATES, TITLES, bootstrap_interval, elo_ratings, mean_ranks, win_rates
from ptad.benchmark.peers import DEEP_PEERS
from ptad.benchmark.store import ALARM_COLUMNS, MEASURED, Row
from ptad.benchmark.summary import METRICS, Board, experiment_rows, grouped, make_board, scaling_means
from ptad.benchmark.tables import coverage_table

#: The first neighbour in clipped min-max columns: the method to beat.
BASELINE = "nn1-clip1"
#: Of a large collection the deep methods see so many tables: ``ptad benchmark run --methods deep --sample 100``.
SAMPLE = 100
#: What tables are told apart by: title, column of the results, upper edges, how an edge is written.
CLASSES: tuple[tuple[str, str, tuple[float, ...], str], ...] = (
    ("columns", "n_features", (4, 8, 16), ".0f"),
    ("training rows", "n_train", (1_000, 2_999, 10_000), ",.0f"),
    ("share of anomalies", "prevalence", (0.05, 0.1, 0.2), ".0%"),
)


def _trained(collection: str) -> str:
    """Which methods do without what was trained on these very tables."""
    settings = COLLECTIONS.get(collection, Collection).settings
    return "".join(
        f" `{method}` does without {', '.join(f'`{name}`' for name in chosen['without'])}, a term that was trained on "
        "these tables."
        for method, chosen in settings.items()
    )


def leaderboard_page(rows: Sequence[Row], collection: str, image: str = "") -> str:
    """Return the page, Markdown; ``image`` is where its critical-difference diagram lies."""
    board, main = make_board(rows, collection), experiment_rows(rows, "main")
    parts = [
        f"# Leaderboard of the collection `{collection}`",
        f"Generated from the results: no figure is typed by hand. {len(board.datasets)} tables that all of "
        f"{len(board.methods)} methods were measured on. A method without a scaling of its own counts under the "
        "better of two, one for all tables. A table on which a method failed counts as chance for it. Intervals: 95 %, "
        "tables drawn with replacement. Elo: a Bradley-Terry model of all pairs of methods on all tables, by AUC-PR; "
        "the win rate is the share of tables and other methods that a method beats." + _trained(collection),
        *board_tables(board),
    ]
    if image:
        parts.insert(3, f"![Mean ranks by AUC-PR; joined methods are not told apart]({image})")
    parts.append(to_markdown(*class_tables(board, main)))
    if sample := rows_of_sample(main):
        few = make_board(sample, collection)
        parts += [
            f"## Deep methods: a fixed sample of {SAMPLE} tables",
            f"Drawn from the sorted names with seed 0 (`--sample {SAMPLE}`): no result had a say. All methods on "
            f"the {len(few.datasets)} of these tables that all {len(few.methods)} were measured on. "
            f"{_scalings(sample)} Trainings that met the ceiling of steps are counted as capped in the coverage.",
            *board_tables(few),
            "## Thresholds, scalings, cost, coverage",
        ]
    tables = [alarm_table(rows, collection), scaling_table(main), cost_table(main), coverage_table(main)]
    parts.append(to_markdown(*(table for table in tables if table.rows)))
    return "\n\n".join(parts) + "\n"


def rows_of_sample(rows: Sequence[Row]) -> list[Row]:
    """The rows of the fixed sample; none where no deep method was measured, or there are no more tables than that."""
    names = {str(row["dataset"]) for row in rows}
    drawn = set(fixed_sample(sorted(names), SAMPLE))
    deep = {row["variant"] for row in rows} & set(DEEP_PEERS)
    return [row for row in rows if row["dataset"] in drawn] if deep and len(names) > SAMPLE else []


def _scalings(rows: Sequence[Row]) -> str:
    deep = {(row["variant"], row["scaling"]) for row in rows if row["variant"] in DEEP_PEERS}
    if len(deep) > len({variant for variant, _ in deep}):
        return "A method without a scaling of its own counts under the one that is better on the sample."
    return "Deep methods were run under one scaling each; the others count under the better of two."


def board_tables(board: Board) -> list[str]:
    """Means of all methods, and their gains over the first neighbour."""
    found = [means_table(board), *([baseline_table(board)] if BASELINE in board.methods else [])]
    return list(map(to_markdown, found))


def means_table(board: Board, title: str = "Means over tables") -> Table:
    """Elo, mean rank and win rate by AUC-PR; mean AUC-PR and AUC-ROC of every group."""
    columns: dict[str, Sequence[str]] = {
        "Method": board.methods,
        "Scaling": [board.scaling[method] for method in board.methods],
    }
    values = board.values["auc_pr"]
    if len(board.methods) > 1:
        anchor = board.methods.index(BASELINE) if BASELINE in board.methods else 0
        columns["Elo"] = _figures(elo_ratings(values, anchor), "{:.0f}")
        columns["Mean rank"] = _figures(mean_ranks(values), "{:.2f}", sign=-1)
        columns["Win rate"] = _figures(win_rates(values), "{:.0%}")
    for group, chosen in board.groups.items():
        for metric in METRICS:
            means = board.values[metric][chosen].mean(axis=0)
            columns[f"{TITLES[metric]}, {group} ({int(chosen.sum())})"] = _figures(means)
    return Table.of_columns(title, columns)


def _figures(values: Any, form: str = "{:.4f}", sign: int = 1) -> list[str]:
    """Numbers as text, the largest (the smallest where ``sign`` is -1) and what reads like it in bold."""
    texts = [form.format(value) for value in values]
    top = form.format(sign * (sign * values).max())
    return emphasise(texts, [float(text == top) or np.nan for text in texts])


def gain_table(boards: Sequence[Board], base: str, title: str) -> Table:
    """What every other method gains over one of them in every group of some boards, with intervals over tables."""
    methods = [method for method in boards[0].methods if method != base]
    columns: dict[str, Sequence[str]] = {"Method": methods}
    for board in boards:
        others = [board.methods.index(method) for method in methods]
        for group, chosen in board.groups.items():
            for metric in METRICS:
                head = f"{TITLES[metric]}, {group} ({int(chosen.sum())})"
                columns[head] = _gains(board.gains(base, metric)[chosen][:, others])
    return Table.of_columns(title, columns)


def _gains(gains: Any) -> list[str]:
    """Mean gains over tables with their intervals."""
    figures = zip(gains.mean(axis=0), *bootstrap_interval(gains), strict=True)
    return [f"{m:+.4f} ({a:+.4f} to {b:+.4f})".replace("-0.0000", "+0.0000") for m, a, b in figures]


def won(gains: Any) -> Any:
    """The share of tables with a gain, ties half."""
    return ((gains > 0) + 0.5 * (gains == 0)).mean(axis=0)


def baseline_table(board: Board) -> Table:
    """Every method against the first neighbour: gain with its interval, win rate, share of the gap to the best."""
    columns: dict[str, Sequence[str]] = {"Method": board.methods}
    for group, chosen in board.groups.items():
        gains = board.gains(BASELINE, "auc_pr")[chosen]
        room = gains.max(axis=1).mean()
        columns[f"Gain, {group}"] = _gains(gains)
        columns[f"Won, {group}"] = [f"{share:.0%}" for share in won(gains)]
        columns[f"Gap closed, {group}"] = [f"{m / room:.0%}" if room > 0 else "" for m in gains.mean(axis=0)]
    notes = ["the gap to the best: what the best method of every table, picked with its labels, would gain"]
    return Table.of_columns(f"AUC-PR against the first neighbour ({BASELINE})", columns, notes)


def class_tables(board: Board, rows: Sequence[Row]) -> list[Table]:
    """Mean AUC-PR by number of columns, of training rows, and by share of anomalies."""
    known = {str(row["dataset"]): row for row in rows if row["status"] in MEASURED}
    tables = []
    for title, name, edges, number in CLASSES:
        places = np.searchsorted(edges, [float(known[dataset][name]) for dataset in board.datasets], side="left")
        columns: dict[str, Sequence[str]] = {"Method": board.methods}
        for place in np.unique(places):
            chosen = places == place
            bound = f"above {edges[-1]:{number}}" if place == len(edges) else f"to {edges[place]:{number}}"
            columns[f"{bound} ({int(chosen.sum())})"] = _figures(board.values["auc_pr"][chosen].mean(axis=0))
        tables.append(Table.of_columns(f"AUC-PR by {title}", columns))
    return tables


def alarm_table(rows: Sequence[Row], collection: str) -> Table:
    """Mean observed false alarms of methods with a calibrated threshold, by group."""
    calibrated = [row for row in rows if any(row.get(name) is not None for name in ALARM_COLUMNS)]
    body = []
    for experiment, ending in (("main", ""), ("false-alarms", ", calibrated")):
        for variant, own in grouped(experiment_rows(calibrated, experiment)).items():
            for group, members in sorted(grouped(own, lambda row: group_of(collection, row["dataset"])).items()):
                found = [[row[name] for row in members if row.get(name) is not None] for name in ALARM_COLUMNS]
                body.append([variant + ending, group, *map(_with_interval, found)])
    header = ["Method", "Group", *(f"at {rate:g}" for rate in RATES)]
    return Table("Observed false alarms, mean over tables", header, body)


def _with_interval(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = bootstrap_interval(np.array(values, dtype=np.float64))
    return f"{np.mean(values):.4f} ({low:.4f} to {high:.4f})"


def scaling_table(rows: Sequence[Row]) -> Table:
    """Both scalings of every method that has none of its own, over the splits that it was measured on under both."""
    body = []
    for variant, own in grouped(row for row in rows if row["scaling"] != "own").items():
        found = [scaling_means(own, metric) for metric in METRICS]
        if len(found[0]) == 2:
            body.append([variant, *(f"{means[name]:.4f}" for means in found for name in SCALINGS)])
    header = [f"{TITLES[metric]}, {name}" for metric in METRICS for name in SCALINGS]
    return Table("Both scalings", ["Method", *header], body)


def cost_table(rows: Sequence[Row]) -> Table:
    """Seconds and memory of every method on every device."""
    body = []
    for variant, measured in grouped(row for row in rows if row["status"] in MEASURED).items():
        for device, own in grouped(measured, itemgetter("device")).items():
            seconds = np.array([row["fit_seconds"] + row["score_seconds"] for row in own])
            memory = [max(row.get(name) or 0.0 for row in own) for name in ("peak_rss_mb", "peak_cuda_mb")]
            texts = (variant, device, f"{np.median(seconds):.3f}", f"{seconds.max():.1f}", f"{seconds.sum():,.0f}")
            body.append((*texts, *(f"{peak:,.0f}" if peak else "" for peak in memory)))
    header = ["Method", "Device", "Seconds per cell, median", "largest", "all cells"]
    header += ["Peak memory of its process (MB)", "of the GPU (MB)"]
    return Table("Fit and score: time and memory", header, body)
