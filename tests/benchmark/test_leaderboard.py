"""The leaderboard is a pure read of the rows: groups, failures, gains, classes of tables, false alarms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptad.benchmark.collections import fixed_sample
from ptad.benchmark.figures import critical_difference_figure, save_critical_difference
from ptad.benchmark.leaderboard import (
    BASELINE,
    SAMPLE,
    alarm_table,
    baseline_table,
    class_tables,
    cost_table,
    gain_table,
    leaderboard_page,
    means_table,
    rows_of_sample,
    scaling_table,
)
from ptad.benchmark.markdown import Table
from ptad.benchmark.metrics import bootstrap_interval
from ptad.benchmark.summary import make_board
from ptad.errors import DataError

TABLES = tuple(f"odd_{i}" for i in range(4)) + tuple(f"ovr_{i}" for i in range(4))


def row(method: str, dataset: str, value: float | None, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"experiment": "main", "variant": method, "method": method, "dataset": dataset, "seed": 0}
    made |= {"scaling": "own", "status": "ok", "reason": "", "config_hash": "x", "auc_pr": value, "auc_roc": value}
    made |= {"prevalence": 0.2, "n_features": 5, "n_train": 400, "fit_seconds": 1.0, "score_seconds": 0.5}
    return made | {"peak_rss_mb": 300.0, "device": "cpu"} | changes


def grid() -> list[dict[str, Any]]:
    rows = [row(BASELINE, name, 0.5, n_features=3 + 10 * i) for i, name in enumerate(TABLES)]
    alarms = {"false_alarms_1": 0.01, "false_alarms_5": 0.04, "false_alarms_10": None}
    rows += [row("ptad", name, 0.6 if name.startswith("odd") else 0.4, **alarms) for name in TABLES]
    rows += [row("lof", name, 0.3) for name in TABLES[1:]]
    return [*rows, row("lof", TABLES[0], None, status="failed", reason="no scores")]


def texts(table: Table) -> dict[str, list[str]]:
    return {cells[0]: [cell.strip("*") for cell in cells[1:]] for cells in table.rows}


def test_means_by_group_and_failures_as_chance() -> None:
    board = make_board(grid(), "macro")
    assert board.methods[-1] == "lof" and len(board.datasets) == 8 and list(board.groups) == ["odd", "ovr", "all"]
    table = means_table(board)
    assert table.header[2:7] == ["Elo", "Mean rank", "Win rate", "AUC-PR, odd (4)", "AUC-ROC, odd (4)"]
    found = texts(table)
    assert found[BASELINE][1] == "1000" and int(found["lof"][1]) < 1000
    assert found["ptad"][2:] == ["1.50", "75%", "0.6000", "0.6000", "0.4000", "0.4000", "0.5000", "0.5000"]
    # three tables at 0.3 and one at chance: the prevalence for AUC-PR, a half for AUC-ROC
    assert found["lof"][4:6] == ["0.2750", "0.3500"]
    assert make_board(grid(), "mine").groups.keys() == {"mine"}
    with pytest.raises(DataError, match="no table that all methods"):
        make_board([], "macro")


def test_gains_over_the_first_neighbour() -> None:
    found = texts(baseline_table(make_board(grid(), "macro")))
    # best per table: 0.6 on odd, 0.5 on ovr; the gap is 0.1 on odd, none on ovr, 0.05 over all
    assert found["ptad"] == [
        *("+0.1000 (+0.1000 to +0.1000)", "100%", "100%"),
        *("-0.1000 (-0.1000 to -0.1000)", "0%", ""),
        *(found["ptad"][6], "50%", "0%"),
    ]
    assert found["ptad"][6].startswith("+0.0000 (-0.0")
    assert found[BASELINE][1] == "50%"


def test_intervals_of_the_mean_shrink_with_the_tables() -> None:
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_interval(values)
    assert low < values.mean() < high and high - low == pytest.approx(2 * 1.96 / 20, rel=0.15)
    assert bootstrap_interval(values) == (low, high)


def test_classes_of_tables() -> None:
    columns = class_tables(make_board(grid(), "macro"), grid()[:8])[0]
    assert columns.header[1:] == ["to 4 (1)", "to 16 (1)", "above 16 (6)"]
    assert texts(columns)["ptad"] == ["0.6000", "0.6000", "0.4667"]


def test_false_alarms_of_calibrated_methods_only() -> None:
    table = alarm_table(grid(), "macro")
    assert [list(cells[:2]) for cells in table.rows] == [["ptad", "odd"], ["ptad", "ovr"]]
    assert list(table.rows[0][2:]) == ["0.0100 (0.0100 to 0.0100)", "0.0400 (0.0400 to 0.0400)", ""]


def test_gains_beside_any_method() -> None:
    table = gain_table([make_board(grid(), "macro")], "ptad", "Beside the default")
    found = texts(table)
    assert list(found) == [BASELINE, "lof"] and table.header[1] == "AUC-PR, odd (4)"
    assert found[BASELINE][0] == "-0.1000 (-0.1000 to -0.1000)" and found[BASELINE][2].startswith("+0.1000")


def test_both_scalings_and_cost_by_device() -> None:
    rows = [row("knn", "odd_0", 0.2, scaling="standard"), row("knn", "odd_0", 0.4, scaling="minmax")]
    rows += [row("knn", "odd_1", 0.9, scaling="minmax"), row("ptad", "odd_0", 0.5)]
    assert texts(scaling_table(rows)) == {"knn": ["0.2000", "0.4000", "0.2000", "0.4000"]}
    cost = cost_table([row("mcm", "odd_0", 0.2, device="cpu"), row("mcm", "odd_1", 0.2, device="H", peak_cuda_mb=70.0)])
    assert [list(cells[1:]) for cells in cost.rows] == [
        ["cpu", "1.500", "1.5", "2", "300", ""],
        ["H", "1.500", "1.5", "2", "300", "70"],
    ]


def test_deep_methods_on_the_fixed_sample() -> None:
    names = [f"odd_{i:03d}" for i in range(2 * SAMPLE + 20)]
    drawn = fixed_sample(names, SAMPLE)
    rows = [row(method, name, 0.5) for method in (BASELINE, "ptad") for name in names]
    assert rows_of_sample(rows) == []
    rows += [row("mcm", name, 0.6) for name in drawn]
    few = make_board(rows_of_sample(rows), "macro")
    assert few.methods[0] == "mcm" and few.datasets == drawn
    page = leaderboard_page(rows, "macro")
    above, below = page.split("## Deep methods: a fixed sample of 100 tables")
    assert "| mcm |" not in above and "| mcm | own |" in below and "220 tables that all of 2 methods" in above


def test_page_and_diagram(tmp_path: Path) -> None:
    image = tmp_path / "images" / "macro.png"
    assert save_critical_difference(grid(), "macro", image) and image.read_bytes()[:4] == b"\x89PNG"
    text = leaderboard_page(grid(), "macro", "images/macro.png")
    assert "8 tables that all of 3 methods" in text and "](images/macro.png)" in text and "failed: no scores" in text
    assert not save_critical_difference([row("ptad", "odd_0", 0.5)], "macro", tmp_path / "none.png")
    assert "![" not in leaderboard_page([row("ptad", "odd_0", 0.5)], "macro")


def test_the_diagram_names_the_methods() -> None:
    drawn = critical_difference_figure(make_board(grid(), "macro"), "auc_pr")
    words = {text.get_text().strip() for text in drawn.axes[0].texts}
    assert words == {"ptad (1.50)", f"{BASELINE} (1.50)", "lof (3.00)"}
