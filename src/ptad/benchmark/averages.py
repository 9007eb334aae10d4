"""Short tables: one row per method or variant with its averages, one per table of data with what to know about it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from ptad.benchmark.catalogue import catalogue, dataset_title
from ptad.benchmark.statistics import mean_ranks
from ptad.benchmark.store import MEASURED, Row
from ptad.benchmark.summary import current, experiment_rows, published, short_reason, summarise
from ptad.benchmark.tables import BEST, PLAIN, Notes, Table, TableCell, plain_table

#: Printed by the paper under PTAD's own name; here it is the preset that follows it.
_PAPER_NAMES = {"ptad-paper": "ptad"}


@cache
def published_experiments() -> dict[tuple[str, str, str], tuple[float, float]]:
    """The paper's tables of further experiments: (experiment, variant, dataset) -> (AUC-PR, AUC-ROC)."""
    text = files("ptad.benchmark").joinpath("published_experiments.csv").read_text(encoding="utf-8")
    return {
        (row["experiment"], row["variant"], row["dataset"]): (float(row["auc_pr"]), float(row["auc_roc"]))
        for row in csv.DictReader(text.splitlines())
    }


def averages_table(rows: Sequence[Row], experiment: str, order: Sequence[str] = ()) -> Table:
    """Mean AUC-PR and AUC-ROC of every variant over the tables that all share, the paper's beside them, mean ranks."""
    chosen = experiment_rows(rows, experiment, order)
    notes = Notes()
    pr, roc = (summarise(chosen, metric) for metric in ("auc_pr", "auc_roc"))
    methods, shared = pr.complete()
    averages = [np.array([[s.value(m, d) for m in methods] for d in shared]) for s in (pr, roc)]
    body = []
    for place, method in enumerate(methods):
        printed = _published(experiment, method, shared)
        cells = [TableCell(method), TableCell(pr.scaling[method])]
        for index, values in enumerate(averages):
            means = values.mean(axis=0) if len(shared) else np.full(len(methods), np.nan)
            best = bool(len(shared)) and means[place] == means.max()
            cells.append(TableCell("" if not shared else f"{means[place]:.4f}", BEST if best else PLAIN))
            cells.append(TableCell("" if printed is None else f"{printed[index]:.4f}"))
            cells.append(TableCell("" if not shared else f"{mean_ranks(values)[place]:.2f}"))
        cells.append(TableCell(_span([pr.figures[method, d].n_seeds for d in shared])))
        body.append(cells)
    notes.number(f"over the {len(shared)} tables that all were measured on: {', '.join(shared) or 'none'}")
    missing = [m for m in pr.methods if m not in methods]
    if missing:
        notes.number(f"measured on too few tables to be averaged: {', '.join(missing)}")
    header = ["Method", "Scaling", "AUC-PR", "paper", "rank", "AUC-ROC", "paper", "rank", "Seeds"]
    return Table("Averages", header, body, notes.texts)


def _span(counts: Sequence[int]) -> str:
    """``3``, or ``1 to 3`` where they differ."""
    return " to ".join(str(count) for count in sorted({min(counts), max(counts)})) if counts else ""


def _published(experiment: str, method: str, shared: Sequence[str]) -> tuple[float, float] | None:
    """The paper's average; of single tables where it prints no average of the experiment."""
    if experiment == "main":
        cell = published().get((_PAPER_NAMES.get(method, method if method != "ptad" else ""), "average"))
        return None if cell is None else (cell.auc_pr, cell.auc_roc)
    printed = published_experiments()
    if (experiment, method, "average") in printed:
        return printed[experiment, method, "average"]
    cells = [printed[experiment, method, d] for d in shared if (experiment, method, d) in printed]
    if not cells or len(cells) < len(shared):
        return None
    return float(np.mean([c[0] for c in cells])), float(np.mean([c[1] for c in cells]))


def full_size_table(capped: Sequence[Row], full: Sequence[Row]) -> Table:
    """Cells measured on all rows beside the capped ones of the same seed and scaling."""
    small = {_cell(row): row for row in current(capped) if row["experiment"] == "main"}
    body = []
    for row in sorted(current(full), key=lambda r: (r["dataset"], r["variant"])):
        other, seconds = small.get(_cell(row)), row["fit_seconds"]
        body.append([dataset_title(str(row["dataset"])), row["variant"], row["scaling"], row["n_train"], row["n_test"]])
        body[-1] += [_figures(row), "" if other is None else _figures(other)]
        body[-1] += ["" if seconds is None else f"{seconds:.1f} / {row['score_seconds']:.1f}"]
    header = ["Data set", "Method", "Scaling", "training rows", "test rows", "all rows", "capped", "fit / score s"]
    return plain_table("All rows, AUC-PR / AUC-ROC, seed 0", header, body)


def twin_table(rows: Sequence[Row]) -> Table:
    """Rows, prevalence and exact duplicates of every table."""
    body = []
    for name in catalogue():
        own = [row for row in rows if row["dataset"] == name and row["status"] in MEASURED]
        if own:
            shape = [own[0][column] for column in ("n_train", "n_test", "n_features")]
            twins = float(np.mean([row["twin_share"] for row in own]))
            body.append([dataset_title(name), *shape, f"{own[0]['prevalence']:.4f}", f"{twins:.3f}"])
    header = ["Data set", "training rows", "test rows", "columns", "prevalence"]
    return plain_table("The tables as they were used", [*header, "normal test rows with a duplicate in training"], body)


def _cell(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("variant", "dataset", "seed", "scaling"))


def _figures(row: Row) -> str:
    if row["status"] not in MEASURED:
        return short_reason(row)
    return f"{row['auc_pr']:.4f} / {row['auc_roc']:.4f}"
