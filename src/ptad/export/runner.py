"""Scores tables with a model that ``ptad export`` wrote; needs numpy and onnxruntime, and nothing else.

This file stands alone: import it as ``ptad.export.runner``, or copy it to where neither ptad nor torch is installed.

    runner = Runner("model.onnx")
    scored = runner.score({"speed": [10.2, None], "mode": ["a", "b"]})
    scored.score, scored.anomaly, scored.p_value, scored.terms, scored.contributions, scored.reasons

    python runner.py model.onnx new.csv > scored.csv

A table is a mapping of names to columns, a pandas, polars or Arrow table, or (for a model fitted on an array) a
two-dimensional array. None, NaN and NA are missing values. Numeric, boolean and categorical columns are encoded; a
model with dates, durations or text is refused by name: for it, give :meth:`Runner.run` rows that ptad encoded.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnxruntime  # type: ignore[import-untyped]

FORMAT, VERSION = "ptad-onnx", 3
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[nN]a[nN]|[+-]?(inf|Inf|infinity|Infinity)", flags=re.ASCII)
TRUTHS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
NULL_WORDS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")  # of CSV files


class RunnerError(ValueError):
    """A file or table that cannot be used; the message names the culprit and the remedy."""


@dataclass(frozen=True)
class Scored:
    """What the model says about some rows."""

    score: np.ndarray  # higher is more anomalous
    anomaly: np.ndarray | None  # whether the score exceeds the threshold; None for a model that was not calibrated
    p_value: np.ndarray | None  # how often a normal row has at least this score
    terms: dict[str, np.ndarray]  # what each term adds to the score
    contributions: dict[str, np.ndarray]  # what each column adds to the score, signed; they add up to it
    reasons: dict[str, np.ndarray]  # "unusual value", "unusual combination with ...", "missing", "unseen category"


class Outputs(NamedTuple):
    """What the graph says about n encoded rows."""

    score: np.ndarray  # (n,)
    terms: np.ndarray  # (n, n_terms)
    contributions: np.ndarray  # (n, n_columns)
    reasons: np.ndarray  # (n, n_columns), places in the file's list of reasons
    partners: np.ndarray  # (n, n_columns), the other column of a combination, -1 otherwise


class Runner:
    """An exported model.

    Parameters
    ----------
    path : path
        The ONNX file.
    n_threads : int
        Threads of one call; 0 leaves it to onnxruntime.
    """

    def __init__(self, path: str | os.PathLike[str], *, n_threads: int = 0) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own kinds have no name in common
            raise RunnerError(f"'{path}' cannot be read as an ONNX file: {error}") from error
        properties = self._session.get_modelmeta().custom_metadata_map
        if properties.get("format") != FORMAT:
            raise RunnerError(f"'{path}' was not written by ptad. Export the model with ptad, and name that file.")
        if int(properties["format_version"]) != VERSION:
            raise RunnerError(f"'{path}' was written by ptad {properties['ptad_version']}. Take that release's runner.")
        self.properties: dict[str, str] = dict(properties)
        self.schema: dict[str, Any] = json.loads(properties["schema"])
        self.names: tuple[str, ...] = tuple(column["name"] for column in self.schema["columns"])
        self.terms: tuple[str, ...] = tuple(json.loads(properties["terms"]))
        self.reasons: tuple[str, ...] = tuple(json.loads(properties["reasons"]))
        self.threshold: float | None = json.loads(properties["threshold"])
        self.false_alarm_rate: float | None = json.loads(properties["false_alarm_rate"])
        self._calibration = np.array(json.loads(properties["calibration"]), dtype=np.float64)
        self._chunk_rows = int(properties["chunk_rows"])
        self._n_features = int(self._session.get_inputs()[0].shape[1])

    def score(self, table: Any) -> Scored:
        """Score the rows of a table."""
        said = self.run(self.encode(table))
        anomaly = p_value = None
        if self.threshold is not None:
            anomaly = said.score > self.threshold
            n = len(self._calibration)
            p_value = (1.0 + n - np.searchsorted(self._calibration, said.score, side="left")) / (n + 1.0)
        beside = np.array([*(f" with {name}" for name in self.names), ""], dtype=object)
        reasons = np.array(self.reasons, dtype=object)[said.reasons] + beside[said.partners]
        tables = ((self.terms, said.terms), (self.names, said.contributions), (self.names, reasons))
        by_name = (dict(zip(names, values.T, strict=True)) for names, values in tables)
        return Scored(said.score, anomaly, p_value, *by_name)

    def run(self, rows: np.ndarray, *, chunk_rows: int | None = None) -> Outputs:
        """Return what the graph says about encoded rows (n, n_features), NaN = missing.

        Rows do not influence each other; ``chunk_rows`` of them at a time keep the memory flat.
        """
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self._n_features or not len(rows):
            raise RunnerError(f"Encoded rows have shape (1 or more, {self._n_features}). Got {rows.shape} instead.")
        step = chunk_rows or self._chunk_rows
        found = [self._session.run(Outputs._fields, {"rows": rows[i : i + step]}) for i in range(0, len(rows), step)]
        return Outputs(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def encode(self, table: Any) -> np.ndarray:
        """Return the rows as the model sees them, float64: numbers as they are, codes of categories, NaN = missing."""
        columns = _matched(table, self.schema)
        gone = {text.strip() for text in self.schema["missing"]}
        encoded = []
        for entry in self.schema["columns"]:
            name, type_ = entry["name"], entry["type"]
            if type_ not in _ENCODERS:
                raise RunnerError(
                    f"Column {name!r} is of type {type_!r}, which this runner does not encode. Encode the rows with "
                    "ptad (PTAD.load(model).schema_.encode) and give them to Runner.run, or fit the model without it."
                )
            values = _ENCODERS[type_](_cells(columns[name], gone), entry)
            if len(infinite := np.flatnonzero(np.isinf(values))):
                raise RunnerError(
                    f"Column {name!r}, row {infinite[0]} (counted from 0) is infinite. Replace it by a finite number "
                    "or by a missing value."
                )
            encoded.append(values)
        if len({len(values) for values in encoded}) > 1:
            raise RunnerError("The columns of the table differ in length. Give every column one cell per row.")
        return np.stack(encoded, axis=1)


def _matched(table: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the columns by name; those of an array, or for a model of an array, by position."""
    if hasattr(table, "column_names"):
        given = {str(name): table[name] for name in table.column_names}
    elif isinstance(table, Mapping) or hasattr(table, "columns"):
        given = {str(name): table[name] for name in (table if isinstance(table, Mapping) else table.columns)}
    else:
        array = np.asarray(table)
        if array.ndim != 2:
            raise RunnerError(f"A table or a two-dimensional array was expected, but got {array.ndim} dimensions.")
        given = {f"x{i}": array[:, i] for i in range(array.shape[1])}
        if len(given) == len(schema["inputs"]):
            given = dict(zip(schema["inputs"], given.values(), strict=True))
    if schema["from_array"]:
        if len(given) != len(schema["inputs"]):
            raise RunnerError(f"The model expects {len(schema['inputs'])} columns. The table has {len(given)}.")
        return dict(zip(schema["inputs"], given.values(), strict=True))
    absent = [c["name"] for c in schema["columns"] if c["name"] not in given]
    if absent:
        raise RunnerError(f"The table has no column {', '.join(map(repr, absent))}. Add or rename.")
    if extra := [name for name in given if name not in schema["inputs"]]:
        warnings.warn(f"Columns that were not there in training are ignored: {extra}", UserWarning, stacklevel=4)
    return given


def _cells(column: Any, gone: set[str]) -> np.ndarray:
    """Return a column as an array of numbers, or of Python objects with None for the missing ones."""
    array = np.asarray(column)
    if array.dtype.kind in "biuf":
        return array
    cells = np.empty(len(array), dtype=object)
    cells[:] = [None if _is_missing(cell, gone) else cell for cell in array.tolist()]
    return cells


def _is_missing(cell: Any, gone: set[str]) -> bool:
    if isinstance(cell, str):
        return cell.strip() in gone
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell


def _plain(text: str, entry: dict[str, Any]) -> str:
    """Return a number as in programs; what does not fit the signs of its column is none, even if it looks like one."""
    decimal, thousands = entry.get("decimal", "."), entry.get("thousands", "")
    if (decimal, thousands) == (".", ""):
        return text
    group = {" ": "[ \u00a0\u202f]", "'": "['’]"}.get(thousands, re.escape(thousands))
    whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)" if group else r"\d+"
    sign = re.escape(decimal)
    if re.fullmatch(rf"[+-]?(?:{whole}(?:{sign}\d*)?|{sign}\d+)(?:[eE][+-]?\d+)?", text, flags=re.ASCII) is None:
        return "" if NUMBER.fullmatch(text) and text.lower() != "nan" else text
    return (re.sub(group, "", text) if group else text).replace(decimal, ".")


def _numbers(cells: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    origin = entry.get("origin", 0)  # integers beyond 2**53 are counted from it
    if cells.dtype.kind in "iu" and origin:
        cells = cells.astype(object)
    if cells.dtype.kind != "O":
        return np.asarray(cells.astype(np.float64) - origin)
    return np.array([_number(cell, origin, row, entry) for row, cell in enumerate(cells)], dtype=np.float64)


def _number(cell: Any, origin: int, row: int, entry: dict[str, Any]) -> float:
    if cell is None:
        return float("nan")
    if isinstance(cell, int | np.integer):
        return float(int(cell) - origin)
    text = _plain(cell.strip(), entry) if isinstance(cell, str) else cell
    if origin and isinstance(text, str) and re.fullmatch(r"[+-]?\d+", text, flags=re.ASCII):
        return float(int(text) - origin)  # as a float it would lose its last digits
    if not isinstance(text, str) or NUMBER.fullmatch(text):
        with suppress(TypeError, ValueError):
            return float(text) - origin
    raise _wrong(cell, row, entry, "a number")


def _truths(cells: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    words = [TRUTHS.get(c.strip().lower(), 2.0) if isinstance(c, str) else c for c in cells.tolist()]
    values = _numbers(np.array(words, dtype=object), entry)
    wrong = ~((values == 0.0) | (values == 1.0) | np.isnan(values))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise _wrong(cells[row], row, entry, "true or false")
    return values


def _categories(cells: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    """Return the code of every cell; the one after the last is that of values that training did not have."""
    code = {value: float(i) for i, value in enumerate(entry["values"])}
    texts = (None if c is None or c != c else _text(c, row, entry) for row, c in enumerate(cells.tolist()))
    return np.array([np.nan if t is None else code.get(t, float(len(code))) for t in texts], dtype=np.float64)


def _text(cell: Any, row: int, entry: dict[str, Any]) -> str:
    """Return the category that a cell names: 3 and 3.0 are the same."""
    if not isinstance(cell, float):
        return str(cell)
    if cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell)) if cell or str(cell) == "0.0" else "-0"
    if 1e-4 <= abs(cell) < 1e15:
        return str(cell)
    raise _wrong(cell, row, entry, "a number with one way to write it; give it as text, as it was in training")


_ENCODERS = {"numeric": _numbers, "boolean": _truths, "categorical": _categories}


def _wrong(cell: Any, row: int, entry: dict[str, Any], form: str) -> RunnerError:
    return RunnerError(
        f"Column {entry['name']!r}, row {row} (counted from 0): {cell!r} is not {form}. Correct it, or make it missing."
    )


def read_csv(path: str | os.PathLike[str]) -> dict[str, list[str | None]]:
    """Read a CSV file with a header; cells stay text, and NA, null and the like are missing.

    What is most frequent in the header separates the cells: a comma, a semicolon, a tab or a bar.
    """
    with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
        first = file.readline()
        file.seek(0)
        delimiter = max(",;\t|", key=first.count)
        header, *rows = [row for row in csv.reader(file, delimiter=delimiter) if row] or [[]]
    if not rows:
        raise RunnerError(f"'{path}' has no rows. Give a file with a header and rows.")
    if ragged := [i for i, row in enumerate(rows) if len(row) != len(header)]:
        raise RunnerError(f"'{path}', row {ragged[0]} (counted from 0) has another number of cells than the header.")
    return {name: [None if row[j] in NULL_WORDS else row[j] for row in rows] for j, name in enumerate(header)}


def main(arguments: Iterable[str]) -> None:
    """Write score, p-value and flag of every row of a CSV file as CSV to standard output."""
    try:
        model, table = arguments
    except ValueError:
        sys.exit("usage: runner.py MODEL.onnx TABLE.csv > SCORED.csv")
    try:
        scored = Runner(model).score(read_csv(table))
    except (RunnerError, OSError, UnicodeError) as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    columns = [("score", scored.score), ("p_value", scored.p_value), ("anomaly", scored.anomaly)]
    known = {name: values.tolist() for name, values in columns if values is not None}
    csv.writer(sys.stdout).writerows([known, *zip(*known.values(), strict=True)])


if __name__ == "__main__":
    main(sys.argv[1:])
