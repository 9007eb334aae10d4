"""The interface of scikit-learn: its methods with their signs, checks of parameters and input, tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ptad.arrays import Matrix
from ptad.calibration import check_rate
from ptad.config import Config, make_config
from ptad.errors import DataError, SettingError
from ptad.model import Model
from ptad.tables.conversion import as_frame, as_table
from ptad.tables.inference import check_types
from ptad.tables.number_format import check_signs

READING = ("types", "missing", "drop", "only", "decimal", "thousands")  # parameters of reading a table
# Device and verbosity belong to the machine; the settings are saved as a whole.
SAVED = ("preset", "false_alarm_rate", *READING, "random_state")


class SklearnDetector(Model, OutlierMixin, TransformerMixin, BaseEstimator):
    """A model with the interface of scikit-learn.

    The methods of scikit-learn return numpy arrays for all types of rows; the others are those of
    :class:`ptad.Model`.
    """

    def score_samples(self, X: Any) -> Matrix:
        """Return the negated anomaly score: higher is more normal (scikit-learn's sign).

        Parameters
        ----------
        X : table or array
            Rows to score, as for :meth:`anomaly_score`.

        Returns
        -------
        ndarray of shape (n_rows,)
            A numpy array for all types of rows, as everywhere in scikit-learn.
        """
        return -self._scores(X)

    def decision_function(self, X: Any) -> Matrix:
        """Return ``score_samples - offset_``: negative for anomalies.

        Parameters
        ----------
        X : table or array
            Rows to score, as for :meth:`anomaly_score`.

        Returns
        -------
        ndarray of shape (n_rows,)
            A numpy array for all types of rows, as everywhere in scikit-learn.
        """
        self._calibration()
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return +1 for normal rows and -1 for anomalies.

        Parameters
        ----------
        X : table or array
            Rows to score, as for :meth:`anomaly_score`.

        Returns
        -------
        ndarray of shape (n_rows,)
            A numpy array for all types of rows, as everywhere in scikit-learn.
        """
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def transform(self, X: Any) -> Matrix:
        """Return the rows as the first term represents them: residuals per column (default) or the P-space (paper).

        Parameters
        ----------
        X : table or array
            Rows to transform, as for :meth:`anomaly_score`.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
            A numpy array, or what ``set_output`` asks for. A larger residual is more anomalous.
        """
        table = self._validate(X)
        return self.detector_.pipeline.transform(self._encode(table))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : object
            Ignored; it is there for scikit-learn.

        Returns
        -------
        ndarray of str
            One name per column.
        """
        check_is_fitted(self)
        names = self.detector_.pipeline.terms[0].transform_names()
        return np.array([name.format(*self.schema_.names) for name in names], dtype=object)

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _validate(self, X: Any, *, reset: bool = False) -> Any:
        """Return the rows as a table or an array; scikit-learn checks the columns, the schema the cells."""
        if not reset:
            check_is_fitted(self)
        table = as_table(X)
        if isinstance(table, np.ndarray):
            try:
                return validate_data(self, table, reset=reset, skip_check_array=True)
            except ValueError as error:
                raise DataError(f"{error} Give the columns it was fitted with, in the same order.") from error
        if reset:
            as_frame(table, convert=lambda name: False)  # names a duplicate column, which scikit-learn would not
            validate_data(self, table, reset=True, skip_check_array=True)
        return table

    __repr__ = BaseEstimator.__repr__

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_().get("text/html", "")

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return what a notebook shows: a fitted model, otherwise the diagram of scikit-learn."""
        if not self.__sklearn_is_fitted__():
            return dict(super()._repr_mimebundle_(**options))
        return {"text/plain": repr(self), "text/html": Model._repr_html_(self)}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "detector_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []  # residuals are float64 whatever comes in
        return tags


def check_parameters(estimator: Any) -> Config:
    """Return all settings in force; raise if a parameter or a setting is out of its range."""
    for name, (expected, fits) in _PARAMETERS.items():
        if not fits(value := getattr(estimator, name)):
            raise SettingError(f"The '{name}' parameter of PTAD must be {expected}. Got {value!r} instead.")
    check_rate(estimator.false_alarm_rate)
    check_signs(estimator.decimal, estimator.thousands)
    check_types(estimator.types or {})
    return make_config(estimator.preset, estimator.config)


def _is_seed(value: Any) -> bool:
    try:
        check_random_state(value)
    except ValueError:
        return False
    return True


_PARAMETERS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "types": ("a mapping", lambda value: value is None or isinstance(value, Mapping)),
    "config": ("a mapping", lambda value: value is None or isinstance(value, Mapping | Config)),
    "strict": ("true or false", lambda value: isinstance(value, bool | np.bool_)),
    "verbose": ("0, 1 or more", lambda value: isinstance(value, int) and value >= 0),
    "device": ("text", lambda value: isinstance(value, str)),
    "random_state": ("None, a RandomState or a number from 0 to 2**32 - 1", _is_seed),
}
