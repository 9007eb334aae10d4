"""The tables of the comparison, a pure read of the results file."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ptad.benchmark.catalogue import catalogue, dataset_title
from ptad.benchmark.metrics import TITLES
from ptad.benchmark.statistics import mean_ranks
from ptad.benchmark.store import MEASURED, STATUSES, Row
from ptad.benchmark.summary import Summary, by_variant, experiment_rows, published, short_reason, summarise
from ptad.benchmark.tables import BEST, PLAIN, SECOND, Notes, Table, TableCell
from ptad.errors import DataError


def experiment_tables(rows: Sequence[Row], experiment: str = "main", order: Sequence[str] = ()) -> list[Table]:
    """All tables of one experiment, the coverage last.

    ``order`` lists variants in the order of their columns; by default that of the registry of methods.
    """
    chosen = experiment_rows(rows, experiment, order)
    if not chosen:
        known = sorted({str(row["experiment"]) for row in rows})
        raise DataError(f"The results hold no experiment {experiment!r}. They hold: {', '.join(known) or 'nothing'}.")
    return [*(value_table(summarise(chosen, metric)) for metric in TITLES), coverage_table(chosen)]


def published_tables(rows: Sequence[Row]) -> list[Table]:
    """The main comparison beside the published figures."""
    chosen = experiment_rows(rows, "main")
    return [beside_published(summarise(chosen, metric)) for metric in ("auc_pr", "auc_roc")]


def value_table(summary: Summary) -> Table:
    """Mean ± standard deviation per method and table, with average and mean rank."""
    notes = Notes()
    rows = []
    for dataset in summary.datasets:
        values = [summary.value(method, dataset) for method in summary.methods]
        emphasis = _emphasis(values, largest=True)
        cells = [_figure_cell(summary, m, dataset, e, notes) for m, e in zip(summary.methods, emphasis, strict=True)]
        rows.append([TableCell(dataset_title(dataset)), *cells])
    methods, shared = summary.complete()
    if shared:
        matrix = np.array([[summary.value(m, d) for m in methods] for d in shared])
        averages, ranks = (dict(zip(methods, v, strict=True)) for v in (matrix.mean(0), mean_ranks(matrix)))
        mark: tuple[int, ...] = (notes.number(f"over the {len(shared)} tables that all methods were measured on"),)
        if few := [method for method in summary.methods if method not in methods]:
            mark = (*mark, notes.number(f"without {', '.join(few)}: measured on too few tables"))
        for label, figures, largest, digits in (("Average", averages, True, 4), ("Mean rank", ranks, False, 2)):
            values = [figures.get(method, float("nan")) for method in summary.methods]
            texts = ["" if np.isnan(value) else f"{value:.{digits}f}" for value in values]
            emphasis = _emphasis(values, largest)
            body = [TableCell(text, e) for text, e in zip(texts, emphasis, strict=True)]
            rows.append([TableCell(label, marks=mark), *body])
    rows.append([TableCell("Scaling"), *(TableCell(summary.scaling[method]) for method in summary.methods)])
    title = f"{TITLES[summary.metric]}, mean ± standard deviation over seeds"
    return Table(title, ["Data set", *summary.methods], rows, notes.texts)


def beside_published(summary: Summary) -> Table:
    """Ours / published, for the methods and tables that the paper prints."""
    printed = published()
    # The paper's own column is compared with its preset; the default preset stands beside it.
    source = {m: "ptad" if m == "ptad-paper" else m for m in summary.methods}
    methods = [m for m in summary.methods if any((source[m], d) in printed for d in summary.datasets)]
    notes = Notes()
    rows = []
    for dataset in (*summary.datasets, "average"):
        cells = [TableCell("Average" if dataset == "average" else dataset_title(dataset))]
        for method in methods:
            ours = _average(summary, method) if dataset == "average" else summary.value(method, dataset)
            cell = printed.get((source[method], dataset))
            text = "–" if np.isnan(ours) else f"{ours:.4f}"
            marks: tuple[int, ...] = ()
            if cell is not None:
                text += f" / {getattr(cell, summary.metric):.4f}"
                marks = (notes.number(f"suspect as printed: {cell.suspect}"),) if cell.suspect else ()
            cells.append(TableCell(text, marks=marks))
        rows.append(cells)
    n_tables = len(summary.datasets)
    if n_tables < len(catalogue()):
        notes.number(f"our averages are over {n_tables} tables, the published ones over {len(catalogue())}")
    title = f"{TITLES[summary.metric]}, ours / published"
    return Table(title, ["Data set", *methods], rows, notes.texts)


def coverage_table(rows: Sequence[Row]) -> Table:
    """How many cells of each method were measured, capped or lost, and why."""
    notes = Notes()
    body = []
    for variant, own in by_variant(rows).items():
        counts = [len(own), *(sum(row["status"] == status for row in own) for status in STATUSES)]
        alike: dict[str, list[str]] = {}
        for reason in (short_reason(row) for row in own if row["status"] not in MEASURED):
            alike.setdefault(re.sub(r"\d+", "#", reason), []).append(reason)
        marks = tuple(
            notes.number(same[0] if len(same) == 1 else f"{same[0]} ({len(same)} cells alike)")
            for same in alike.values()
        )
        body.append([TableCell(variant, marks=marks), *(TableCell(str(count)) for count in counts)])
    return Table("Coverage of the grid", ["Method", "cells", *STATUSES], body, notes.texts)


def _figure_cell(summary: Summary, method: str, dataset: str, emphasis: str, notes: Notes) -> TableCell:
    figure = summary.figures.get((method, dataset))
    if figure is None:
        return TableCell("")
    marks = tuple(notes.number(reason) for reason in figure.reasons)
    if figure.mean is None:
        return TableCell("–", marks=marks)
    text = f"{figure.mean:.4f}" + (f" ± {figure.std:.3f}" if figure.std is not None else "")
    return TableCell(text, emphasis, marks)


def _average(summary: Summary, method: str) -> float:
    values = [summary.value(method, dataset) for dataset in summary.datasets]
    return float("nan") if np.isnan(values).any() else float(np.mean(values))


def _emphasis(values: Sequence[float], largest: bool) -> list[str]:
    """Mark the best and the second best value; ties share their mark."""
    known = sorted({round(v, 4) for v in values if not np.isnan(v)}, reverse=largest)
    marks = []
    for value in values:
        rounded = round(value, 4)
        if known and rounded == known[0]:
            marks.append(BEST)
        elif len(known) > 1 and rounded == known[1]:
            marks.append(SECOND)
        else:
            marks.append(PLAIN)
    return marks
