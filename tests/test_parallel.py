"""Rows in chunks and chunks in threads: the same result as in one piece."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from ptad import PTAD
from ptad.parallel import in_chunks

Rows = NDArray[np.float64]


@pytest.mark.parametrize("chunk", [1, 3, 10, 99])
@pytest.mark.parametrize("workers", [1, 4])
def test_chunks_come_back_in_order(monkeypatch: pytest.MonkeyPatch, chunk: int, workers: int) -> None:
    monkeypatch.setattr("ptad.parallel.n_processors", lambda: workers)
    rows = np.arange(10)
    assert np.array_equal(np.concatenate(in_chunks(lambda part: 2 * part, rows, chunk)), 2 * rows)
    assert [len(part) for part in in_chunks(lambda part: part, rows, chunk)] == [
        min(chunk, 10 - start) for start in range(0, 10, chunk)
    ]


def test_an_error_in_a_chunk_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptad.parallel.n_processors", lambda: 3)

    def fails(part: Rows) -> Rows:
        if part[0] == 4:
            raise ValueError("the fourth")
        return part

    with pytest.raises(ValueError, match="the fourth"):
        in_chunks(fails, np.arange(10), 2)


@pytest.fixture(scope="module")
def fitted(make_detector: Callable[..., PTAD]) -> PTAD:
    return make_detector(config={"calibration.method": "none"}).fit(np.random.default_rng(0).normal(size=(700, 5)))


def test_scores_are_the_same_with_any_number_of_threads_and_any_chunk(
    fitted: PTAD, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(1).normal(size=(600, 5))
    scores = fitted.anomaly_score(rows)
    contributions = fitted.explain(rows).contribution_values
    for workers in (1, 2, 7):
        monkeypatch.setattr("ptad.parallel.n_processors", lambda workers=workers: workers)
        for chunk in (1 if workers == 2 else 50, 256, 10_000):
            monkeypatch.setattr("ptad.parallel.in_chunks.__defaults__", (chunk,))
            assert np.array_equal(fitted.anomaly_score(rows), scores)
            assert np.array_equal(fitted.explain(rows[:99]).contribution_values, contributions[:99])


def test_several_callers_at_once_get_their_own_scores(fitted: PTAD) -> None:
    """A service scores in several threads with one model."""
    rows = np.random.default_rng(1).normal(size=(400, 5))
    scores = fitted.anomaly_score(rows)
    parts = [slice(i, i + 100) for i in range(0, 400, 50)]
    with ThreadPoolExecutor(4) as pool:
        for part, found in zip(parts, pool.map(lambda p: fitted.anomaly_score(rows[p]), parts), strict=True):
            assert np.array_equal(found, scores[part])
