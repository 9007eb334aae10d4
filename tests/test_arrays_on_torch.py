"""The same code on numpy arrays and on torch tensors: scores, contributions and reasons agree."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptad.terms
from ptad import arrays
from ptad.config import make_config
from ptad.detector import Detector, Pipeline
from ptad.reference import Batch, Reference
from ptad.tables.features import Features
from ptad.terms.base import TermSettings

torch = pytest.importorskip("torch")
Matrix = NDArray[np.float64]

ON_TORCH = "cpu:0"  # any name but "cpu" is a device of torch


def numeric(n: int, rng: np.random.Generator) -> Matrix:
    rows = rng.normal(size=(n, 7)) @ rng.normal(size=(7, 7))
    rows[:, 0] = np.exp(rows[:, 0])
    rows[:, 1] = 1e9 + 1e-3 * rows[:, 1]
    return rows


def typed(n: int, rng: np.random.Generator) -> Matrix:
    """Four numbers, of which two belong to one column, and three categories."""
    codes = [rng.integers(0, k, n) for k in (4, 3, 2)]
    rows = np.column_stack([rng.normal(size=(n, 4)), *codes]).astype(np.float64)
    rows[:, 3] += rows[:, 4]
    return rows


def with_gaps(rows: Matrix, rng: np.random.Generator) -> Matrix:
    rows = np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
    rows[0] = np.nan
    return rows


def unseen(rows: Matrix) -> Matrix:
    """The first rows with codes that stand for unseen categories."""
    rows = rows.copy()
    rows[:20, 4], rows[10:30, 6] = 4, 2
    return rows


NUMERIC = Features.numeric(7)
TYPED = Features(np.array([0, 1, 1, 2, 3, 4, 5]), np.array([0, 0, 0, 0, 4, 3, 2]))


def tables() -> dict[str, tuple[Features, Matrix, Matrix]]:
    """Name to features, training rows and rows to score."""
    rng = np.random.default_rng(0)
    known, new = typed(400, rng), typed(60, rng)
    return {
        "numeric": (NUMERIC, numeric(400, rng), numeric(60, rng) * 1.5),
        "typed": (TYPED, known, new),
        "missing": (TYPED, with_gaps(known, rng), with_gaps(new, rng)),
        "unseen": (TYPED, known, unseen(new)),
        "repeated": (NUMERIC, np.round(numeric(400, rng) / 4), np.round(numeric(60, rng) / 4)),
        "training": (TYPED, known, known[:60]),
        "many": (NUMERIC, numeric(3000, rng), numeric(60, rng)),
        "one column": (Features.numeric(1), known[:, :1], new[:, :1]),
        "narrow": (Features(np.array([0]), np.array([4])), known[:, 4:5], unseen(new)[:, 4:5]),
    }


def all_terms() -> tuple[TermSettings, ...]:
    """Settings of every term there is but the network's, which is torch in any case."""
    for module in pkgutil.iter_modules(ptad.terms.__path__):
        if module.name != "network":
            importlib.import_module(f"ptad.terms.{module.name}")
    first = make_config("default").terms
    known = {type(settings) for settings in first}
    others = [settings for settings in TermSettings.__subclasses__() if settings not in known]
    return first + tuple(settings() for settings in others if settings.title() != "network")


@pytest.fixture(scope="module", params=list(tables()))
def both(request: pytest.FixtureRequest) -> tuple[Detector, Pipeline, Matrix]:
    """A detector, its pipeline for torch, and rows to score."""
    features, known, new = tables()[request.param]
    config = replace(make_config("default", {"calibration.method": "split"}), terms=all_terms())
    detector = Detector.fit(known, features, config, seed=0)
    reference = Reference(detector.reference, features, config.reference, ON_TORCH)
    made = [type(term).from_state(term.state(), reference, term.settings) for term in detector.pipeline.terms]
    return detector, Pipeline(reference, made), new


def test_terms_are_given_tensors_and_return_them(both: tuple[Detector, Pipeline, Matrix]) -> None:
    _, pipeline, rows = both
    for term in pipeline.terms:
        found = term.value(Batch(torch.from_numpy(rows), pipeline.reference))
        assert isinstance(found, torch.Tensor) and found.dtype == torch.float64


def test_values_agree(both: tuple[Detector, Pipeline, Matrix]) -> None:
    detector, pipeline, rows = both
    expected, found = detector.pipeline.values(rows), pipeline.values(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(detector.units(found), detector.units(expected), rtol=1e-6, atol=1e-7)


def test_columns_and_reasons_agree(both: tuple[Detector, Pipeline, Matrix]) -> None:
    detector, pipeline, rows = both
    for name in ("value", "shares", "reason", "partner", "expected"):
        for one, other in zip(detector.pipeline.explain(rows), pipeline.explain(rows), strict=True):
            expected, found = getattr(one, name), getattr(other, name)
            assert (expected is None) == (found is None)
            if expected is not None:
                assert expected.dtype == found.dtype
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8, err_msg=name)


def test_transform_agrees(both: tuple[Detector, Pipeline, Matrix]) -> None:
    detector, pipeline, rows = both
    np.testing.assert_allclose(pipeline.transform(rows), detector.pipeline.transform(rows), rtol=1e-6, atol=1e-8)


def test_a_fit_with_torch_gives_the_scores_of_a_fit_without() -> None:
    features, known, new = tables()["missing"]
    scores = [
        Detector.fit(known, features, make_config("default", {}), seed=0, device=device).scores(new)
        for device in ("cpu", ON_TORCH)
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-6)


def test_values_are_the_same_in_chunks(both: tuple[Detector, Pipeline, Matrix], monkeypatch: Any) -> None:
    _, pipeline, rows = both
    whole = pipeline.values(rows)
    monkeypatch.setattr("ptad.detector.DEVICE_CHUNK_ROWS", 7)
    np.testing.assert_allclose(pipeline.values(rows), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor])
def test_operations_are_what_they_say(make: Any) -> None:
    rng = np.random.default_rng(1)
    x, places = rng.normal(size=(5, 6, 3)), rng.integers(0, 6, (5, 4))
    chosen = arrays.pick(make(x), make(places))
    np.testing.assert_array_equal(arrays.to_numpy(chosen), x[np.arange(5)[:, None], places])
    chosen = arrays.gather(make(x[:, :, 1]), make(places))
    np.testing.assert_array_equal(arrays.to_numpy(chosen), x[np.arange(5)[:, None], places, 1])
    np.testing.assert_array_equal(
        arrays.to_numpy(arrays.take_columns(make(x[0]), np.array([2, 0, 2]))), x[0][:, [2, 0, 2]]
    )
    square = x[:, :3] @ x[:, :3].swapaxes(1, 2) + np.eye(3)
    factor = arrays.to_numpy(arrays.cholesky(make(square)))
    np.testing.assert_allclose(factor @ factor.swapaxes(1, 2), square, atol=1e-12)
    undone = arrays.to_numpy(arrays.inverse(make(factor))) @ factor
    np.testing.assert_allclose(undone, np.broadcast_to(np.eye(3), undone.shape), atol=1e-12)
    knots = np.sort(rng.integers(0, 4, (3, 8)).astype(np.float64), axis=1)
    values = rng.integers(-1, 5, (10, 3)).astype(np.float64)
    below, up_to = arrays.count_below(make(knots), make(values))
    np.testing.assert_array_equal(arrays.to_numpy(below), (knots.T[None] < values[:, None]).sum(axis=1))
    np.testing.assert_array_equal(arrays.to_numpy(up_to), (knots.T[None] <= values[:, None]).sum(axis=1))


def test_constants_are_told_apart_by_content_type_and_shape() -> None:
    other = torch.zeros(1)
    made = [arrays.like(x, other) for x in (np.zeros(2), np.zeros((2, 1)), np.zeros(2, dtype=np.int64), np.ones(2))]
    assert [(tuple(t.shape), t.dtype, t.sum().item()) for t in made] == [
        ((2,), torch.float64, 0),
        ((2, 1), torch.float64, 0),
        ((2,), torch.int64, 0),
        ((2,), torch.float64, 2),
    ]
    assert arrays.like(np.ones(2), other) is made[3]
