"""Encoding of rows: scaling, one-hot groups, unseen categories, gaps, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptad.paper.encoding import BOUND, FLAT_SCALE, Encoding
from ptad.paper.settings import NetworkSettings
from ptad.tables.features import Features

Mixed = tuple[NDArray[np.float64], Features]
CATEGORY = Features(np.array([0]), np.array([3]))


def fit(rows: Any, features: Features, **fields: Any) -> Encoding:
    return Encoding.fit(np.asarray(rows, dtype=np.float64), features, NetworkSettings(**fields))


def encode(encoding: Encoding, rows: Any) -> NDArray[np.float32]:
    return encoding.encode(np.asarray(rows, dtype=np.float64)).numpy()


def test_standard_scaling_of_numbers() -> None:
    x = np.array([[1.0, 5.0, 2.0], [3.0, 5.0, np.nan], [8.0, 5.0, 6.0]])
    encoded = encode(fit(x, Features.numeric(3)), x)
    assert encoded.dtype == np.float32
    assert np.allclose(encoded[:, 0], (x[:, 0] - 4.0) / x[:, 0].std(), atol=1e-6)
    assert (encoded[:, 1] == 0.0).all()  # it never varied: any other value lies as far out as it is away
    assert encoded[0, 2] == -1.0 and np.isnan(encoded[1, 2]) and encoded[2, 2] == 1.0


def test_minmax_scaling_of_numbers() -> None:
    x = np.array([[1.0, 5.0], [3.0, 5.0], [9.0, 5.0]])
    assert np.allclose(encode(fit(x, Features.numeric(2), scaling="minmax"), x), [[0, 0], [0.25, 0], [1, 0]])


def test_huge_and_tiny_numbers_stay_finite() -> None:
    x = np.array([[1e300, 1e-300], [-1e300, 3e-300], [5e299, 2e-300]])
    for scaling in ("standard", "minmax"):
        encoding = fit(x, Features.numeric(2), scaling=scaling)
        assert np.isfinite(encode(encoding, x)).all() and np.abs(encode(encoding, x)).max() < 3
        assert np.allclose(encoding.decode(encoding.encode(x)).numpy(), x, rtol=1e-6)
    far = encode(fit([[0.0], [1.0]], Features.numeric(1)), [[1e300], [-1e300]])
    assert far[:, 0].tolist() == [BOUND, -BOUND]


@pytest.mark.parametrize(("scaling", "low", "high"), [("standard", -2.0, 2.0), ("minmax", -2.0, 3.0)])
def test_clip(scaling: str, low: float, high: float) -> None:
    encoding = fit([[0.0], [1.0]], Features.numeric(1), scaling=scaling, clip=2.0)
    assert encode(encoding, [[-100.0], [100.0]])[:, 0].tolist() == [low, high]


def test_one_hot_groups() -> None:
    codes = np.array([[0.0], [0.0], [0.0], [1.0], [np.nan]])
    encoding = fit(codes, CATEGORY)
    encoded = encode(encoding, codes)
    assert encoded.shape == (5, 4) and np.isnan(encoded[4]).all()
    assert np.allclose(encoded[:4, 0], (np.array([1, 1, 1, 0]) - 0.75) / np.sqrt(0.1875), atol=1e-6)
    assert encoding.scale[2] == FLAT_SCALE and (encoded[:4, 2] == 0.0).all()  # known, but not in these rows
    assert np.allclose(encoding.missing_rate, 0.2)


def test_an_unseen_category_lies_at_least_as_far_out_as_the_rarest_known_one() -> None:
    codes = np.zeros((1000, 1))
    codes[0] = 1.0
    encoding = fit(codes, CATEGORY)
    encoded = encode(encoding, [[0.0], [1.0], [3.0]])
    assert encoded[2, 3] >= encoded[1, 1] > encoded[1, 0]
    assert encoded[0, 3] == encoded[1, 3] == 0.0
    plain = encode(fit(codes, CATEGORY, scaling="minmax"), [[1.0], [3.0]])
    assert plain.tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]


def test_the_way_back(mixed: Mixed) -> None:
    x, features = mixed
    encoding = fit(x, features)
    decoded = encoding.decode(encoding.encode(x)).numpy()
    seen = ~np.isnan(x)
    assert np.allclose(decoded[seen], x[seen], rtol=1e-6, atol=1e-6)
    assert (decoded[:, 2][seen[:, 2]] == x[:, 2][seen[:, 2]]).all()
    unseen = x[:1].copy()
    unseen[0, 2] = 3.0
    assert encoding.decode(encoding.encode(unseen)).numpy()[0, 2] in (0.0, 1.0, 2.0)  # never "unseen"


def test_columns_of_the_encoded_ones(mixed: Mixed) -> None:
    encoding = fit(*mixed)
    assert encoding.n_encoded == 8
    assert encoding.source.tolist() == [0, 1, 2, 2, 2, 2, 3, 4]
    assert encoding.column.tolist() == [0, 1, 2, 2, 2, 2, 3, 3]


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_missing_value_indicators(scaling: str) -> None:
    x = np.array([[1.0, 0.0], [2.0, np.nan], [3.0, 1.0], [5.0, np.nan]])
    observed, absent = fit(x, Features(np.array([0, 1]), np.array([0, 2])), scaling=scaling).indicator_errors()
    variance = np.array([0.01, 0.26]) if scaling == "standard" else np.ones(2)
    assert np.allclose(observed[0], 0.0) and np.allclose(absent[0], 1.0 / variance[0])
    # three one-hot columns, one indicator
    assert np.allclose(observed[1:].sum(), 0.25 / variance[1]) and np.allclose(absent[1:].sum(), 0.25 / variance[1])


def test_blocks_leave_no_trace(mixed: Mixed, monkeypatch: pytest.MonkeyPatch) -> None:
    x, features = mixed
    encoding = fit(x, features)
    whole = encoding.encode(x)
    monkeypatch.setattr(Encoding, "rows_at_once", 7)
    assert torch.equal(torch.nan_to_num(encoding.encode(x), 9.0), torch.nan_to_num(whole, 9.0))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.sampled_from(["standard", "minmax"]))
def test_units_do_not_matter(n_rows: int, shift: float, factor: float, scaling: str) -> None:
    x = np.random.default_rng(n_rows).normal(size=(n_rows, 2))
    moved = x * factor + shift
    first, second = (encode(fit(t, Features.numeric(2), scaling=scaling), t) for t in (x, moved))
    lost = 1e-15 * (1.0 + abs(shift) / factor)  # digits of the small numbers that the large shift takes
    if n_rows > 1:
        assert np.allclose(first, second, atol=1e-5 + 1e3 * lost)


def test_columns_without_any_value() -> None:
    x = np.full((3, 2), np.nan)
    encoding = fit(x, Features(np.array([0, 1]), np.array([0, 2])))
    assert np.isnan(encode(encoding, x)).all()
    assert np.isfinite(encode(encoding, [[1.0, 2.0]])).all()
