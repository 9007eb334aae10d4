"""Scores and flagged rows by period of a date column, at constant memory, and the column itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptad.arrays import Mask, Matrix
from ptad.errors import DataError
from ptad.report.score_histogram import REACH, ScoreScale
from ptad.tables import BadCells, Schema, fit_schema
from ptad.tables.datetime_column import FIRST_SECOND, LAST_SECOND
from ptad.tables.encoding import read_cells
from ptad.tables.names import no_column
from ptad.tables.values import without_missing

Integers = NDArray[np.int64]

MOST_PERIODS = 60  # in the chart
FEWEST_ROWS = 20  # in a typical period: the flag rate of a handful of rows says little
FEWEST_PERIODS = 3
QUANTILES = (0.1, 0.5, 0.9)
MOST_COUNTED_PERIODS = 4000  # while the table is read; beyond, periods are merged into longer ones
_BIN_WIDTH = 0.02  # of the scores whose quantiles are shown, on the scale of the histogram
_N_BINS = round(2 * REACH / _BIN_WIDTH)

# Number and unit, as of pyarrow.compute.floor_temporal; weeks begin on Monday.
PERIODS = {
    "minute": (1, "minute"),
    "10 minutes": (10, "minute"),
    "hour": (1, "hour"),
    "6 hours": (6, "hour"),
    "day": (1, "day"),
    "week": (1, "week"),
    "month": (1, "month"),
    "quarter": (1, "quarter"),
    "year": (1, "year"),
}
_COUNTED = ("minute", "10 minutes", "hour", "6 hours", "day", "month")  # each consists of whole ones of the one before
_COUNTS = ["start", "bin", "flagged", "rows"]


def period_starts(seconds: Integers, period: str) -> Integers:
    """Return the start of the period that each moment falls into; both in seconds since 1970."""
    moments = pa.array(seconds, pa.timestamp("s"))
    return np.asarray(pc.floor_temporal(moments, *PERIODS[period]).cast(pa.int64()))


class TimeColumn:
    """Reads the time of each row, from a column that the model with this schema uses or from another one."""

    def __init__(self, schema: Schema, name: str) -> None:
        self.name, self._missing = name, schema.missing
        self._reader: Any = next((column for column in _dated(schema) if column.name == name), None)

    @classmethod
    def of(cls, schema: Schema, name: str | None) -> TimeColumn | None:
        """Return the named column, else the first one of date-times or dates that the model uses, if there is one."""
        if name is not None:
            return cls(schema, name)
        dated = _dated(schema)
        return cls(schema, dated[0].name) if dated and not schema.from_array else None

    def read(self, batch: pa.RecordBatch) -> tuple[Integers, Mask]:
        """Return whole seconds since 1970, and which rows have no time."""
        if self.name not in batch.schema.names:
            raise DataError(
                no_column("The table", [self.name], batch.schema.names, "time column"), "Name one of them with {time}."
            )
        array = without_missing(batch.column(batch.schema.get_field_index(self.name)), self._missing)
        if self._reader is None:
            if array.null_count == len(array):
                return np.zeros(len(array), dtype=np.int64), np.ones(len(array), dtype=bool)
            self._reader = self._fitted(array)
        # not clipped to the range of the training rows: new rows lie after them
        reader = replace(self._reader, first=FIRST_SECOND, last=LAST_SECOND, cycles=())
        # a cell that cannot be read counts as missing here too
        seconds = read_cells(reader.raw, array, BadCells())[0][:, 0] + FIRST_SECOND
        missing = np.isnan(seconds)
        return np.where(missing, 0, seconds).astype(np.int64), missing

    def _fitted(self, array: pa.Array) -> Any:
        try:
            table = pa.table({self.name: array})
            return fit_schema(table, types={self.name: "datetime"}, bad=BadCells()).columns[0]
        except DataError as error:
            raise DataError(
                f"The time column {self.name!r} cannot be read as dates. {error.message.problem}",
                "Name a column of dates with {time}.",
            ) from error


def _dated(schema: Schema) -> list[Any]:
    """Return the columns of date-times that the model uses, and then those of dates."""
    return [column for type_ in ("datetime", "date") for column in schema.columns if column.type == type_]


class TimeTally:
    """Counts rows, those with a score above the threshold, and binned scores by period of a column of dates."""

    def __init__(self, column: str, threshold: float, scale: ScoreScale) -> None:
        self.column, self.threshold, self.scale = column, threshold, scale
        self.n_without = 0
        self._level = 0  # index of the counted period
        integers = pa.array([], pa.int64())
        self._counts = pa.table([integers, integers, pa.array([], pa.bool_()), integers], _COUNTS)

    def add(self, seconds: Integers, missing: Mask, scores: Matrix) -> None:
        """Count rows at these moments, in seconds since 1970."""
        self.n_without += int(missing.sum())
        scores = scores[~missing]
        bins = np.floor((self.scale(scores) + REACH) / _BIN_WIDTH).clip(0, _N_BINS - 1).astype(np.int64)
        starts = period_starts(seconds[~missing], _COUNTED[self._level])
        rows = np.ones(len(scores), np.int64)
        self._merge(pa.concat_tables([self._counts, pa.table([starts, bins, scores > self.threshold, rows], _COUNTS)]))
        while self.n_periods > MOST_COUNTED_PERIODS and self._level < len(_COUNTED) - 1:
            self._level += 1
            starts = period_starts(self._values("start"), _COUNTED[self._level])
            self._merge(self._counts.set_column(0, "start", [starts]))

    def content(self) -> dict[str, Any]:
        """Return the periods with their rows, flagged rows and quantiles of scores; none where rows are too few."""
        period = self._shown_period()
        return {
            "column": self.column,
            "period": period,
            "quantiles": list(QUANTILES),
            "threshold": self.threshold,
            "without": self.n_without,
            "buckets": [] if period is None else self._buckets(period),
        }

    @property
    def n_periods(self) -> int:
        """Number of periods that are counted separately."""
        return int(pc.count_distinct(self._counts["start"]).as_py())

    def _values(self, name: str) -> NDArray[Any]:
        return np.asarray(self._counts[name])

    def _merge(self, counts: pa.Table) -> None:
        """Add up rows of the same period, bin and flag."""
        summed = counts.group_by(_COUNTS[:-1], use_threads=False).aggregate([("rows", "sum")])
        self._counts = summed.select([*_COUNTS[:-1], "rows_sum"]).rename_columns(_COUNTS)

    def _shown_period(self) -> str | None:
        """Return the shortest period that gives few enough points with enough rows each."""
        names, counted = list(PERIODS), _COUNTED[self._level]
        for name in names[names.index(counted) :]:
            if name == "week" and counted == "month":
                continue
            starts, places = np.unique(period_starts(self._values("start"), name), return_inverse=True)
            if len(starts) < FEWEST_PERIODS:
                return None
            rows = np.bincount(places, self._values("rows"))
            if len(starts) <= MOST_PERIODS and np.median(rows) >= FEWEST_ROWS:
                return name
        return None

    def _buckets(self, period: str) -> list[dict[str, Any]]:
        order = np.argsort(self._values("bin"), kind="stable")
        starts, bins, flagged, rows = (self._values(name)[order] for name in _COUNTS)
        starts = period_starts(starts, period)
        buckets = []
        for start in np.unique(starts):
            inside = starts == start
            cumulative = np.cumsum(rows[inside])
            middles = bins[inside][np.searchsorted(cumulative, np.array(QUANTILES) * cumulative[-1])] + 0.5
            scores = self.scale.inverse(middles * _BIN_WIDTH - REACH)
            buckets.append(
                {
                    "time": int(start),
                    "rows": int(cumulative[-1]),
                    "flagged": int(rows[inside & flagged].sum()),
                    "scores": [float(f"{score:.4g}") for score in scores],
                }
            )
        return buckets
