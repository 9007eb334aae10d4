"""The interface of a compared method: fit on normal rows, return one score per row.

A peer is smaller than an estimator: it gets a finite float matrix whose columns are already scaled, unless it declares
a scaling of its own (``own_scaling``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ptad.arrays import Matrix
from ptad.errors import DataError, SettingError


@dataclass(eq=False, kw_only=True)
class Peer(ABC):
    """Base class of the compared methods; the settings are the fields of a dataclass.

    A child implements ``_fit`` and ``_score`` for matrices that have been checked.
    """

    random_state: int = 0  # the global generators are not touched; deterministic methods ignore it
    device: str = "cpu"  # "auto", "cpu" or "cuda"; methods that only run on the CPU ignore it
    name: str = ""  # in the registry and in all tables of results

    batch_dependent = False  # whether the score of a row may change with the rows scored beside it
    own_scaling = False  # whether the method scales its columns itself; it is then run once, on unscaled columns
    n_parameters_ = 0  # trained ones; set by ``fit``
    capped_ = ""  # how the run was cut below what the publication asks for; complete after scoring
    _n_features: int | None = None

    def __post_init__(self) -> None:
        self.name = self.name or type(self).__name__
        self.history_: list[dict[str, float]] = []  # training losses, oldest first

    @classmethod
    def make(cls, **settings: Any) -> Self:
        """Return an unfitted method with these settings."""
        return cls(**settings)

    def params(self) -> dict[str, Any]:
        """Return every setting that affects the scores, as JSON-ready values."""
        common = {field.name for field in fields(Peer)}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in common}

    def fit(self, X: npt.ArrayLike) -> Self:
        """Fit on normal rows."""
        rows = check_matrix(X, self.name)
        self.capped_ = ""
        self._n_features = rows.shape[1]
        self._fit(rows)
        return self

    def anomaly_score(self, X: npt.ArrayLike) -> Matrix:
        """Return one score per row; higher is more anomalous."""
        if self._n_features is None:
            raise DataError(f"{self.name} has not been fitted: call fit first.")
        return np.asarray(self._score(check_matrix(X, self.name, self._n_features)), dtype=np.float64)

    def p_value(self, scores: Matrix) -> Matrix | None:
        """Return the p-values of scores; None for a method without a calibrated threshold."""
        return None

    @abstractmethod
    def _fit(self, rows: Matrix) -> None: ...

    @abstractmethod
    def _score(self, rows: Matrix) -> Matrix: ...


def check_matrix(X: npt.ArrayLike, method: str, n_features: int | None = None) -> Matrix:
    """Return a copy of ``X`` as a finite float64 matrix, or raise; ``n_features`` is the number seen in ``fit``.

    The copy keeps methods from changing the caller's array.
    """
    matrix = np.array(X, dtype=np.float64, order="C", copy=True)
    if matrix.ndim != 2:
        raise DataError(f"{method} needs a matrix (rows x columns), got an array of shape {matrix.shape}.")
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise DataError(f"{method} needs at least one row and one column, got shape {matrix.shape}.")
    if n_features is not None and matrix.shape[1] != n_features:
        raise DataError(f"{method} was fitted on {n_features} columns, but these rows have {matrix.shape[1]}.")
    finite = np.isfinite(matrix)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise DataError(
            f"{method} cannot use row {row}, column {column}: the value is {matrix[row, column]}. "
            "Impute or drop such cells first."
        )
    return matrix


def check_choice(value: str, choices: tuple[str, ...], parameter: str, owner: str) -> None:
    """Refuse a value that is not among ``choices``."""
    if value not in choices:
        options = ", ".join(repr(c) for c in choices)
        raise SettingError(f"The '{parameter}' parameter of {owner} must be one of {options}. Got {value!r} instead.")


def batch_dependence(peer: Peer, X: npt.ArrayLike) -> float:
    """Return how far scores change with the batch: the largest change over several batchings, relative to their spread.

    The spread is that between the 10 % and the 90 % quantile.
    """
    rows = np.asarray(X, dtype=np.float64)
    together = peer.anomaly_score(rows)
    halves = np.array_split(np.random.default_rng(0).permutation(len(rows)), 2)
    apart = np.empty_like(together)
    for half in halves:
        apart[half] = peer.anomaly_score(rows[half])
    alone = np.array([peer.anomaly_score(rows[i : i + 1])[0] for i in range(min(5, len(rows)))])
    change = max(np.abs(together - apart).max(), np.abs(together[: len(alone)] - alone).max())
    spread = float(np.quantile(together, 0.9) - np.quantile(together, 0.1))
    return float(change / spread) if spread > 0 else float(change)
