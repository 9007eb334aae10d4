"""The schema: how a table becomes a matrix of numbers and category codes, kept as readable JSON."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ptad.errors import BundleError, DataError
from ptad.layout import Anything, Boolean, Integer, ListOf, MappingOf, Number, Record, Text, damaged, printable
from ptad.tables.bad_cells import BadCells, levels_to_caller
from ptad.tables.column_types import TYPES, Column
from ptad.tables.conversion import as_frame, as_table
from ptad.tables.datetime_column import DatetimeColumn
from ptad.tables.encoding import CountedText, check_finite, column_slices, encode_columns, python_values, read_cells
from ptad.tables.exclusion import Exclusion, changed_constants
from ptad.tables.features import Features
from ptad.tables.names import no_column
from ptad.tables.notes import Note, unread_column
from ptad.tables.number_format import check_signs
from ptad.tables.numeric_column import NumericColumn
from ptad.tables.text_columns import TextColumn
from ptad.tables.values import without_missing, without_missing_text

CELLS_AT_ONCE = 2**24  # encoded cells held as float64 at one time
FORMAT, VERSION = "ptad-schema", 4
_PLACE = "its schema"  # in errors about a model
_LAYOUT = Record(
    {
        "format": Text(),
        "version": Integer(VERSION, VERSION),
        "from_array": Boolean(),
        "missing": ListOf(Text()),
        "inputs": ListOf(Text(), low=1, distinct=True),
        "excluded": MappingOf(Exclusion.layout),
        "notes": ListOf(Note.layout),
        "columns": ListOf(MappingOf(Anything()), low=1),
    }
)
# of every column; its encoder has further entries
_COLUMN_LAYOUT = Record({"name": Text(), "type": Text(tuple(TYPES)), "missing_rate": Number(0.0, 1.0)})


@dataclass(frozen=True, eq=False, repr=False)
class Schema:
    """The columns of a table and their encoding. Made by :func:`fit_schema`.

    Encoding is row-wise and scales nothing: numbers stay what they are, categories become codes. What depends on the
    distribution of the rows belongs to the terms, which are fitted anew for every calibration fold.

    Attributes
    ----------
    inputs : tuple of str
        All columns of the training table, in order.
    columns : tuple of Column
        The encoders of the columns that are used.
    missing_rate : ndarray of shape (n_columns,)
        Share of training rows in which each used column was missing.
    missing : tuple of str
        Text that counts as missing.
    exclusions : dict
        Column to the reason why it is not used; ``excluded`` has the reasons as text.
    from_array : bool
        Whether the training table was an array: its names are only positions.
    notes : tuple of Note
        How dates and numbers in text are read, and which of that is a guess.
    """

    inputs: tuple[str, ...]
    columns: tuple[Column, ...]
    missing_rate: np.ndarray
    missing: tuple[str, ...]
    exclusions: dict[str, Exclusion]
    from_array: bool
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        return f"Schema({len(self.columns)} columns as {len(self.features)} features)"

    @property
    def excluded(self) -> dict[str, str]:
        """Why each of the other columns is not used."""
        return {name: exclusion.phrase() for name, exclusion in self.exclusions.items()}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Columns that are used, in order."""
        return tuple(c.name for c in self.columns)

    @cached_property
    def types(self) -> dict[str, str]:
        """Type of every used column."""
        return {c.name: c.type for c in self.columns}

    @cached_property
    def encoded_names(self) -> tuple[str, ...]:
        """A readable name for every encoded column."""
        return tuple(label for c in self.columns for label in c.labels)

    @cached_property
    def features(self) -> Features:
        """The features of encoded rows."""
        widths = [len(c.labels) for c in self.columns]
        categories = [getattr(c, "n_categories", 0) for c in self.columns]
        steps = [np.broadcast_to(getattr(c, "resolution", 0.0), len(c.labels)) for c in self.columns]
        return Features(
            np.repeat(np.arange(len(self.columns)), widths),
            np.repeat(categories, widths).astype(np.int64),
            np.concatenate([*steps, np.empty(0)]),
        )

    @cached_property
    def formatted(self) -> tuple[str, ...]:
        """Columns whose text has a format of its own: readers of files must not convert it to numbers or dates."""
        return tuple(
            c.name
            for c in self.columns
            if (isinstance(c, NumericColumn) and not c.form.is_plain) or (isinstance(c, DatetimeColumn) and c.formats)
        )

    def with_signs(self, decimal: str | None = None, thousands: str | None = None) -> Schema:
        """Return the schema with other signs in numbers that come as text; None leaves a sign as it is."""
        check_signs(decimal, thousands)
        if decimal is None and thousands is None:
            return self
        columns = tuple(
            replace(c, form=c.form.with_signs(decimal, thousands)) if isinstance(c, NumericColumn) else c
            for c in self.columns
        )
        return replace(self, columns=columns)

    def with_missing(self, words: Sequence[str]) -> Schema:
        """Return the schema with further text that counts as missing."""
        return replace(self, missing=tuple(dict.fromkeys([*self.missing, *words]))) if words else self

    def encode(self, table: Any, bad: BadCells | None = None) -> np.ndarray:
        """Encode a table as float64 of shape (n_rows, n_features); NaN marks a missing cell.

        A cell that cannot be read counts as missing. ``bad`` collects such cells, or refuses the first one if it is
        strict; without it they are named in one warning.
        """
        if (numbers := self._plain_numbers(table)) is not None:
            return numbers
        cells = BadCells() if bad is None else bad
        frame = self._select(table)
        x = np.empty((frame.num_rows, len(self.features)))
        step = max(CELLS_AT_ONCE // max(len(self.features), 1), 1)
        for start in range(0, frame.num_rows, step):
            part = frame.slice(start, step)
            x[start : start + step] = encode_columns(self.columns, part, self.missing, cells, start)
        counts = cells.counts
        for column, features in column_slices(self.columns) if counts else ():
            n = counts.get(column.name, 0)
            if n > 1 and np.isnan(x[:, features.start]).all():
                cells.unread[column.name] = unread_column(column.name, column.type, n)
        if bad is None:
            cells.warn()
        return x

    def _plain_numbers(self, table: Any) -> np.ndarray | None:
        """Encode an array of floats as a whole: column by column would take longer than a score. None for others."""
        if type(table) is not np.ndarray or table.ndim != 2 or table.dtype not in (np.float64, np.float32):
            return None
        plain = all(isinstance(c, NumericColumn) and c.type == "numeric" and not c.origin for c in self.columns)
        if not plain or table.shape[1] != len(self.inputs):
            return None
        places = [self.inputs.index(name) for name in self.names] if len(self.names) < len(self.inputs) else slice(None)
        x = table[:, places].astype(np.float64)
        check_finite(self.columns, x)
        return x

    def counted(self, table: Any) -> CountedText | None:
        """The text columns of the training table; None if there are none."""
        text_columns = {i: c for i, c in enumerate(self.columns) if isinstance(c, TextColumn)}
        if not text_columns:
            return None
        frame = self._select(table)
        cells = {i: without_missing_text(frame.column(c.name), self.missing) for i, c in text_columns.items()}
        return CountedText(self, {i: c.codes(cells[i]) for i, c in text_columns.items()})

    def bad_cells(self, table: Any) -> BadCells:
        """Return the cells of a table that cannot be read, with one encoded column in memory at a time."""
        bad = BadCells()
        frame = self._select(table)
        for column in self.columns:
            if isinstance(column, NumericColumn | DatetimeColumn):  # any text can be read
                read_cells(column.raw, without_missing_text(frame.column(column.name), self.missing), bad)
        return bad

    def observed(self, table: Any) -> dict[str, list[Any]]:
        """The cells of every used column as Python objects, None where missing or unreadable."""
        frame = self._select(table)
        return {c.name: python_values(c, without_missing(frame.column(c.name), self.missing)) for c in self.columns}

    def changed_constants(self, table: Any) -> dict[str, Any]:
        """Columns that were excluded as constant and have another value in this table: column to such a value."""
        return changed_constants(table, self.exclusions, self.missing)

    def decode(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Encoded rows, such as expected ones, in the units and categories of the table, per used column."""
        rows = np.asarray(rows, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.features):
            raise DataError(f"Encoded rows have {len(self.features)} features; got an array of shape {rows.shape}.")
        return {column.name: column.decode(rows[:, features]) for column, features in column_slices(self.columns)}

    def to_json(self) -> dict[str, Any]:
        """The schema as plain JSON types."""
        columns = [
            {"name": c.name, "type": c.type, **c.to_json(), "missing_rate": float(rate)}
            for c, rate in zip(self.columns, self.missing_rate, strict=True)
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "from_array": self.from_array,
            "missing": list(self.missing),
            "inputs": list(self.inputs),
            "excluded": {name: exclusion.to_json() for name, exclusion in self.exclusions.items()},
            "notes": [note.to_json() for note in self.notes],
            "columns": columns,
        }

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Schema:
        """Read back what :meth:`to_json` returned; the result encodes to the same bits."""
        check_version(state)
        _LAYOUT.check(state, _PLACE)
        entries = state["columns"]
        for i, entry in enumerate(entries):
            _check_column(entry, f"{_PLACE}.columns[{i}]")
        names = [entry["name"] for entry in entries]
        if len(set(names)) < len(names) or not set(names) <= set(state["inputs"]):
            raise damaged(f"{_PLACE}.columns", "some of its inputs, each once")
        return cls(
            tuple(state["inputs"]),
            tuple(TYPES[e["type"]].from_json(e["name"], e["type"], e) for e in entries),
            np.array([float(e["missing_rate"]) for e in entries]),
            tuple(state["missing"]),
            {name: Exclusion.from_json(exclusion) for name, exclusion in state["excluded"].items()},
            state["from_array"],
            tuple(map(Note.from_json, state["notes"])),
        )

    def _select(self, table: Any) -> pa.RecordBatch:
        """The used columns of ``table``, in the order of the schema."""
        table = as_table(table)
        by_position = self.from_array or isinstance(table, np.ndarray)
        used = set(self.names)
        frame = as_frame(table, typed=True, convert=lambda name: self.from_array or name in used)
        names = frame.schema.names
        if not by_position:
            self.check_columns(names)
            known = set(self.inputs)
            if unknown := [n for n in names if n not in known]:
                warnings.warn(
                    f"Columns that were not there in training are ignored: {', '.join(map(repr, unknown))}",
                    UserWarning,
                    stacklevel=levels_to_caller(),
                )
        elif len(names) != len(self.inputs):
            raise DataError(
                f"X has {len(names)} features, but PTAD is expecting {len(self.inputs)} features as input: those it "
                "was fitted with, in the same order."
            )
        return (frame.rename_columns(self.inputs) if by_position else frame).select(self.names)

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise if a used column is not among these names; columns of an array are known by their positions."""
        present = set(names)
        missing = [] if self.from_array else [n for n in self.names if n not in present]
        if missing:
            unknown = [n for n in names if n not in self.inputs]  # a column of the model is not another one misspelt
            why = ", which the model was trained with"
            raise DataError(
                no_column("The table", missing, names, why=why, candidates=unknown),
                "Add or rename " + ("it." if len(missing) == 1 else "them."),
            )


def check_version(state: Any) -> None:
    """Raise :class:`BundleError` unless this is the JSON of a schema of this release."""
    MappingOf(Anything()).check(state, _PLACE)
    if state.get("format") != FORMAT or state.get("version") != VERSION:
        other = printable(f"{state.get('format')!r} version {state.get('version')!r}")
        raise BundleError(f"The schema has format {other}; this release reads {FORMAT!r} version {VERSION}. Fit again.")


def _check_column(entry: dict[str, Any], place: str) -> None:
    _COLUMN_LAYOUT.check({key: entry.get(key) for key in _COLUMN_LAYOUT.entries}, place)
    encoder = {key: value for key, value in entry.items() if key not in _COLUMN_LAYOUT.entries}
    TYPES[entry["type"]].layout(entry["type"]).check(encoder, place)
