"""Scoring a table of any size on this machine: batch by batch, at constant memory, in the order of the rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ptad._version import __version__
from ptad.errors import BusyError, DataError, Option, SettingError, UserError
from ptad.jobs.batches import JobOptions, TableJob, is_read_again
from ptad.jobs.explain import why_fields
from ptad.jobs.resume import PartStore
from ptad.jobs.scored_batch import CellCounts
from ptad.jobs.training_table import TrainingTable
from ptad.model import Model
from ptad.tables import TableWriter

logger = logging.getLogger("ptad")

MOST_EXPLAINED = 1000  # columns named per row: each adds five to the output


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
        cls, model: Model, cells: CellCounts, anomalies: int, resumed: int, out: Any, *, training_table: bool
    ) -> ScoreSummary:
        """Return the summary of all rows that were counted, and warn of columns in which nothing could be read."""
        for message in cells.unread(model.schema_):
            logger.warning(message)
        calibrated = model.detector_.calibration is not None
        rate = model.false_alarm_rate_ if calibrated else None
        return cls(cells.rows, anomalies if calibrated else None, rate, resumed, str(out), cells, training_table)

    def to_json(self) -> dict[str, Any]:
        """Return plain types."""
        own = {name: value for name, value in vars(self).items() if name != "cells"}
        return {**own, **self.cells.to_json()}


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(JobOptions):
    """How a table is scored, on this machine, on a cluster or into a database.

    Parameters
    ----------
    explain : int
        Adds the columns of :func:`ptad.jobs.explain.why_columns` for k = 1..explain: name, reason, expected value,
        contribution and percentage.
    append : bool
        Whether the table's own columns come along.
    prefix : str
        Put before the names of the added columns ``score``, ``p_value``, ``anomaly`` and ``why_...``.
    """

    explain: int = 0
    append: bool = True
    prefix: str = ""


class ScoreJob(TableJob):
    """A model, a table that is open for it, and the columns of the output."""

    def __init__(
        self, model_folder: str | Path, source: Any, options: ScoreOptions, *, device: str | None = None
    ) -> None:
        if not 0 <= options.explain <= MOST_EXPLAINED:
            raise SettingError(
                f"{options.explain:,} columns cannot be explained in every row.",
                f"Give {{}} a number from 0 to {MOST_EXPLAINED:,}.",
                (Option("explain"),),
            )
        super().__init__(model_folder, source, options, device=device)
        self.options, self.added = options, added_schema(options.explain, options.prefix)
        twice = [n for n in self.added.names if n in self.scan.schema.names] if options.append else []
        if twice:
            raise DataError(
                f"{self.scan.label} already has a column {', '.join(map(repr, twice))}.",
                "Give the added columns other names with {}, or leave the table's own columns out with {}.",
                (Option("prefix"), Option("append", False)),
            )
        self.schema = pa.schema([*(self.scan.schema if options.append else ()), *self.added])

    def belongs_to(self) -> dict[str, Any]:
        """Return everything that the scores depend on, as plain JSON."""
        model, options = self.model, self.options
        return {
            "ptad": __version__,
            "model": model.digest,
            "sources": [[str(s.path.resolve()), *s.state] for s in self.scan.sources],
            "device": model.detector_.pipeline.reference.device,
            "false_alarm_rate": None if model.detector_.calibration is None else model.false_alarm_rate_,
            "columns": self.added.names,
            "batch_rows": self.step,
            "encoding": options.encoding,
            "reading": [self.wish.sheet, self.wish.decimal, self.wish.thousands],
            "missing": list(model.schema_.missing),
            "strict": options.strict,
        }


def score_table(model_folder: str | Path, source: Any, out: str | Path, **options: Any) -> ScoreSummary:
    """Score a table into a file, or to standard output as CSV.

    Parameters
    ----------
    model_folder, source
        As for :class:`ptad.jobs.batches.TableJob`.
    out : path or "-"
        The output; its suffix decides the format. It appears under its name when it is complete. A job that was
        killed goes on where it stopped when it is called again with the same arguments.
    **options
        Those of :class:`ScoreOptions`.
    """
    chosen = ScoreOptions(**options)
    job = ScoreJob(model_folder, source, chosen)
    model, to_stdout = job.model, str(out) == "-"
    keep = is_read_again(source) and not to_stdout  # otherwise there is nothing to go on with
    if not to_stdout and any(Path(out).resolve() == s.path.resolve() for s in job.scan.sources):
        raise SettingError(f"{out} is the table itself. Name another file to write to.")
    store = None if to_stdout else PartStore(Path(out), job.belongs_to())
    anomalies = resumed = 0
    cells, training = CellCounts.none(model.schema_), TrainingTable(model.detector_.reference)
    with (
        _output(store, job.schema, keep=keep) as writer,
        closing(job.scored(chosen.explain, store=store, keep=keep, out=out)) as batches,
    ):
        for _, batch, scored in batches:
            own = batch.columns if chosen.append else []
            writer.write(pa.RecordBatch.from_arrays([*own, *scored.columns.values()], schema=job.schema))
            cells += scored.cells
            anomalies += scored.anomalies
            training.add(scored.encoded)
            resumed += batch.num_rows if scored.encoded is None else 0
    return ScoreSummary.of(model, cells, anomalies, resumed, out, training_table=training.is_it)


def added_schema(explain: int, prefix: str = "") -> pa.Schema:
    """The columns that scoring adds."""
    fields = [("score", pa.float64()), ("p_value", pa.float64()), ("anomaly", pa.bool_())]
    fields += [(name, kind) for k in range(1, explain + 1) for name, kind in why_fields(k)]
    return pa.schema([(prefix + name, kind) for name, kind in fields])


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
    except BaseException as error:
        # while another job has the list of bad cells, what was scored before stays of use
        if store.is_empty() or not keep or (isinstance(error, UserError) and not isinstance(error, BusyError)):
            store.discard()
        else:
            store.close()
            if not isinstance(error, UserError):
                logger.warning("stopped: run the same command again to go on where it stopped")
        raise
