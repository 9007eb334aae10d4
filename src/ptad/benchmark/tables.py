"""The tables of a comparison or an experiment, a pure read of the results: figures, averages, coverage, the paper's."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from ptad.benchmark.collections import catalogue, dataset_title
from ptad.benchmark.markdown import Notes, Table, emphasise
from ptad.benchmark.metrics import TITLES, mean_ranks
from ptad.benchmark.store import MEASURED, STATUSES, Row
from ptad.benchmark.summary import METRICS, Summary, complete, experiment_rows, grouped, short_reason
from ptad.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Published:
    """A cell of the paper's tables; ``suspect`` says why it should not be trusted."""

    auc_pr: float
    auc_roc: float
    suspect: str


@cache
def published() -> dict[tuple[str, str, str], Published]:
    """The paper's tables by (experiment, variant, dataset), with ``average`` as a table of its own."""
    found = {}
    for name in ("published.csv", "published_experiments.csv"):
        text = files("ptad.benchmark").joinpath(name).read_text(encoding="utf-8")
        for row in csv.DictReader(text.splitlines()):
            key = (row.get("experiment", "main"), row.get("variant") or row["method"], row["dataset"])
            found[key] = Published(float(row["auc_pr"]), float(row["auc_roc"]), row.get("suspect", ""))
    # The paper prints its method as "ptad"; here that is the preset that follows it, and "ptad" another method.
    return {(e, "ptad-paper" if (e, v) == ("main", "ptad") else v, d): cell for (e, v, d), cell in found.items()}


def published_average(experiment: str, method: str, datasets: Sequence[str] = ()) -> tuple[float, float] | None:
    """The paper's AUC-PR and AUC-ROC of a method: its average, or that of the given tables where it prints none."""
    known = published()
    cells = [known.get((experiment, method, name)) for name in datasets]
    if (experiment, method, "average") in known:
        cells = [known[experiment, method, "average"]]
    if not cells or None in cells:
        return None
    first, second = (float(np.mean([getattr(cell, metric) for cell in cells])) for metric in METRICS)
    return first, second


def experiment_tables(rows: Sequence[Row], experiment: str = "main", order: Sequence[str] = ()) -> list[Table]:
    """All tables of one experiment, the coverage last.

    ``order`` lists variants in the order of their columns; by default that of the registry of methods.
    """
    chosen = experiment_rows(rows, experiment, order)
    if not chosen:
        known = sorted({str(row["experiment"]) for row in rows})
        raise DataError(f"The results hold no experiment {experiment!r}. They hold: {', '.join(known) or 'nothing'}.")
    summary = Summary(chosen)
    return [*(value_table(summary, metric) for metric in TITLES), coverage_table(chosen)]


def value_table(summary: Summary, metric: str) -> Table:
    """Mean ± standard deviation per method and table, with average and mean rank."""
    notes = Notes()
    means, deviations = summary.values(metric), summary.values(metric, "std")
    body = []
    for dataset in summary.datasets:
        values = means.loc[dataset].to_numpy()
        pairs = zip(values, deviations.loc[dataset], strict=True)
        texts = ["–" if np.isnan(m) else f"{m:.4f}" if np.isnan(s) else f"{m:.4f} ± {s:.3f}" for m, s in pairs]
        texts = emphasise(texts, values.round(4), second=True)
        cells = []
        for method, text in zip(summary.methods, texts, strict=True):
            reasons = summary.reasons.get((dataset, method))
            cells.append("" if reasons is None else text + "".join(map(notes.mark, reasons)))
        body.append([dataset_title(dataset), *cells])
    shared = complete(means)
    if len(shared):
        mark = notes.mark(f"over the {len(shared)} tables that all methods were measured on")
        if few := [method for method in summary.methods if method not in shared]:
            mark += notes.mark(f"without {', '.join(few)}: measured on too few tables")
        averages, ranks = shared.to_numpy().mean(axis=0), mean_ranks(shared.to_numpy())
        for label, figures, sign, digits in (("Average", averages, 1, 4), ("Mean rank", ranks, -1, 2)):
            texts = emphasise([f"{value:.{digits}f}" for value in figures], sign * figures.round(4), second=True)
            known = dict(zip(shared, texts, strict=True))
            body.append([label + mark, *(known.get(method, "") for method in summary.methods)])
    body.append(["Scaling", *(summary.scaling[method] for method in summary.methods)])
    title = f"{TITLES[metric]}, mean ± standard deviation over seeds"
    return Table(title, ["Data set", *summary.methods], body, notes.texts)


def published_table(summary: Summary, metric: str) -> Table:
    """Ours / published, for the methods and tables that the paper prints."""
    printed, notes = published(), Notes()
    # The default preset stands beside the paper's column too.
    source = {method: "ptad-paper" if method == "ptad" else method for method in summary.methods}
    methods = [m for m in summary.methods if any(("main", source[m], d) in printed for d in summary.datasets)]
    values = summary.values(metric)
    values.loc["average"] = values.mean(skipna=False)
    body = []
    for dataset in values.index:
        cells = ["Average" if dataset == "average" else dataset_title(dataset)]
        for method in methods:
            ours, cell = values.at[dataset, method], printed.get(("main", source[method], dataset))
            text = "–" if np.isnan(ours) else f"{ours:.4f}"
            if cell is not None:
                text += f" / {getattr(cell, metric):.4f}"
                text += notes.mark(f"suspect as printed: {cell.suspect}") if cell.suspect else ""
            cells.append(text)
        body.append(cells)
    n_tables = len(summary.datasets)
    if n_tables < len(catalogue()):
        notes.mark(f"our averages are over {n_tables} tables, the published ones over {len(catalogue())}")
    return Table(f"{TITLES[metric]}, ours / published", ["Data set", *methods], body, notes.texts)


def averages_table(rows: Sequence[Row], experiment: str, order: Sequence[str] = ()) -> Table:
    """Mean AUC-PR and AUC-ROC of every variant over the tables that all share, the paper's beside them, mean ranks."""
    summary = Summary(experiment_rows(rows, experiment, order))
    shared = complete(summary.values("auc_pr"))
    methods, tables = list(shared.columns), list(shared.index)
    seeds = summary.values("auc_pr", "count").loc[tables, methods]
    printed = [published_average(experiment, method, tables) for method in methods]
    columns: list[Sequence[str]] = [methods, [summary.scaling[method] for method in methods]]
    for place, metric in enumerate(METRICS):
        values = summary.values(metric).loc[tables, methods].to_numpy()
        means, ranks = (values.mean(axis=0), mean_ranks(values)) if tables else (np.zeros(0), np.zeros(0))
        columns.append(emphasise([f"{mean:.4f}" for mean in means], means) or [""] * len(methods))
        columns.append(["" if pair is None else f"{pair[place]:.4f}" for pair in printed])
        columns.append([f"{rank:.2f}" for rank in ranks] or [""] * len(methods))
    columns.append([_span(seeds[method]) for method in methods])
    notes = [f"over the {len(tables)} tables that all were measured on: {', '.join(tables) or 'none'}"]
    if missing := [method for method in summary.methods if method not in methods]:
        notes.append(f"measured on too few tables to be averaged: {', '.join(missing)}")
    header = ["Method", "Scaling", "AUC-PR", "paper", "rank", "AUC-ROC", "paper", "rank", "Seeds"]
    return Table("Averages", header, list(zip(*columns, strict=True)), notes)


def _span(counts: pd.Series) -> str:
    """``3``, or ``1 to 3`` where they differ."""
    return " to ".join(f"{count:.0f}" for count in sorted({counts.min(), counts.max()})) if len(counts) else ""


def coverage_table(rows: Sequence[Row]) -> Table:
    """How many cells of each method were measured, capped or lost, and why."""
    notes = Notes()
    body = []
    for variant, own in grouped(rows).items():
        lost = [row for row in own if row["status"] not in MEASURED]
        for same in grouped(lost, lambda row: re.sub(r"\d+", "#", short_reason(row))).values():
            ending = f" ({len(same)} cells alike)" if len(same) > 1 else ""
            variant += notes.mark(short_reason(same[0]) + ending)
        body.append([variant, len(own), *(sum(row["status"] == status for row in own) for status in STATUSES)])
    return Table("Coverage of the grid", ["Method", "cells", *STATUSES], body, notes.texts)
