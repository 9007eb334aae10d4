"""Tables of the page about the paper's comparison: claims, cells not yet measured, tables at full size, duplicates."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from operator import itemgetter

import numpy as np

from ptad.arrays import Matrix
from ptad.benchmark.collections import catalogue, dataset_title
from ptad.benchmark.experiments import EXPERIMENTS, variant_order
from ptad.benchmark.experiments.base import FOUR_TABLES
from ptad.benchmark.experiments.paper_grid import smallest_tables
from ptad.benchmark.markdown import Table
from ptad.benchmark.peers import DEEP_PEERS
from ptad.benchmark.results import MEASURED, Row
from ptad.benchmark.summary import Summary, current, short_reason
from ptad.benchmark.tables import published_average

#: Fewer tables than this cannot give p < 0.05 in a two-sided Wilcoxon test.
_FEWEST_TABLES = 6


def claims() -> list[list[str]]:
    """Return the paper's claims: a sentence, the experiment, the variant claimed to be better, the other one."""
    text = files("ptad.benchmark").joinpath("claims.csv").read_text(encoding="utf-8")
    return list(csv.reader(text.splitlines()))[1:]


def claim_table(rows: Sequence[Row]) -> Table:
    """Return all claims with the paper's gain in AUC-PR, ours, the number of tables, p and a verdict.

    A claim holds when the mean over the tables that both were measured on has the same sign and a paired Wilcoxon
    signed-rank test over those tables has p < 0.05; with the same sign and a larger p it is "not significant".
    """
    values_of = cache(lambda name: Summary(row for row in rows if row["experiment"] == name).values("auc_pr"))
    body = []
    for text, experiment, better, worse in claims():
        tables = EXPERIMENTS[experiment].datasets if experiment in EXPERIMENTS else ()
        first, second = (published_average(experiment, variant, tables) for variant in (better, worse))
        printed_gain = "" if first is None or second is None else f"{first[0] - second[0]:+.4f}"
        values = values_of(experiment)
        measured = better in values and worse in values
        gains = (values[better] - values[worse]).dropna().to_numpy() if measured else np.empty(0)
        body.append([text, experiment, printed_gain, *_test_gains(gains)])
    header = ["Claim", "Experiment", "Gain in the paper", "Gain here", "Tables", "Won", "p", "Verdict"]
    return Table("Claims of the paper, AUC-PR", header, body)


def _test_gains(gains: Matrix) -> list[object]:
    """Return mean gain, number of tables, tables won, p, verdict."""
    from scipy.stats import wilcoxon

    if not len(gains):
        return ["", 0, "", "", "not measured"]
    testable = len(gains) >= _FEWEST_TABLES and gains.any()
    p = float(wilcoxon(gains, zero_method="zsplit").pvalue) if testable else None
    significant = p is not None and p < 0.05
    if gains.mean() <= 0:
        verdict = "the opposite holds" if significant else "does not hold"
    elif p is None:
        verdict = "too few tables to test"
    else:
        verdict = "holds" if significant else "not significant"
    return [f"{gains.mean():+.4f}", len(gains), int((gains > 0).sum()), "" if p is None else f"{p:.3f}", verdict]


def planned_cells() -> Iterator[tuple[str, Sequence[str], Sequence[str], Sequence[int]]]:
    """Yield experiment, variants, tables and seeds of everything that is to be measured on the paper's tables."""
    every, small = tuple(catalogue()), smallest_tables()
    yield "main", DEEP_PEERS, every, (0, 1, 2)
    for name in ("ablation", "backbones"):
        yield name, variant_order(name), every, (0,)
        yield name, variant_order(name), small, (1, 2)
    for name in ("counts", "weights", "distance"):
        yield name, variant_order(name), FOUR_TABLES, (0,)
    yield "context", variant_order("context"), every, (0,)
    yield "anomaly-types", variant_order("anomaly-types"), EXPERIMENTS["anomaly-types"].datasets, (0,)
    yield "paper-grid", variant_order("paper-grid"), small, (0, 1, 2)


def gap_table(rows: Sequence[Row]) -> Table:
    """Return, per experiment and table, the planned cells without metrics, with the reason of those that were tried."""
    row_of = {
        (row["experiment"], row["variant"], row["dataset"], row["seed"]): row
        for row in sorted(current(rows), key=lambda row: row["status"] in MEASURED)  # the last one counts
    }
    gaps: dict[tuple[str, str], list[str]] = {}
    n_cells = n_empty = 0
    for experiment, variants, tables, seeds in planned_cells():
        for table in tables:
            for variant in variants:
                cells = {seed: row_of.get((experiment, variant, table, seed)) for seed in seeds}
                empty = {seed: row for seed, row in cells.items() if row is None or row["status"] not in MEASURED}
                n_cells, n_empty = n_cells + len(cells), n_empty + len(empty)
                if empty:
                    reasons = dict.fromkeys(short_reason(row) for row in empty.values() if row is not None)
                    notes = "; ".join([f"seed {', '.join(map(str, empty))}", *reasons])
                    gaps.setdefault((experiment, table), []).append(f"{variant} ({notes})")
    body = [(experiment, dataset_title(table), "; ".join(texts)) for (experiment, table), texts in gaps.items()]
    title = f"Planned cells that are still empty: {n_empty:,} of {n_cells:,}"
    return Table(title, ["Experiment", "Table", "Empty cells"], body)


def full_size_table(capped: Sequence[Row], full: Sequence[Row]) -> Table:
    """Return cells measured on all rows beside the capped ones of the same seed and scaling."""

    cell = itemgetter("variant", "dataset", "seed", "scaling")
    capped_row = {cell(row): row for row in current(capped) if row["experiment"] == "main"}
    body = []
    for row in sorted(current(full), key=lambda r: (r["dataset"], r["variant"])):
        shape = [row[name] for name in ("variant", "scaling", "n_train", "n_test")]
        seconds = "" if row["fit_seconds"] is None else f"{row['fit_seconds']:.1f} / {row['score_seconds']:.1f}"
        body.append([dataset_title(str(row["dataset"])), *shape, _pair(row), _pair(capped_row.get(cell(row))), seconds])
    header = ["Data set", "Method", "Scaling", "training rows", "test rows", "all rows", "capped", "fit / score s"]
    return Table("All rows, AUC-PR / AUC-ROC, seed 0", header, body)


def _pair(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row['auc_pr']:.4f} / {row['auc_roc']:.4f}" if row["status"] in MEASURED else short_reason(row)


def duplicates_table(rows: Sequence[Row]) -> Table:
    """Return rows, prevalence and duplicate rows of every table."""
    body = []
    for name in catalogue():
        cells = [row for row in rows if row["dataset"] == name and row["status"] in MEASURED]
        if cells:
            shape = [cells[0][column] for column in ("n_train", "n_test", "n_features")]
            share = float(np.mean([row["duplicate_share"] for row in cells]))
            body.append([dataset_title(name), *shape, f"{cells[0]['prevalence']:.4f}", f"{share:.3f}"])
    header = ["Data set", "training rows", "test rows", "columns", "prevalence"]
    return Table("The tables as they were used", [*header, "normal test rows with a duplicate in training"], body)
