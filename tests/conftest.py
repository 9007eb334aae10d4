"""What all tests share: a tiny detector, a small table, and the rule for tests that need the benchmark folder."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

from ptad import PTAD

# No verdict depends on how fast the machine is: neither on the time of an example nor on that of drawing it.
settings.register_profile("any-speed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")

# A shell that starts the tests in the background makes them ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Settings of the `paper` preset with which a fit takes a fraction of a second.
TINY = {
    "network.embedding_dim": 4,
    "network.n_heads": 1,
    "network.abd_width": 8,
    "network.n_steps": 20,
    "network.interval": 5,
    "network.batch_size": 64,
    "network.n_reference": 32,
    "network.sinkhorn_iterations": 5,
    "calibration.folds": 2,
    "calibration.most_folds": 2,
}


CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``data`` when nothing names the benchmark folder."""
    if os.environ.get("PTAD_DATA"):
        return
    skip = pytest.mark.skip(reason="PTAD_DATA names no folder of benchmark tables")
    for item in items:
        if item.get_closest_marker("data") is not None:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def tiny() -> dict[str, Any]:
    """Settings with which a fit takes a fraction of a second."""
    return dict(TINY)


@pytest.fixture(scope="session")
def rows() -> NDArray[np.float64]:
    """100 normal rows of 4 columns; the last column follows from the first two."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 4))
    x[:, 3] = x[:, 0] + 0.1 * x[:, 1]
    return x


@pytest.fixture(scope="session")
def frame(rows: NDArray[np.float64]) -> pd.DataFrame:
    """The same rows with a text column, a category and missing values."""
    colours = np.array(["red", "green", "blue"])[np.arange(100) % 3]
    table = pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "colour": colours, "c": rows[:, 3]})
    table.loc[::7, "b"] = np.nan
    return table


@pytest.fixture(scope="session")
def make_detector() -> Callable[..., PTAD]:
    """Return a maker of quiet detectors: ``make_detector(preset, {"group.setting": value}, parameter=value)``."""

    def make(preset: str = "default", config: dict[str, Any] | None = None, **parameters: Any) -> PTAD:
        tiny = TINY if preset == "paper" else {}
        return PTAD(preset, config={**tiny, **(config or {})}, verbose=0, **parameters)

    return make


@pytest.fixture(scope="session")
def detector(make_detector: Callable[..., PTAD], rows: NDArray[np.float64]) -> PTAD:
    """A fitted tiny detector; tests that change it must fit their own."""
    return make_detector().fit(rows)


@pytest.fixture(scope="session")
def frame_detector(make_detector: Callable[..., PTAD], frame: pd.DataFrame) -> PTAD:
    """A tiny detector fitted on the frame."""
    return make_detector().fit(frame)


def arrays_of(model: PTAD) -> dict[str, NDArray[Any]]:
    """Return every number that a fitted detector consists of."""
    found = {f"{i}.{k}": v for i, term in enumerate(model.detector_.pipeline.terms) for k, v in term.state().items()}
    return {**found, "reference": model.detector_.reference, "units": model.detector_.units.mean}


@pytest.fixture(scope="session")
def same_parameters() -> Callable[[PTAD, PTAD], bool]:
    """Return a comparison of two fitted detectors, bit for bit."""

    def same(first: PTAD, second: PTAD) -> bool:
        a, b = arrays_of(first), arrays_of(second)
        return a.keys() == b.keys() and all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)

    return same


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium; its absence is an error in CI and a skip elsewhere."""
    path = shutil.which("chromium")
    if path is None:
        reason = "there is no program 'chromium'; tests/system_programs.sh installs it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS, timeout=600_000)
        yield opened
        opened.close()
