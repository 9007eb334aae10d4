"""The network's view: units that come back, every column hidden once, cells judged where they were hidden."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from ptad import PTAD
from ptad.scoring import Space

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]


def test_units_come_back() -> None:
    space = Space(torch.tensor([1.0, -2.0]), torch.tensor([0.5, 4.0]))
    x = torch.tensor([[3.0, 1.0]])
    assert torch.equal(space(x), torch.tensor([[1.0, 12.0]]))
    assert torch.equal(space.back(space(x)), x)


def test_every_column_is_hidden_in_exactly_one_pass() -> None:
    space = Space(torch.zeros(4), torch.ones(4), torch.tensor([[0, 1, 1, 2], [2, 0, 1, 0]]))
    hidden, branch = space.hide(torch.ones(2, 5, 4), n_branches=2)
    gaps = hidden.isnan().view(2, 3, 5, 4)
    assert (gaps.sum(dim=1) == 1).all()
    assert gaps[0, 1, 0].tolist() == [False, True, True, False]
    assert branch is not None and branch[0].view(3, 5)[:, 0].tolist() == [0, 1, 0]


def test_the_error_of_a_cell_does_not_see_the_cell(make_detector: Make, rows: Rows) -> None:
    """What the network expects of a cell must not move with the cell, but with the others."""
    model = make_detector(n_neighbours=0).fit(rows)
    moved = rows[:1].copy()
    moved[0, 1] += 0.5
    before, after = (np.asarray(model.explain(r).expected["x1"].to_numpy()) for r in (rows[:1], moved))
    others_before, others_after = (np.asarray(model.explain(r).expected["x0"].to_numpy()) for r in (rows[:1], moved))
    assert before == after
    assert others_before != others_after


def test_encoded_columns_of_one_column_are_hidden_together(frame_detector: PTAD) -> None:
    pass_of, groups = frame_detector.scorer_.space.pass_of, frame_detector.schema_.groups
    for group in np.unique(groups):
        assert (pass_of[:, groups == group].unique(dim=1).shape[1]) == 1


def test_two_valued_columns_are_discounted_in_the_common_unit(make_detector: Make, rows: Rows) -> None:
    table = np.column_stack([rows, (rows[:, 0] > 0).astype(float)])
    space = make_detector(n_steps=3).fit(table).scorer_.space
    assert (space.unit[:4] == space.unit[0]).all()
    assert float(space.unit[4] / space.unit[0]) < 0.5


def test_missing_values_leave_the_units_finite(make_detector: Make, rows: Rows) -> None:
    """Gaps beside a two-valued column, with and without retrieved rows."""
    table = np.column_stack([rows, (rows[:, 0] > 0).astype(float)])
    table[::5, 1] = np.nan
    for n_neighbours in (0, 4):
        model = make_detector(n_steps=3, n_neighbours=n_neighbours).fit(table)
        assert torch.isfinite(model.scorer_.space.unit).all()
        assert np.isfinite(model.anomaly_score(table)).all()
