"""Any detector of PyOD as a compared method: IForest, LOF, OCSVM, GMM, and ``pyod:NAME`` for the rest."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Self, cast

import numpy as np

from ptad.arrays import Matrix
from ptad.benchmark.peers.base import Peer
from ptad.errors import SettingError, needs_extra


@dataclass(eq=False, kw_only=True)
class PyodPeer(Peer):
    """A PyOD detector, fitted on normal rows only.

    PyOD's contamination only affects its threshold, not its scores. Some detectors draw from the global generators,
    which are seeded for the call and restored afterwards.
    """

    detector: str  # the class name in PyOD, such as "ECOD", in any case
    options: dict[str, Any] = field(default_factory=dict)  # its keyword arguments; random_state is added
    max_rows: int | None = None  # training rows, drawn at random, for methods of quadratic cost; see ``capped_``

    @classmethod
    def make(cls, **settings: Any) -> Self:
        """Return an unfitted detector; settings that are not fields of this class are options of the detector."""
        own = {item.name: settings.pop(item.name) for item in fields(cls) if item.name in settings}
        return cls(**{"options": settings, **own})

    def __post_init__(self) -> None:
        self._factory = pyod_class(self.detector)
        self.detector = self._factory.__name__
        self.name = self.name or f"pyod:{self.detector}"
        super().__post_init__()
        # These two rank a row among the rows scored with it, unlike all others.
        self.batch_dependent = self.detector in ("ECOD", "COPOD")

    def params(self) -> dict[str, Any]:
        """Return every setting that affects the scores."""
        return {"detector": self.detector, **self.options, "max_rows": self.max_rows}

    def _fit(self, rows: Matrix) -> None:
        if self.max_rows is not None and len(rows) > self.max_rows:
            chosen = np.random.default_rng(self.random_state).choice(len(rows), self.max_rows, replace=False)
            self.capped_ = f"fitted on {self.max_rows} of {len(rows)} training rows"
            rows = rows[np.sort(chosen)]
        self._model = self._make(len(rows))
        with _seeded_global_generators(self.random_state), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model.fit(rows)

    def _score(self, rows: Matrix) -> Matrix:
        with _seeded_global_generators(self.random_state), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self._model.decision_function(rows), dtype=np.float64).ravel()

    def _make(self, n_rows: int) -> Any:
        accepted = inspect.signature(self._factory).parameters
        options = dict(self.options)
        unknown = sorted(set(options) - set(accepted))
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
            raise SettingError(f"{self.name} has no option {unknown[0]!r}. It takes: {', '.join(accepted)}.")
        if "random_state" in accepted:
            options.setdefault("random_state", self.random_state)
        if "n_features" in accepted:
            options.setdefault("n_features", self._n_features)
        for size in ("n_neighbors", "n_components"):
            if isinstance(options.get(size), int):
                options[size] = min(options[size], max(1, n_rows - 1))
        return self._factory(**options)


@cache
def pyod_class(detector: str) -> Callable[..., Any]:
    """Return a PyOD detector class by its name, in any case."""
    with needs_extra("bench", f"The detector 'pyod:{detector}'", "pyod"):
        models = importlib.import_module("pyod.models")
        base = importlib.import_module("pyod.models.base").BaseDetector
    name_lower = detector.lower().replace("_", "")
    modules = [m.name for m in pkgutil.iter_modules(models.__path__) if not m.name.startswith("_")]
    matches = [m for m in modules if m.replace("_", "") == name_lower]
    for module in matches:
        try:
            loaded = importlib.import_module(f"pyod.models.{module}")
        except ImportError as error:
            raise SettingError(f"'pyod:{detector}' cannot be loaded: {error}.") from error
        for name, member in inspect.getmembers(loaded, inspect.isclass):
            if name.lower() == name_lower and issubclass(member, base):
                return cast("Callable[..., Any]", member)
    raise SettingError(f"PyOD has no detector {detector!r}. Its modules: {', '.join(modules)}.")


@contextmanager
def _seeded_global_generators(seed: int) -> Iterator[None]:
    """Seed the global generators of numpy and, if imported, torch; restore their state at the end."""
    torch: Any = sys.modules.get("torch")
    numpy_state = np.random.get_state()  # noqa: NPY002 - third-party code draws from it
    torch_state = None if torch is None else torch.get_rng_state()
    np.random.seed(seed % 2**32)  # noqa: NPY002
    if torch is not None:
        torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(torch_state)
