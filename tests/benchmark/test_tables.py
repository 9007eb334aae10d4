"""Tables, ranks, tests and figures are a pure read of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptad.benchmark.figures import sweep_figure
from ptad.benchmark.markdown import Table, emphasise, to_markdown
from ptad.benchmark.metrics import compare_methods, elo_ratings, mean_ranks, win_rates
from ptad.benchmark.summary import Summary, complete
from ptad.benchmark.tables import coverage_table, experiment_tables, published_table, value_table
from ptad.errors import DataError

NAMES = ("breastw", "cardio", "glass", "pima", "wbc", "wine")


def row(method: str, dataset: str, scaling: str, value: float | None, seed: int = 0, **changes: Any) -> dict[str, Any]:
    made = {"experiment": "main", "variant": method, "method": method, "dataset": dataset, "seed": seed}
    made |= {"scaling": scaling, "status": "ok", "reason": "", "config_hash": "x"}
    made |= dict.fromkeys(("auc_pr", "auc_roc", "auc_pr_at_1", "auc_pr_at_5"), value)
    return made | changes


def grid() -> list[dict[str, Any]]:
    rows = []
    for i, name in enumerate(NAMES):
        for seed in (0, 1):
            rows.append(row("lof", name, "standard", 0.3 + 0.05 * i + 0.02 * seed, seed))
            rows.append(row("knn", name, "standard", 0.2, seed))
            rows.append(row("knn", name, "minmax", 0.5 + 0.05 * i + 0.02 * seed, seed))
            rows.append(row("ptad", name, "own", 0.6 + 0.05 * i + 0.02 * seed, seed))
    return rows


def test_better_scaling_counts_and_seeds_are_averaged() -> None:
    summary = Summary(grid())
    assert summary.scaling == {"lof": "standard", "knn": "minmax", "ptad": "own"}
    assert summary.values("auc_pr").at["breastw", "knn"] == pytest.approx(0.51)
    assert summary.values("auc_pr", "std").at["breastw", "knn"] == pytest.approx(np.std([0.5, 0.52], ddof=1))
    assert summary.values("auc_pr", "count").at["breastw", "knn"] == 2


def test_one_scaling_for_all_tables_and_metrics() -> None:
    rows = [row("knn", "wine", "minmax", 0.9), row("knn", "glass", "minmax", 0.1)]
    rows += [row("knn", "wine", "standard", 0.2), row("knn", "glass", "standard", 0.3)]
    summary = Summary(rows)
    assert summary.scaling["knn"] == "minmax"
    assert summary.values("auc_roc").at["glass", "knn"] == 0.1  # not the better of the two


def test_scalings_are_compared_on_splits_that_both_have() -> None:
    rows = [row("mcm", "wine", "standard", 0.5), row("mcm", "wine", "minmax", 0.6)]
    rows += [row("mcm", "wine", "minmax", 0.1, seed) for seed in (1, 2)]  # harder splits, minmax only
    assert Summary(rows).scaling["mcm"] == "minmax"


def test_configurations_of_one_cell_are_not_averaged() -> None:
    rows = [
        row("knn", "wine", "own", 0.1, config_hash="a", finished_at="2026-01-02"),
        row("knn", "wine", "own", 0.9, config_hash="b", finished_at="2026-01-03"),
        row("knn", "wine", "own", 0.5, config_hash="c", finished_at="2026-01-01"),
        row("knn", "wine", "own", None, config_hash="d", finished_at="2026-01-04", status="failed"),
    ]
    summary = Summary(rows)
    assert summary.values("auc_pr").at["wine", "knn"] == 0.9
    assert summary.values("auc_pr", "count").at["wine", "knn"] == 1


def test_mean_ranks_share_ties() -> None:
    assert mean_ranks(np.array([[0.9, 0.5, 0.5], [0.1, 0.2, 0.3]])).tolist() == [2.0, 2.25, 1.75]


def test_averages_use_shared_tables_only_and_failures_show() -> None:
    rows = [*grid(), row("gmm", "wine", "own", 0.9), row("gmm", "pima", "own", None, status="timeout", reason="late")]
    rows.append(row("gmm", "wbc", "own", 0.4, status="capped", reason="few rows"))
    shared = complete(Summary(rows).values("auc_pr"))
    # gmm has too few tables to shorten the list
    assert list(shared.columns) == ["lof", "knn", "ptad"] and list(shared.index) == list(NAMES)
    rows += [row("gmm", name, "own", 0.5) for name in ("breastw", "cardio", "glass")]
    summary = Summary(rows)
    assert list(complete(summary.values("auc_pr")).index) == ["breastw", "cardio", "glass", "wbc", "wine"]
    text = to_markdown(value_table(summary, "auc_pr"))
    assert "timeout: late" in text and "capped: few rows" in text and "over the 5 tables" in text
    pima = next(line for line in text.splitlines() if line.startswith("| Pima"))
    assert "– [" in pima
    coverage = coverage_table(rows)
    gmm = next(cells for cells in coverage.rows if cells[0].startswith("gmm"))
    assert gmm == ["gmm [1]", 6, 4, 1, 0, 1, 0]


def test_beside_published_marks_suspects() -> None:
    text = to_markdown(published_table(Summary(grid()), "auc_pr"))
    pima = next(line for line in text.splitlines() if line.startswith("| Pima"))
    assert "/ 0.9772 [" in pima and "/ 0.7308" in pima
    assert "swapped" in text and "over 6 tables" in text


def test_compare_orders_by_rank_and_corrects() -> None:
    values = Summary(grid()).values("auc_pr")
    ranks, p_values = compare_methods(list(values.columns), values.to_numpy())
    assert ranks.to_dict() == {"ptad": 1.0, "knn": 2.0, "lof": 3.0} and list(ranks) == [1.0, 2.0, 3.0]
    # Six of six differences have the same sign: p = 2 / 2^6, times three pairs.
    assert p_values.at["ptad", "knn"] == pytest.approx(3 * 2 / 2**6)
    assert np.diag(p_values).tolist() == [1.0, 1.0, 1.0]


def test_markdown_escapes() -> None:
    table = Table("More", ["a_b", "c|d"], [["x", "0.5 ± 0.1"]], ["n & m"])
    assert "c\\|d" in to_markdown(table) and "| x | 0.5 ± 0.1 |" in to_markdown(table)
    assert to_markdown(table).endswith("\n\n[1] n & m  ")
    assert to_markdown(Table("", ["a"], [[1]])) == "| a |\n|---|\n| 1 |"


def test_the_best_is_bold_and_the_second_best_in_italics() -> None:
    keys = [0.2, 0.9, float("nan"), 0.5, 0.9]
    assert emphasise(list("abcde"), keys, second=True) == ["a", "**b**", "c", "*d*", "**e**"]
    assert emphasise(list("abcde"), keys) == ["a", "**b**", "c", "d", "**e**"]


def test_notes_give_the_first_sentence_only() -> None:
    reason = "OutOfMemoryError: CUDA out of memory. Tried to allocate 62.51 GiB. Process 594 has 66.00 MiB in use."
    rows = [*grid(), row("gmm", "wine", "own", None, status="failed", reason=reason)]
    assert coverage_table(rows).notes == ["failed: OutOfMemoryError: CUDA out of memory"]
    rows += [row("lof", name, "own", None, status="failed", reason=f"{n} of {n} bad") for n, name in enumerate(NAMES)]
    assert coverage_table(rows).notes[0] == "failed: 0 of 0 bad (6 cells alike)"


def test_tables_in_the_order_of_the_registry() -> None:
    tables = experiment_tables(grid())
    assert tables[0].header == ["Data set", "knn", "lof", "ptad"] and tables[-1].title == "Coverage of the grid"
    with pytest.raises(DataError, match="no experiment 'ablation'"):
        experiment_tables(grid(), "ablation")


def test_lines_over_a_swept_setting() -> None:
    swept = [row(f"K = {k}", name, "own", 0.1 * k, experiment="counts") for k in (1, 2, 9) for name in NAMES[:2]]
    drawn = sweep_figure(swept, "K = ", "K")
    assert [label.get_text() for label in drawn.axes[0].get_xticklabels()] == ["1", "2", "9"]
    assert list(drawn.axes[0].lines[0].get_ydata()) == pytest.approx([0.1, 0.2, 0.9])


def test_win_rates_and_elo() -> None:
    values = np.array([[0.9, 0.5, 0.1], [0.8, 0.2, 0.4], [0.1, 0.9, 0.5], [0.7, 0.7, 0.2]])
    # the first beats the others in 3 + 0.5 + 2 of 8 comparisons with a tie
    assert win_rates(values) == pytest.approx([5.5 / 8, 4.5 / 8, 2 / 8])
    ratings = elo_ratings(values, anchor=2)
    assert ratings[2] == 1000.0 and ratings[0] > ratings[1] > 1000.0
    # two methods, 30 wins to 10: odds of three to one are 400 log10(3) points
    two = np.repeat([[1.0, 0.0], [0.0, 1.0]], [30, 10], axis=0)
    assert elo_ratings(two, anchor=1)[0] == pytest.approx(1000 + 400 * np.log10(3), abs=1.0)
