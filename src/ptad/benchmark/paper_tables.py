"""Tables of the page about the paper's comparison: its claims, what is still unmeasured, all rows, duplicate rows."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from ptad.benchmark.collections import catalogue, dataset_title
from ptad.benchmark.experiments import EXPERIMENTS, variant_order
from ptad.benchmark.experiments.paper_grid import smallest_tables
from ptad.benchmark.experiments.variants import FOUR_TABLES
from ptad.benchmark.markdown import Table
from ptad.benchmark.peers import DEEP_PEERS
from ptad.benchmark.store import MEASURED, Row
from ptad.benchmark.summary import Summary, current, short_reason
from ptad.benchmark.tables import published_average

#: Fewer tables than this cannot give p < 0.05 in a two-sided Wilcoxon test.
_FEWEST_TABLES = 6


def claims() -> list[list[str]]:
    """What the paper claims: a sentence, the experiment, the variant that is said to be better, the other one."""
    text = files("ptad.benchmark").joinpath("claims.csv").read_text(encoding="utf-8")
    return list(csv.reader(text.splitlines()))[1:]


def claim_table(rows: Sequence[Row]) -> Table:
    """All claims with the paper's gain in AUC-PR, ours, the number of tables, p and a verdict.

    A claim holds when the mean over the tables that both were measured on has the same sign and a paired Wilcoxon
    signed-rank test over those tables says p < 0.05; with the right sign and a larger p it is "not significant".
    """
    values = cache(lambda name: Summary(row for row in rows if row["experiment"] == name).values("auc_pr"))
    body = []
    for text, experiment, better, worse in claims():
        tables = EXPERIMENTS[experiment].datasets if experiment in EXPERIMENTS else ()
        printed = [published_average(experiment, variant, tables) for variant in (better, worse)]
        first, second = printed
        gain = "" if first is None or second is None else f"{first[0] - second[0]:+.4f}"
        found = values(experiment)
        known = better in found and worse in found
        gains = (found[better] - found[worse]).dropna().to_numpy() if known else np.empty(0)
        body.append([text, experiment, gain, *_judged(gains)])
    header = ["Claim", "Experiment", "Gain in the paper", "Gain here", "Tables", "Won", "p", "Verdict"]
    return Table("Claims of the paper, AUC-PR", header, body)


def _judged(gains: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[object]:
    """Mean gain, number of tables, tables won, p, verdict."""
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
    """Experiment, variants, tables and seeds of everything that is to be measured on the paper's tables."""
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
    """One row per experiment and table with planned cells that have no figure; a cell that was tried says why."""
    found: dict[tuple[object, ...], Row] = {}
    for row in current(rows):
        key = (row["experiment"], row["variant"], row["dataset"], row["seed"])
        if key not in found or row["status"] in MEASURED:
            found[key] = row
    gaps: dict[tuple[str, str], list[str]] = {}
    total = empty = 0
    for experiment, variants, tables, seeds in planned_cells():
        for table in tables:
            for variant in variants:
                cells = {seed: found.get((experiment, variant, table, seed)) for seed in seeds}
                lost = {seed: row for seed, row in cells.items() if row is None or row["status"] not in MEASURED}
                total, empty = total + len(cells), empty + len(lost)
                if lost:
                    reasons = dict.fromkeys(short_reason(row) for row in lost.values() if row is not None)
                    text = f"{variant} (seed {', '.join(map(str, lost))}{''.join(f'; {reason}' for reason in reasons)})"
                    gaps.setdefault((experiment, table), []).append(text)
    body = [(experiment, dataset_title(table), "; ".join(texts)) for (experiment, table), texts in gaps.items()]
    title = f"Planned cells that are still empty: {empty:,} of {total:,}"
    return Table(title, ["Experiment", "Table", "Empty cells"], body)


def full_size_table(capped: Sequence[Row], full: Sequence[Row]) -> Table:
    """Cells measured on all rows beside the capped ones of the same seed and scaling."""

    def cell(row: Row) -> tuple[object, ...]:
        return tuple(row[name] for name in ("variant", "dataset", "seed", "scaling"))

    small = {cell(row): row for row in current(capped) if row["experiment"] == "main"}
    body = []
    for row in sorted(current(full), key=lambda r: (r["dataset"], r["variant"])):
        shape = [row[name] for name in ("variant", "scaling", "n_train", "n_test")]
        seconds = "" if row["fit_seconds"] is None else f"{row['fit_seconds']:.1f} / {row['score_seconds']:.1f}"
        body.append([dataset_title(str(row["dataset"])), *shape, _pair(row), _pair(small.get(cell(row))), seconds])
    header = ["Data set", "Method", "Scaling", "training rows", "test rows", "all rows", "capped", "fit / score s"]
    return Table("All rows, AUC-PR / AUC-ROC, seed 0", header, body)


def _pair(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row['auc_pr']:.4f} / {row['auc_roc']:.4f}" if row["status"] in MEASURED else short_reason(row)


def duplicates_table(rows: Sequence[Row]) -> Table:
    """Rows, prevalence and duplicate rows of every table."""
    body = []
    for name in catalogue():
        own = [row for row in rows if row["dataset"] == name and row["status"] in MEASURED]
        if own:
            shape = [own[0][column] for column in ("n_train", "n_test", "n_features")]
            share = float(np.mean([row["duplicate_share"] for row in own]))
            body.append([dataset_title(name), *shape, f"{own[0]['prevalence']:.4f}", f"{share:.3f}"])
    header = ["Data set", "training rows", "test rows", "columns", "prevalence"]
    return Table("The tables as they were used", [*header, "normal test rows with a duplicate in training"], body)
