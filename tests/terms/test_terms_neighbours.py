"""The search for the nearest reference rows is exact: ties, duplicates, single precision and its fallback."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ptad.reference import neighbours as module
from ptad.reference.neighbours import ROUNDING, TIE_STEP, Neighbours, nearest_places

Matrix = NDArray[np.float64]


def brute_force(points: Matrix, queries: Matrix, k: int) -> NDArray[np.int64]:
    """Sort all squared distances; equal ones go by place."""
    squared = ((queries[:, None, :] - points[None, :, :]) ** 2).sum(axis=2) + TIE_STEP * np.arange(len(points))
    return np.argsort(squared, axis=1, kind="stable")[:, :k]


def lattice(n: int, c: int, seed: int, values: int = 3) -> Matrix:
    """Points on few grid places: most distances occur many times over."""
    return np.random.default_rng(seed).integers(values, size=(n, c)) / 4.0


CASES = {
    "random": lambda: (np.random.default_rng(0).random((900, 6)), np.random.default_rng(1).random((60, 6))),
    "lattice": lambda: (lattice(1500, 4, 0), lattice(60, 4, 1)),
    "two values": lambda: (lattice(2000, 12, 0, 2), lattice(60, 12, 1, 2)),
    "duplicates of one row": lambda: (np.ones((800, 3)), np.ones((5, 3))),
    "all but one equal": lambda: (np.concatenate([np.zeros((700, 3)), np.ones((1, 3))]), np.full((4, 3), 0.9)),
    "nearly equal": lambda: (
        1.0 + 1e-4 * np.random.default_rng(0).random((900, 5)),
        1.0 + 1e-4 * np.random.default_rng(1).random((40, 5)),
    ),
    "far away": lambda: (np.random.default_rng(0).random((900, 5)), 2.0 + lattice(40, 5, 1)),
    "one coordinate": lambda: (lattice(900, 1, 0, 50), lattice(40, 1, 1, 50)),
    "many coordinates": lambda: (
        np.random.default_rng(0).random((700, 300)),
        np.random.default_rng(1).random((9, 300)),
    ),
    "fewer points than neighbours": lambda: (np.random.default_rng(0).random((7, 3)), np.zeros((2, 3))),
}


@pytest.mark.parametrize("k", [1, 32])
@pytest.mark.parametrize("case", CASES)
def test_neighbours_are_those_of_a_search_through_all_rows(case: str, k: int) -> None:
    points, queries = CASES[case]()
    found, differences = Neighbours(points, k)(queries)
    assert np.array_equal(found, brute_force(points, queries, k))
    assert np.array_equal(differences, points[found] - queries[:, None, :])


@pytest.mark.parametrize("case", CASES)
def test_neighbours_are_the_same_alone_and_in_any_batch(case: str) -> None:
    points, queries = CASES[case]()
    search = Neighbours(points, 16)
    together, differences = search(queries)
    order = np.random.default_rng(2).permutation(len(queries))
    assert np.array_equal(search(queries[order])[0], together[order])
    for i in range(0, len(queries), 7):
        alone = search(queries[i : i + 1])
        assert np.array_equal(alone[0][0], together[i]) and np.array_equal(alone[1][0], differences[i])


def test_neighbours_come_nearest_first() -> None:
    points, queries = CASES["random"]()
    _, differences = Neighbours(points, 20)(queries)
    assert (np.diff((differences**2).sum(axis=2), axis=1) >= 0.0).all()


def test_a_row_that_is_a_reference_row_finds_it_first() -> None:
    points = np.random.default_rng(0).random((600, 4))
    found, differences = Neighbours(points, 5)(points)
    assert np.array_equal(found[:, 0], np.arange(600)) and (differences[:, 0] == 0.0).all()


def test_ties_beyond_the_spare_candidates_are_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred rows at exactly the border: single precision cannot choose, and says so."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(1000, 6))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = np.repeat([0.25, 0.5, 1.0], [10, 200, 790])
    points, query = directions * lengths[:, None], np.zeros((1, 6))
    searched = []
    original = Neighbours._exact
    monkeypatch.setattr(Neighbours, "_exact", lambda self, q: searched.append(len(q)) or original(self, q))
    found, _ = Neighbours(points, 32)(query)
    assert sum(searched) == 1
    assert np.array_equal(found, brute_force(points, query, 32))


def test_clear_cases_need_no_second_search(monkeypatch: pytest.MonkeyPatch) -> None:
    points, queries = CASES["random"]()
    monkeypatch.setattr(Neighbours, "_exact", lambda self, q: pytest.fail("searched again"))
    assert Neighbours(points, 16)(queries)[0].shape == (60, 16)


@pytest.mark.parametrize("c", [3, 60, 1000, 4000])
@pytest.mark.parametrize("shape", ["random", "corners", "one sided"])
def test_the_error_of_single_precision_stays_below_its_bound(c: int, shape: str) -> None:
    rng = np.random.default_rng(c)
    if shape == "corners":
        points, queries = 0.5 * (rng.random((300, c)) < 0.5), 0.5 * (rng.random((20, c)) < 0.5)
    else:
        points, queries = rng.random((300, c)), rng.random((20, c)) + (2.0 if shape == "one sided" else 0.0)
    search = Neighbours(points, 4)
    assert search._single is not None
    product, offsets = search._single
    centred = queries - search._centre
    own = (centred**2).sum(axis=1)[:, None]
    rough = (centred.astype(np.float32) @ product + offsets)[:, : len(points)] + own
    exact = ((queries[:, None, :] - points[None, :, :]) ** 2).sum(axis=2) + TIE_STEP * np.arange(len(points))
    assert (np.abs(rough - exact) <= ROUNDING * (own + search._largest)).all()


@pytest.mark.parametrize("width", [1, 5, 64, 320])
@pytest.mark.parametrize("k", [1, 7, 16])
def test_the_search_by_blocks_finds_what_sorting_finds(width: int, k: int) -> None:
    distances = np.random.default_rng(width).permutation(6 * width * module.BLOCK).astype(np.float64)
    distances = distances.reshape(6, -1)
    k = min(k, distances.shape[1])
    found = np.sort(np.take_along_axis(distances, nearest_places(distances, k), axis=1), axis=1)
    assert np.array_equal(found, np.sort(distances, axis=1)[:, :k])
