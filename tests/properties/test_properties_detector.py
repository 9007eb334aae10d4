"""What holds for any shape, setting and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from ptad import PTAD
from ptad.errors import TrainingError

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])

configs = st.fixed_dictionaries(
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
        "sampled_branch": st.booleans(),
        "scaling": st.sampled_from(["standard", "minmax"]),
        "calibration": st.sampled_from(["auto", "split"]),
        "members": st.sampled_from(["single", "folds"]),
        "n_heads": st.sampled_from([1, 2]),
        "plan_gradient": st.booleans(),
    }
)
TINY = {
    "embedding_dim": 4,
    "abd_width": 8,
    "n_steps": 24,
    "learning_rate": 0.01,
    "interval": 6,
    "batch_size": 16,
    "n_folds": 2,
    "n_reference": 8,
    "sinkhorn_iterations": 5,
    "input_noise": 0.0,
}


@few
@given(st.integers(4, 40), st.integers(1, 6), configs, st.sampled_from([np.float32, np.float64, np.int32]), st.data())
def test_any_table_and_setting(
    n_rows: int, n_columns: int, config: dict[str, Any], dtype: type, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = (10 * rng.normal(size=(n_rows, n_columns))).astype(dtype)
    if np.issubdtype(dtype, np.floating) and data.draw(st.booleans()):
        x[rng.random(x.shape) < 0.2] = np.nan
        x[0] = x[0] if np.isfinite(x[0]).all() else 1.0
        x[1] = 2.0  # every column keeps two values
    try:
        model = PTAD(config={**TINY, **config}, verbose=0).fit(x)
    except TrainingError:
        reject()  # 24 steps on noise: about one in a hundred learns nothing, and says so
    scores = model.anomaly_score(x)
    assert scores.shape == (n_rows,) and np.isfinite(scores).all() and (scores >= 0).all()
    order = rng.permutation(n_rows)
    assert np.array_equal(model.anomaly_score(x[order]), scores[order])
    assert np.array_equal(model.anomaly_score(x[:1]), scores[:1])
    assert np.allclose(sum(model.score_parts(x).values()), scores, rtol=1e-5, atol=1e-6)
    assert np.allclose(model.explain(x).contribution_values.sum(axis=1), scores, rtol=1e-5, atol=1e-6)
    p = model.p_value(x)
    assert ((p > 0) & (p <= 1)).all()
    assert np.array_equal(model.predict(x) == -1, p <= model.false_alarm_rate_)
    assert (np.diff(p[np.argsort(scores)]) <= 0).all()  # the stranger, the smaller


@few
@given(st.floats(0.1, 100.0), st.floats(-100.0, 100.0))
def test_units_do_not_matter(scale: float, shift: float) -> None:
    """Columns in other units give the same scores, up to rounding: powers of two exactly, others nearly."""
    x = np.random.default_rng(0).normal(size=(30, 3))
    y = x * scale + shift
    config = {**TINY, "n_heads": 1, "n_steps": 4}
    first = PTAD(config=config, verbose=0).fit(x).anomaly_score(x)
    second = PTAD(config=config, verbose=0).fit(y).anomaly_score(y)
    assert np.corrcoef(first, second)[0, 1] > 0.99


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_duplicated_rows_have_one_score(missing: float) -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(10, 3)), 5, axis=0)
    x[np.repeat(rng.random((10, 3)) < missing, 5, axis=0)] = np.nan
    scores = PTAD(config={**TINY, "n_heads": 1}, verbose=0).fit(x).anomaly_score(x)
    assert (scores.reshape(10, 5) == scores[::5, None]).all()
