"""Scoring a table of any size on this machine: batch by batch, at constant memory, in the order of the rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ptad._version import __version__
from ptad.errors import BusyError, DataError, SettingError, UserError
from ptad.jobs.bad_cell_list import LIST, bad_cell_list, from_bytes, to_bytes
from ptad.jobs.cell_counts import CellCounts
from ptad.jobs.explain import why_fields
from ptad.jobs.resume import PartStore
from ptad.jobs.scored_batch import score_batch
from ptad.jobs.training_table import TrainingTable
from ptad.messages import Message, Option
from ptad.model import Model
from ptad.table_model import no_threshold
from ptad.tables import Query, TableScan, TableWriter, scan_table
from ptad.tables.places import located
from ptad.tables.table_source import as_source

if TYPE_CHECKING:
    from ptad.estimator import PTAD

    AnyModel = PTAD | Model

logger = logging.getLogger("ptad")

Progress = Callable[[int, int | None], None]
_CELLS_PER_BATCH = 2**19  # a batch takes seconds, not minutes: that much work is lost by a kill
_MOST_ROWS = 16384
MOST_EXPLAINED = 1000  # columns named per row: each adds five to the output
CELLS = b"ptad.cells"  # where the result of a batch carries its counts, in the metadata of its schema


@dataclass(frozen=True)
class ScoreSummary:
    """What a scoring job did."""

    rows: int
    anomalies: int | None  # None: the model has no threshold
    false_alarm_rate: float | None
    rows_resumed: int  # rows whose scores an interrupted run had left
    out: str
    cells: CellCounts
    training_table: bool  # whether the model was fitted on this table

    @classmethod
    def of(
        cls,
        model: AnyModel,
        cells: CellCounts,
        anomalies: int,
        resumed: int,
        out: str,
        *,
        training_table: bool = False,
    ) -> ScoreSummary:
        """Return the summary of all rows that were counted."""
        calibrated = model.detector_.calibration is not None
        rate = model.false_alarm_rate_ if calibrated else None
        return cls(cells.rows, anomalies if calibrated else None, rate, resumed, out, cells, training_table)

    def to_json(self) -> dict[str, Any]:
        """Return plain types."""
        own = {name: value for name, value in vars(self).items() if name != "cells"}
        return {**own, **self.cells.to_json()}


def load_model(
    folder: str | Path,
    *,
    device: str = "auto",
    false_alarm_rate: float | str | None = None,
    missing: Sequence[str] = (),
) -> PTAD:
    """Load a model as an estimator, with another false-alarm rate and further missing markers if they are given."""
    from ptad.estimator import PTAD

    model = PTAD.load(folder, device=device)
    model.schema_ = model.schema_.with_missing(missing)
    return model if false_alarm_rate is None else model.set_false_alarm_rate(false_alarm_rate)


def load_light(
    folder: str | Path,
    *,
    device: str = "auto",
    false_alarm_rate: float | str | None = None,
    missing: Sequence[str] = (),
) -> Model:
    """Load a model for scoring and explaining only, as :func:`load_model` does; scikit-learn is not imported."""
    model = Model.load(folder, device=device)
    model.schema_ = model.schema_.with_missing(missing)
    return model if false_alarm_rate is None else model.set_false_alarm_rate(false_alarm_rate)


def scan_for(model: AnyModel, source: Any, *, batch_rows: int, encoding: str) -> TableScan:
    """Open a table for a model, which from now on reads numbers with the signs that the source names, if any."""
    wish = as_source(source)
    model.schema_ = model.schema_.with_signs(wish.decimal, wish.thousands)
    return scan_table(source, batch_rows=batch_rows, encoding=encoding, schema=model.schema_)


def decision_of(model: AnyModel) -> tuple[float, float]:
    """Return (threshold, false-alarm rate): rows with a score above the threshold are flagged."""
    if model.detector_.calibration is None:
        raise no_threshold()
    return -model.offset_, model.false_alarm_rate_


def score_table(
    model_folder: str | Path,
    source: Any,
    out: str | Path,
    *,
    explain: int = 0,
    append: bool = True,
    prefix: str = "",
    false_alarm_rate: float | str | None = None,
    device: str = "auto",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    strict: bool = False,
    bad_cells: Path | None = None,
    batch_rows: int | None = None,
    progress: Progress | None = None,
) -> ScoreSummary:
    """Score a table into a file, or to standard output as CSV.

    Parameters
    ----------
    model_folder : path
        A saved model.
    source : path, folder, glob, "-" or Query
        The table, as for :func:`ptad.tables.scan_table`.
    out : path or "-"
        The output; its suffix decides the format. It appears under its name when it is complete. A job that was
        killed goes on where it stopped when it is called again with the same arguments.
    explain : int
        Adds the columns of :func:`ptad.jobs.explain.why_columns` for k = 1..explain: name, reason, expected value,
        contribution and percentage.
    append : bool
        Whether the table's own columns come along.
    prefix : str
        Put before the names of the added columns ``score``, ``p_value``, ``anomaly`` and ``why_...``.
    missing : sequence of str
        Text that counts as missing, beside that of the model.
    strict : bool
        Whether a cell that cannot be read is an error; otherwise it counts as missing.
    bad_cells : path, optional
        A CSV file that lists such cells.
    batch_rows : int, optional
        Rows scored and kept at a time; by default few enough for constant memory on wide tables.
    progress : callable(rows_done, rows_in_all or None), optional
        Called after every batch.
    """
    check_explain(explain)
    model = load_light(model_folder, device=device, false_alarm_rate=false_alarm_rate, missing=missing)
    step = batch_rows or rows_per_batch(model)
    scan = scan_for(model, source, batch_rows=step, encoding=encoding)
    added = added_schema(explain, prefix)
    check_added_names(scan, added, append)
    schema = pa.schema([*(scan.schema if append else ()), *added])
    # a second run finds another copy of standard input, perhaps other rows in a database, and nothing to go on with on
    # standard output
    wish = as_source(source)
    keep = not isinstance(wish.source, Query) and str(source) != "-" and str(out) != "-"
    settings = {
        "model": model.digest,
        "device": model.detector_.pipeline.reference.device,
        "false_alarm_rate": None if model.detector_.calibration is None else model.false_alarm_rate_,
        "columns": added.names,
        "batch_rows": step,
        "encoding": encoding,
        "reading": [wish.sheet, wish.decimal, wish.thousands],
        "missing": list(model.schema_.missing),
        "strict": strict,
    }
    store = None if str(out) == "-" else _part_store(Path(out), scan, settings)
    anomalies = resumed = 0
    cells, training = CellCounts.none(model.schema_), TrainingTable(model.detector_.reference)
    with _output(store, schema, keep=keep) as writer, bad_cell_list(bad_cells, scan.places, out) as listed:
        for start, batch, known in known_batches(model, scan):
            result = None if store is None else store.get(start, batch.num_rows)
            if result is None:
                with located(scan.places.after(start)):
                    scored = score_batch(model, known, explain, strict=strict)
                training.add(scored.encoded)
                notes = {CELLS: scored.cells.to_bytes(), LIST: to_bytes(scored.bad)}
                result = pa.RecordBatch.from_arrays(list(scored.columns.values()), schema=added.with_metadata(notes))
                if store is not None and keep:
                    store.put(start, result)
            else:
                resumed += result.num_rows
            notes = result.schema.metadata
            listed.add(from_bytes(notes[LIST]), start)
            own = batch.columns if append else []
            writer.write(pa.RecordBatch.from_arrays([*own, *result.columns], schema=schema))
            cells += CellCounts.from_bytes(notes[CELLS], model.schema_)
            anomalies += result.column(f"{prefix}anomaly").true_count
            if progress is not None:
                progress(cells.rows, scan.n_rows)
    return ScoreSummary.of(model, cells, anomalies, resumed, str(out), training_table=training.is_it)


def added_schema(explain: int, prefix: str = "") -> pa.Schema:
    """The columns that scoring adds."""
    fields = [("score", pa.float64()), ("p_value", pa.float64()), ("anomaly", pa.bool_())]
    fields += [(name, kind) for k in range(1, explain + 1) for name, kind in why_fields(k)]
    return pa.schema([(prefix + name, kind) for name, kind in fields])


def rows_per_batch(model: AnyModel) -> int:
    """Return how many rows are scored at a time; whole batches where a model scores rows together."""
    size = int(np.clip(_CELLS_PER_BATCH // len(model.schema_.features), 256, _MOST_ROWS))
    together = model.detector_.batch_size
    return size if together is None else -(-size // together) * together


def known_batches(model: AnyModel, scan: TableScan) -> Iterator[tuple[int, pa.RecordBatch, pa.RecordBatch]]:
    """Yield (number of the first row, batch, the part of the batch that the model knows).

    Columns that the model does not know are named once; a model of an array takes columns by place.
    """
    names = known_names(model, scan.schema.names)
    start = 0
    said: set[str] = set()
    for batch in scan:
        for name, value in model.schema_.changed_constants(batch).items():
            if name not in said:
                said.add(name)
                found = f"column {name!r} is excluded ({model.schema_.left_out[name]}) but now holds {value!r}."
                logger.warning(Message(found, "To use it, fit again with {}.", (Option("types", (name, "TYPE")),)))
        yield start, batch, batch.select(names)
        start += batch.num_rows


def known_names(model: AnyModel, names: list[str], *, say: bool = True) -> list[str]:
    """Return those of the columns that the model knows, and ``say`` in the log which ones it does not.

    A column that it needs and the table does not have is an error.
    """
    model.schema_.check_columns(names)
    if model.schema_.from_array:
        return names
    inputs = set(model.schema_.inputs)
    extra = [n for n in names if n not in inputs]
    if extra and say:
        logger.warning("columns that were not there in training are ignored: %s", ", ".join(map(repr, extra)))
    return [n for n in names if n in inputs]


def check_explain(explain: int) -> None:
    """Raise unless that many columns can be named."""
    if not 0 <= explain <= MOST_EXPLAINED:
        raise SettingError(
            f"{explain:,} columns cannot be explained in every row.",
            f"Give {{}} a number from 0 to {MOST_EXPLAINED:,}.",
            (Option("explain"),),
        )


def check_added_names(scan: TableScan, added: pa.Schema, append: bool) -> None:
    """Raise if the table has columns with the names of the added ones."""
    twice = [n for n in added.names if n in scan.schema.names] if append else []
    if twice:
        raise DataError(
            f"{scan.label} already has a column {', '.join(map(repr, twice))}.",
            "Give the added columns other names with {}, or leave the table's own columns out with {}.",
            (Option("prefix"), Option("append", False)),
        )


def _part_store(out: Path, scan: TableScan, settings: dict[str, Any]) -> PartStore:
    if any(out.resolve() == s.path.resolve() for s in scan.sources):
        raise SettingError(f"{out} is the table itself. Name another file to write to.")
    sources = [[str(s.path.resolve()), *s.state] for s in scan.sources]
    return PartStore(out, {"ptad": __version__, "sources": sources, **settings})


@contextmanager
def _output(store: PartStore | None, schema: pa.Schema, *, keep: bool) -> Iterator[TableWriter]:
    """A writer to standard output or to the store's output, which is whole or not there at all.

    An interruption keeps what was scored, if it can be used again; a mistake of the user throws it away, since the
    table or the setting has to change anyway.
    """
    if store is None:
        with TableWriter("-", schema) as writer:
            yield writer
        return
    try:
        with TableWriter(store.staging, schema, store.out) as writer:
            yield writer
        store.finish()
    except BusyError:  # of the list of bad cells: what was scored before can be used again
        store.discard() if store.is_empty() else store.close()
        raise
    except UserError:
        store.discard()
        raise
    except BaseException:
        if not keep or store.is_empty():
            store.discard()
        else:
            store.close()
            logger.warning("stopped: run the same command again to go on where it stopped")
        raise
