"""Scores and flagged rows by period of a date column, at constant memory, and the column itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.errors import DataError, Option
from ptad.report.score_histogram import ScoreScale
from ptad.tables import BadCells, Schema, fit_schema
from ptad.tables.datetime_column import FIRST_SECOND, LAST_SECOND
from ptad.tables.encoding import read_cells
from ptad.tables.names import no_column
from ptad.tables.values import without_missing

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

MOST_PERIODS = 60  # shown
FEWEST_ROWS = 20  # of a typical period: the flag rate of a handful of rows says little
FEWEST_PERIODS = 3
QUANTILES = (0.1, 0.5, 0.9)
_KEPT_PERIODS = 4000  # while the table is read; more are joined
_STEP, _REACH = 0.02, 35.0  # of the scores that quantiles are made of, on the scale of the histogram
_N_BINS = round(2 * _REACH / _STEP)
_DAY = 86400


def _seconds(width: int) -> Callable[[Whole], Whole]:
    return lambda moments: moments // width * width


def _weeks(moments: Whole) -> Whole:
    return ((moments // _DAY + 3) // 7 * 7 - 3) * _DAY  # from Monday; 1970-01-01 was a Thursday


def _months(n: int) -> Callable[[Whole], Whole]:
    def begin(moments: Whole) -> Whole:
        months = moments.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64) // n * n
        return months.astype("datetime64[M]").astype("datetime64[s]").astype(np.int64)

    return begin


PERIODS: dict[str, Callable[[Whole], Whole]] = {
    "minute": _seconds(60),
    "10 minutes": _seconds(600),
    "hour": _seconds(3600),
    "6 hours": _seconds(6 * 3600),
    "day": _seconds(_DAY),
    "week": _weeks,
    "month": _months(1),
    "quarter": _months(3),
    "year": _months(12),
}
_KEPT = ("minute", "10 minutes", "hour", "6 hours", "day", "month")  # each made of whole ones of that before


def _keys(begins: Whole, bins: Whole, flagged: NDArray[np.bool_]) -> Whole:
    return (begins * _N_BINS + bins) * 2 + flagged


def _parts(keys: Whole) -> tuple[Whole, Whole, NDArray[np.bool_]]:
    """Return what :func:`_keys` was given."""
    return keys // 2 // _N_BINS, keys // 2 % _N_BINS, keys % 2 > 0


class TimeColumn:
    """Reads the moments of rows, from a column that the model uses or from another one.

    Parameters
    ----------
    schema : Schema
        The schema of the model.
    name : str
        The column.
    """

    def __init__(self, schema: Schema, name: str) -> None:
        self.name, self._missing = name, schema.missing
        self._reader: Any = next((column for column in schema.columns if column.name == name), None)

    @classmethod
    def of(cls, schema: Schema, name: str | None) -> TimeColumn | None:
        """Return the named column, else the first one of date-times or dates that the model uses, if there is one."""
        if name is not None:
            return cls(schema, name)
        found = [[c.name for c in schema.columns if c.type == type_] for type_ in ("datetime", "date")]
        first = next((names[0] for names in found if names), None)
        return None if first is None or schema.from_array else cls(schema, first)

    def read(self, batch: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return whole seconds since 1970, and which rows have none."""
        if self.name not in batch.schema.names:
            raise DataError(
                no_column("The table", [self.name], batch.schema.names, "time column"),
                "Name one of them with {}.",
                (Option("time"),),
            )
        array = without_missing(batch.column(batch.schema.get_field_index(self.name)), self._missing)
        if self._reader is None:
            if array.null_count == len(array):
                return np.zeros(len(array), dtype=np.int64), np.ones(len(array), dtype=bool)
            self._reader = self._fitted(array)
        # not clipped to the training rows: what is new lies after them
        reader = replace(self._reader, first=FIRST_SECOND, last=LAST_SECOND, cycles=())
        # a cell that cannot be read counts as missing here too
        seconds = read_cells(reader.raw, array, BadCells())[0][:, 0] + FIRST_SECOND
        missing = np.isnan(seconds)
        return np.where(missing, 0, seconds).astype(np.int64), missing

    def _fitted(self, array: pa.Array) -> Any:
        try:
            return fit_schema(pa.table({self.name: array}), types={self.name: "datetime"}).columns[0]
        except DataError as error:
            raise DataError(
                f"The time column {self.name!r} cannot be read as dates. {error.message.problem}",
                "Name a column of dates with {}.",
                (Option("time"),),
            ) from error


class TimeTally:
    """Counts rows, flagged rows and scores by period, batch by batch.

    Parameters
    ----------
    column : str
        The name of the date column.
    threshold : float
        Scores above it are flagged.
    scale : ScoreScale
        On which scores are binned for their quantiles.
    """

    def __init__(self, column: str, threshold: float, scale: ScoreScale) -> None:
        self.column, self.threshold, self.scale = column, threshold, scale
        self.n_without = 0
        self._level = 0
        # begin of the period, bin of the score and whether flagged, as one number; and how many rows
        self._keys: Whole = np.empty(0, dtype=np.int64)
        self._counts: Whole = np.empty(0, dtype=np.int64)

    def add(self, moments: Whole, missing: NDArray[np.bool_], scores: Array) -> None:
        """Count rows at these moments, in seconds since 1970."""
        self.n_without += int(missing.sum())
        scores = scores[~missing]
        places = np.floor((self.scale(scores) + _REACH) / _STEP)
        bins = np.clip(places, 0, _N_BINS - 1).astype(np.int64)
        added = _keys(self._begins(moments[~missing]), bins, scores > self.threshold)
        self._join(np.concatenate([self._keys, added]), np.concatenate([self._counts, np.ones(len(added), np.int64)]))
        while self._n_periods() > _KEPT_PERIODS and self._level < len(_KEPT) - 1:
            self._level += 1
            begins, bins, flagged = _parts(self._keys)
            self._join(_keys(self._begins(begins), bins, flagged), self._counts)

    def content(self) -> dict[str, Any]:
        """Return the periods with their rows, flagged rows and quantiles of scores; none where rows are too few."""
        period = self._period()
        return {
            "column": self.column,
            "period": period,
            "quantiles": list(QUANTILES),
            "threshold": self.threshold,
            "without": self.n_without,
            "buckets": [] if period is None else self._buckets(period),
        }

    def _begins(self, moments: Whole) -> Whole:
        return PERIODS[_KEPT[self._level]](moments)

    def _join(self, keys: Whole, counts: Whole) -> None:
        self._keys, places = np.unique(keys, return_inverse=True)
        self._counts = np.bincount(places, counts, minlength=len(self._keys)).astype(np.int64)

    def _n_periods(self) -> int:
        return int(np.count_nonzero(np.diff(_parts(self._keys)[0]))) + 1  # keys ascend

    def _period(self) -> str | None:
        """Return the shortest period that gives few enough points with enough rows each."""
        names = list(PERIODS)
        for name in names[names.index(_KEPT[self._level]) :]:
            if name == "week" and _KEPT[self._level] == "month":
                continue
            begins, places = np.unique(PERIODS[name](_parts(self._keys)[0]), return_inverse=True)
            if len(begins) < FEWEST_PERIODS:
                return None
            rows = np.bincount(places, self._counts)
            if len(begins) <= MOST_PERIODS and np.median(rows) >= FEWEST_ROWS:
                return name
        return None

    def _buckets(self, period: str) -> list[dict[str, Any]]:
        begins = PERIODS[period](_parts(self._keys)[0])
        return [self._bucket(int(begin), begins == begin) for begin in np.unique(begins)]

    def _bucket(self, begin: int, own: NDArray[np.bool_]) -> dict[str, Any]:
        (_, bins, flagged), counts = _parts(self._keys[own]), self._counts[own]
        order = np.argsort(bins, kind="stable")
        reached = np.cumsum(counts[order])
        found = bins[order][np.searchsorted(reached, np.array(QUANTILES) * reached[-1])]
        scores = self.scale.inverse((found + 0.5) * _STEP - _REACH)
        return {
            "time": begin,
            "rows": int(reached[-1]),
            "flagged": int(counts[flagged].sum()),
            "scores": [float(f"{score:.4g}") for score in scores],
        }
