"""The GPU script's plan: what runs first, what waits, which scaling the later seeds use."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from benchmark_scripts import load_script


@pytest.fixture(scope="module")
def grid() -> ModuleType:
    return load_script("gpu_grid")


def row(method: str, scaling: str, value: float) -> dict[str, Any]:
    made = {"experiment": "main", "variant": method, "dataset": "wine", "seed": 0, "scaling": scaling}
    return made | {"status": "ok", "auc_pr": value}


def test_seed_0_has_both_scalings_in_the_order_of_cost(grid: ModuleType) -> None:
    cells = grid.first_cells([*grid.DEEP, "ptad-paper"], ["wine", "campaign"])
    assert len(cells) == 2 * (2 * len(grid.DEEP) + 1)
    costs = [grid.estimate(cell) for cell in cells]
    assert costs in (sorted(costs), sorted(costs, reverse=True)) and min(costs) > 0
    assert max(cells, key=grid.estimate).dataset == "campaign" and min(cells, key=grid.estimate).dataset == "wine"


def test_later_seeds_use_the_better_scaling_only(grid: ModuleType) -> None:
    rows = [
        row("mcm", "standard", 0.4),
        row("mcm", "minmax", 0.6),
        row("icl", "standard", 0.9),
        row("icl", "minmax", 0),
    ]
    cells = grid.second_cells(["mcm", "icl", "goad"], ["wine", "glass"], rows)
    assert {(cell.method, cell.scaling) for cell in cells} == {("mcm", "minmax"), ("icl", "standard")}
    assert sorted({cell.seed for cell in cells}) == [1, 2] and len(cells) == 8


def test_experiments_leave_out_methods_that_are_not_asked_for(grid: ModuleType) -> None:
    cells = grid.experiment_cells(["anomaly-types", "counts"], ["mcm", "ptad-paper"], ["wine"], 0, False)
    assert {cell.method for cell in cells if cell.experiment == "anomaly-types"} == {"mcm", "ptad-paper"}
    assert sum(cell.experiment == "counts" for cell in cells) == 18 * 4
    staged = grid.staged(cells, 1)
    assert {stage for stage, _, _ in staged} <= {1, 3}
    assert all((stage == 3) == (cost > grid.HEAVY) for stage, cost, _ in staged)


def test_longer_trainings_of_the_paper_preset_are_guessed_to_cost_more(grid: ModuleType) -> None:
    cells = grid.experiment_cells(["paper-grid"], ["ptad-paper"], [], 0, False)
    assert len(cells) == 30 * 10 and len({cell.dataset for cell in cells}) == 10
    first, last = (grid.estimate(next(c for c in cells if c.variant.endswith(f" {n} steps"))) for n in (100, 1000))
    assert first < last
