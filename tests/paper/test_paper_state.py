"""State round trips: arrays out, arrays in, the same scores; a state that does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptad.errors import BundleError
from ptad.layout import check_arrays
from ptad.reference import Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.network import NetworkTerm

Fit = Callable[..., NetworkTerm]
Mixed = tuple[NDArray[np.float64], Features]


@pytest.mark.parametrize(
    "fields",
    [{}, {"backbone": "mlp"}, {"projection_mask": "random"}, {"context": "batch"}, {"scaling": "minmax", "clip": 1.0}],
    ids=str,
)
def test_round_trip(fit_term: Fit, mixed: Mixed, fields: dict[str, Any]) -> None:
    x, features = mixed
    term = fit_term(x, features, **fields)
    state = {name: array.copy() for name, array in term.state().items()}
    reference = Reference(x, features, ReferenceSettings())
    again = NetworkTerm.from_state(state, reference, term.settings)
    for method in ("value", "transform"):
        assert np.array_equal(getattr(again, method)(x), getattr(term, method)(x))
    first, second = term.explain(x), again.explain(x)
    assert np.array_equal(first.shares, second.shares) and np.array_equal(first.expected, second.expected)
    assert again.state().keys() == state.keys()
    assert all(np.array_equal(array, state[name]) for name, array in again.state().items())
    assert again.batch_size == term.batch_size and again.history == []


def test_what_a_state_holds(term: NetworkTerm) -> None:
    state = term.state()
    assert all(type(array) is np.ndarray for array in state.values())
    assert all(array.dtype == np.float32 for name, array in state.items() if name.startswith("network."))
    assert {n for n in state if not n.startswith("network.")} == {
        "encoding.centre",
        "encoding.scale",
        "encoding.missing_rate",
        "reference_index",
    }


def test_a_state_that_does_not_fit_is_refused(term: NetworkTerm, rows: NDArray[np.float64]) -> None:
    state, features = term.state(), Features.numeric(4)
    without = {name: array for name, array in state.items() if name != "network.projection.basis_vectors"}
    damaged = [
        (without, rows, features),
        ({**state, "reference_index": state["reference_index"] + 1000}, rows, features),
        ({name: array for name, array in state.items() if name != "reference_index"}, rows, features),
        (state, rows[:, :3], Features.numeric(3)),
    ]
    for arrays, reference, columns in damaged:
        with pytest.raises(BundleError, match=r"The model is damaged: it.* array .*[Ff]it again"):
            check_arrays(NetworkTerm.layouts(columns, term.settings, len(reference)), arrays)
