"""What the tests of the paper's network share: a mixed table, tiny settings, a network and a fitted term."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ptad.paper.network import Network
from ptad.paper.settings import NetworkSettings
from ptad.reference import Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.base import FitContext
from ptad.terms.network import NetworkTerm

# The tensors of these tests are so small that starting threads costs more than it saves.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny(tiny: dict[str, Any]) -> dict[str, Any]:
    """The tiny settings of the network, without the name of their group."""
    return {name.removeprefix("network."): value for name, value in tiny.items() if name.startswith("network.")}


@pytest.fixture(scope="session")
def mixed() -> tuple[NDArray[np.float64], Features]:
    """100 rows of four columns: a number, one with gaps, a category of three values, and one of two features."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=100), 1e9 + rng.normal(size=100), np.arange(100) % 3, rng.random((100, 2))])
    x[::7, 1] = np.nan
    x[5, 2] = np.nan
    return x, Features(np.array([0, 1, 2, 3, 3]), np.array([0, 0, 3, 0, 0]))


@pytest.fixture(scope="session")
def make_network(tiny: dict[str, Any]) -> Callable[..., Network]:
    """Return a maker of untrained double-precision networks: ``make_network(n_features, seed, field=value)``."""

    def make(n_features: int = 4, seed: int = 0, **fields: Any) -> Network:
        settings = NetworkSettings(**{**tiny, "n_heads": 2, **fields})
        return Network(torch.Generator().manual_seed(seed), n_features, settings).double()

    return make


@pytest.fixture(scope="session")
def fit_term(tiny: dict[str, Any]) -> Callable[..., NetworkTerm]:
    """Return a maker of fitted tiny terms: ``fit_term(rows, field=value)``."""

    def fit(
        rows: NDArray[np.float64],
        features: Features | None = None,
        *,
        seed: int = 0,
        checkpoint: Path | None = None,
        progress: Any = None,
        device: str = "cpu",
        **fields: Any,
    ) -> NetworkTerm:
        context = FitContext(np.random.default_rng(seed), len(rows), device, progress, checkpoint)
        settings = NetworkSettings(**{**tiny, **fields})
        features = features or Features.numeric(rows.shape[1])
        reference = Reference(rows, features, ReferenceSettings(), device)
        return NetworkTerm.fit(rows, reference, settings, context)

    return fit


@pytest.fixture(scope="session")
def same_state() -> Callable[[NetworkTerm, NetworkTerm], bool]:
    """Return a comparison of two terms, bit for bit."""

    def same(first: NetworkTerm, second: NetworkTerm) -> bool:
        a, b = first.state(), second.state()
        return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)

    return same


@pytest.fixture(scope="module")
def term(fit_term: Callable[..., NetworkTerm], rows: NDArray[np.float64]) -> NetworkTerm:
    """A fitted tiny term."""
    return fit_term(rows)
