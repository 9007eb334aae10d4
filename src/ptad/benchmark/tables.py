"""The tables of a comparison or an experiment: metrics, averages, coverage, comparison with the published values."""

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
from ptad.benchmark.results import MEASURED, STATUSES, Row
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
    """Return the paper's tables by (experiment, variant, dataset); the dataset ``average`` is their last row."""
    cells = {}
    for name in ("published.csv", "published_experiments.csv"):
        text = files("ptad.benchmark").joinpath(name).read_text(encoding="utf-8")
        for row in csv.DictReader(text.splitlines()):
            experiment, variant = row.get("experiment", "main"), row.get("variant") or row["method"]
            if (experiment, variant) == ("main", "ptad"):  # here that is the name of the default preset
                variant = "ptad-paper"
            cell = Published(float(row["auc_pr"]), float(row["auc_roc"]), row.get("suspect", ""))
            cells[experiment, variant, row["dataset"]] = cell
    return cells


def published_average(experiment: str, method: str, datasets: Sequence[str] = ()) -> tuple[float, float] | None:
    """Return the paper's average AUC-PR and AUC-ROC of a method, or if it prints none that over the given tables."""
    cells = [published().get((experiment, method, name)) for name in datasets]
    if average := published().get((experiment, method, "average")):
        cells = [average]
    if not cells or None in cells:
        return None
    auc_pr, auc_roc = (float(np.mean([getattr(cell, metric) for cell in cells])) for metric in METRICS)
    return auc_pr, auc_roc


def experiment_tables(rows: Sequence[Row], experiment: str = "main", order: Sequence[str] = ()) -> list[Table]:
    """Return all tables of one experiment, the coverage last.

    ``order`` lists variants in the order of their columns, by default that of the registry of methods.
    """
    members = experiment_rows(rows, experiment, order)
    if not members:
        names = sorted({str(row["experiment"]) for row in rows})
        raise DataError(f"The results hold no experiment {experiment!r}. They hold: {', '.join(names) or 'nothing'}.")
    summary = Summary(members)
    return [*(value_table(summary, metric) for metric in TITLES), coverage_table(members)]


def value_table(summary: Summary, metric: str) -> Table:
    """Return mean ± standard deviation per table and method, with average and mean rank."""
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
        if excluded := [method for method in summary.methods if method not in shared]:
            mark += notes.mark(f"without {', '.join(excluded)}: measured on too few tables")
        averages, ranks = shared.to_numpy().mean(axis=0), mean_ranks(shared.to_numpy())
        for label, values, sign, digits in (("Average", averages, 1, 4), ("Mean rank", ranks, -1, 2)):
            texts = emphasise([f"{value:.{digits}f}" for value in values], sign * values.round(4), second=True)
            text_of = dict(zip(shared, texts, strict=True))
            body.append([label + mark, *(text_of.get(method, "") for method in summary.methods)])
    body.append(["Scaling", *(summary.scaling[method] for method in summary.methods)])
    title = f"{TITLES[metric]}, mean ± standard deviation over seeds"
    return Table(title, ["Data set", *summary.methods], body, notes.texts)


def published_table(summary: Summary, metric: str) -> Table:
    """Return "ours / published" for the methods and tables that the paper prints."""
    notes = Notes()
    # Both presets stand beside the paper's column.
    printed_name = {method: "ptad-paper" if method == "ptad" else method for method in summary.methods}
    methods = [m for m in summary.methods if any(("main", printed_name[m], d) in published() for d in summary.datasets)]
    values = summary.values(metric)
    values.loc["average"] = values.mean(skipna=False)
    body = []
    for dataset in values.index:
        cells = ["Average" if dataset == "average" else dataset_title(dataset)]
        for method in methods:
            ours, printed = values.at[dataset, method], published().get(("main", printed_name[method], dataset))
            text = "–" if np.isnan(ours) else f"{ours:.4f}"
            if printed is not None:
                text += f" / {getattr(printed, metric):.4f}"
                text += notes.mark(f"suspect as printed: {printed.suspect}") if printed.suspect else ""
            cells.append(text)
        body.append(cells)
    n_tables = len(summary.datasets)
    if n_tables < len(catalogue()):
        notes.mark(f"our averages are over {n_tables} tables, the published ones over {len(catalogue())}")
    return Table(f"{TITLES[metric]}, ours / published", ["Data set", *methods], body, notes.texts)


def averages_table(rows: Sequence[Row], experiment: str, order: Sequence[str] = ()) -> Table:
    """Return mean AUC-PR and AUC-ROC over the tables that all variants share, the paper's beside them, mean ranks."""
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
    columns.append([_range(seeds[method]) for method in methods])
    notes = [f"over the {len(tables)} tables that all were measured on: {', '.join(tables) or 'none'}"]
    if excluded := [method for method in summary.methods if method not in methods]:
        notes.append(f"measured on too few tables to be averaged: {', '.join(excluded)}")
    header = ["Method", "Scaling", "AUC-PR", "paper", "rank", "AUC-ROC", "paper", "rank", "Seeds"]
    return Table("Averages", header, list(zip(*columns, strict=True)), notes)


def _range(counts: pd.Series) -> str:
    """Return ``3``, or ``1 to 3`` if the counts differ."""
    return " to ".join(f"{count:.0f}" for count in sorted({counts.min(), counts.max()})) if len(counts) else ""


def coverage_table(rows: Sequence[Row]) -> Table:
    """Return the number of cells of each method by status, with the reasons of those that have no metrics."""
    notes = Notes()
    body = []
    for variant, cells in grouped(rows).items():
        name = variant
        unmeasured = [row for row in cells if row["status"] not in MEASURED]
        for alike in grouped(unmeasured, lambda row: re.sub(r"\d+", "#", short_reason(row))).values():
            suffix = f" ({len(alike)} cells alike)" if len(alike) > 1 else ""
            name += notes.mark(short_reason(alike[0]) + suffix)
        body.append([name, len(cells), *(sum(row["status"] == status for row in cells) for status in STATUSES)])
    return Table("Coverage of the grid", ["Method", "cells", *STATUSES], body, notes.texts)
