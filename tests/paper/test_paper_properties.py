"""What holds for any shape and setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from ptad.errors import TrainingError
from ptad.paper.settings import NetworkSettings
from ptad.reference import Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.base import FitContext
from ptad.terms.network import NetworkTerm

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])

fields = st.fixed_dictionaries(
    {
        "backbone": st.sampled_from(["npt", "npt", "transformer", "mlp"]),
        "projection_mask": st.sampled_from(["none", "single", "multiple", "random"]),
        "data_mask": st.booleans(),
        "basis_vectors": st.booleans(),
        "orthogonality": st.booleans(),
        "prototypes": st.booleans(),
        "basis_distance": st.sampled_from(["transport", "mse"]),
        "prototype_distance": st.sampled_from(["transport", "mse"]),
        "matching": st.sampled_from(["nearest", "product_min"]),
        "n_basis_vectors": st.integers(1, 4),
        "n_prototypes": st.integers(1, 4),
        "scaling": st.sampled_from(["standard", "minmax"]),
        "clip": st.sampled_from([None, 1.0]),
        "optimizer": st.sampled_from(["lamb", "adamw"]),
        "n_heads": st.sampled_from([1, 2]),
        "plan_gradient": st.booleans(),
    }
)
SMALL = {
    "embedding_dim": 4,
    "abd_width": 8,
    "n_heads": 1,
    "n_steps": 24,
    "interval": 6,
    "batch_size": 16,
    "n_reference": 8,
    "sinkhorn_iterations": 5,
}


def fit(rows: Any, features: Features, changes: dict[str, Any]) -> NetworkTerm:
    chosen = NetworkSettings(**{**SMALL, **changes})
    try:
        reference = Reference(rows, features, ReferenceSettings())
        return NetworkTerm.fit(rows, reference, chosen, FitContext(np.random.default_rng(0), len(rows)))
    except TrainingError:
        reject()  # 24 steps on noise: about one in a hundred learns nothing, and says so


@few
@given(st.integers(2, 40), st.lists(st.integers(0, 3), min_size=1, max_size=5), fields, st.booleans(), st.data())
def test_any_table_and_setting(
    n_rows: int, n_categories: list[int], changes: dict[str, Any], gaps: bool, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    steps = data.draw(st.lists(st.booleans(), min_size=len(n_categories) - 1, max_size=len(n_categories) - 1))
    features = Features(np.cumsum([0, *steps]), np.array(n_categories))
    x = np.column_stack([rng.integers(0, k, n_rows) if k else 10 * rng.normal(size=n_rows) for k in n_categories])
    x = x.astype(np.float64)
    if gaps:
        x[rng.random(x.shape) < 0.2] = np.nan
    term = fit(x, features, changes)
    new = np.concatenate([x, np.where(features.n_categories > 0, features.n_categories, 1e3)[None]])  # unseen
    value = term.value(new)
    assert value.shape == (n_rows + 1,) and np.isfinite(value).all() and (value >= 0).all()
    order = rng.permutation(len(new))
    assert np.array_equal(term.value(new[order]), value[order])
    assert np.array_equal(term.value(new[-1:]), value[-1:])
    found = term.explain(new)
    assert np.array_equal(found.value, value)
    assert found.shares.shape == found.reason.shape == found.partner.shape == (len(new), features.n_columns)
    assert (found.shares >= 0).all() and np.allclose(found.shares.sum(axis=1)[value > 0], 1.0)
    assert found.expected.shape == new.shape and np.isfinite(found.expected).all()
    reference = Reference(x, features, ReferenceSettings())
    again = NetworkTerm.from_state(term.state(), reference, term.settings)
    assert np.array_equal(again.value(new), value)


@few
@given(st.floats(0.1, 100.0), st.floats(-100.0, 100.0))
def test_units_do_not_matter(scale: float, shift: float) -> None:
    """Columns in other units give nearly the same scores: what differs is rounding."""
    x = np.random.default_rng(0).normal(size=(30, 3))
    y = x * scale + shift
    first, second = (fit(t, Features.numeric(3), {"n_steps": 4}).value(t) for t in (x, y))
    assert np.corrcoef(first, second)[0, 1] > 0.99


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_duplicate_rows_have_one_score(missing: float) -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(10, 3)), 5, axis=0)
    x[np.repeat(rng.random((10, 3)) < missing, 5, axis=0)] = np.nan
    value = fit(x, Features.numeric(3), {}).value(x)
    assert (value.reshape(10, 5) == value[::5, None]).all()
