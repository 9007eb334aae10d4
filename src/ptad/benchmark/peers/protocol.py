"""What every compared method looks like from outside: fit on normal rows, give one number per row.

A peer is deliberately smaller than an estimator. It receives a finite float matrix that somebody else has scaled,
except where ``own_scaling`` says that the method brings a scaling of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ptad.errors import DataError, SettingError

FloatArray = npt.NDArray[np.float64]


@dataclass(eq=False, kw_only=True)
class Peer(ABC):
    """A detector as the benchmark sees it; its settings are the fields of a dataclass.

    A child says how to fit and score a checked matrix.

    Parameters
    ----------
    random_state : int
        Seed; no global generator is touched. Methods without chance ignore it.
    device : str
        ``"auto"``, ``"cpu"`` or ``"cuda"``; methods that know only the CPU ignore it.
    name : str
        The name in the registry and in every table.

    Attributes
    ----------
    batch_dependent : bool
        Whether the score of a row may change with the rows scored beside it.
    own_scaling : bool
        Whether the method scales its columns itself; such a method is run on unscaled columns, once.
    n_parameters_ : int
        Trained numbers, 0 where the notion makes no sense. Known after ``fit``.
    capped_ : str
        Why less was done than the published method asks for; empty when nothing was cut. Known after scoring.
    history_ : list of dict
        Training losses, oldest first; empty for methods without training steps.
    """

    random_state: int = 0
    device: str = "cpu"
    name: str = ""

    batch_dependent = False
    own_scaling = False
    n_parameters_ = 0
    capped_ = ""
    _n_features: int | None = None

    def __post_init__(self) -> None:
        self.name = self.name or type(self).__name__
        self.history_: list[dict[str, float]] = []

    @classmethod
    def make(cls, **settings: Any) -> Self:
        """An unfitted method with these settings."""
        return cls(**settings)

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores, as JSON-ready values."""
        common = {field.name for field in fields(Peer)}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in common}

    def fit(self, X: npt.ArrayLike) -> Self:
        """Fit on normal rows."""
        rows = check_matrix(X, self.name)
        self.capped_ = ""
        self._n_features = rows.shape[1]
        self._fit(rows)
        return self

    def anomaly_score(self, X: npt.ArrayLike) -> FloatArray:
        """One number per row; higher is more anomalous."""
        if self._n_features is None:
            raise DataError(f"{self.name} has not been fitted: call fit first.")
        return np.asarray(self._score(check_matrix(X, self.name, self._n_features)), dtype=np.float64)

    def p_value(self, scores: FloatArray) -> FloatArray | None:
        """How often a normal row has at least these scores; None for a method without a calibrated threshold."""
        return None

    @abstractmethod
    def _fit(self, rows: FloatArray) -> None: ...

    @abstractmethod
    def _score(self, rows: FloatArray) -> FloatArray: ...


def check_matrix(X: npt.ArrayLike, method: str, n_features: int | None = None) -> FloatArray:
    """Return ``X`` as a finite float64 matrix, or say what is wrong with it; ``n_features`` are those seen in ``fit``.

    It is a copy, so that no method can change the caller's array.
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
    """Refuse a value outside ``choices``, in the wording used everywhere."""
    if value not in choices:
        options = ", ".join(repr(c) for c in choices)
        raise SettingError(f"The '{parameter}' parameter of {owner} must be one of {options}. Got {value!r} instead.")
