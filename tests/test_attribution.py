"""Contributions: where they come from, that they add up, and that no expected value is a reason; numpy and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptad.arrays import to_numpy
from ptad.attribution import attribute, final_contributions
from ptad.tables.features import Features
from ptad.terms.base import Reason, TermValues

# One number, a whole number, and a column of two features of which the second follows from the first.
FEATURES = Features(np.array([0, 1, 2, 2]), np.zeros(4, dtype=np.int64), np.array([0.0, 0.5, 1.0, np.inf]))
ROWS = np.array([[1.0, 3.0, 10.0, 0.3], [1.0, 3.0, 10.0, 0.3], [np.nan, 3.0, 10.0, 0.3]])


def said(shares: list[list[float]], reason: int, partner: int, expected: Any) -> TermValues:
    array = np.array(shares)
    full = np.full(array.shape, -1)
    return TermValues(array.sum(axis=1), array, full + 1 + reason, full + 1 + partner, expected)


RESOLUTION = np.broadcast_to(FEATURES.resolution, ROWS.shape).copy()
NEAR = np.array([2.0, 0.4, 0.5, 9.0])
FIRST = said([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], Reason.UNUSUAL_VALUE, -1, ROWS + NEAR)
SECOND = said([[0.0, 0.2, 0.8], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], Reason.UNUSUAL_COMBINATION, 1, ROWS + 5.0)
BY_TERM = np.array([[2.0, 10.0], [2.0, -1.0], [3.0, 0.0]])


def as_torch(x: Any) -> Any:
    torch = pytest.importorskip("torch")
    if isinstance(x, TermValues):
        return TermValues(**{name: torch.as_tensor(value) for name, value in vars(x).items()})
    return torch.as_tensor(x)


@pytest.mark.parametrize("make", [lambda x: x, as_torch], ids=["numpy", "torch"])
def test_the_leading_term_gives_reason_partner_and_expected_value(make: Any) -> None:
    found = attribute(make(ROWS), [make(FIRST), make(SECOND)], make(BY_TERM), FEATURES, make(RESOLUTION))
    np.testing.assert_allclose(to_numpy(found.contributions), [[1.0, 3.0, 8.0], [2.0, 0.0, -1.0], [3.0, 0.0, 0.0]])
    np.testing.assert_array_equal(to_numpy(found.reason), [[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(to_numpy(found.partner), [[-1, 1, 1], [-1, -1, -1], [-1, -1, -1]])
    # 3.4 reads as 3, and 10.5 with any cycle as 10: the second term is asked instead.
    np.testing.assert_allclose(to_numpy(found.expected)[0], [3.0, 8.0, 15.0, 5.3])
    assert not to_numpy(found.as_expected).any()


@pytest.mark.parametrize("make", [lambda x: x, as_torch], ids=["numpy", "torch"])
def test_what_is_expected_is_no_reason(make: Any) -> None:
    found = attribute(make(ROWS), [make(FIRST)], make(BY_TERM[:, :1]), FEATURES, make(RESOLUTION))
    np.testing.assert_array_equal(to_numpy(found.as_expected), [[False, True, True]] * 3)
    score = make(np.array([2.3, 2.0, 3.0]))
    contributions = to_numpy(final_contributions(found.contributions, found.as_expected, score))
    np.testing.assert_allclose(contributions[0], [2.3, 0.0, 0.0])  # 1 + 1 moved, and 0.3 that no column explains
    np.testing.assert_allclose(contributions.sum(axis=1), [2.3, 2.0, 3.0])


def test_gaps_and_terms_without_expectation() -> None:
    silent = TermValues(FIRST.value, FIRST.shares, FIRST.reason, FIRST.partner)
    assert attribute(ROWS, [silent], BY_TERM[:, :1], FEATURES, RESOLUTION).expected is None
    missing = TermValues(FIRST.value, FIRST.shares, FIRST.reason + int(Reason.MISSING), FIRST.partner, ROWS)
    assert not attribute(ROWS, [missing], BY_TERM[:, :1], FEATURES, RESOLUTION).as_expected.any()
    alone = final_contributions(np.array([[1.0, 0.0]]), np.array([[True, True]]), np.array([1.0]))
    np.testing.assert_array_equal(alone, [[1.0, 0.0]])  # nobody to give it to
