"""Scoring a table of any size on this machine: batch by batch, at constant memory, in the order of the rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ptad._version import __version__
from ptad.errors import BusyError, DataError, Option, SettingError, UserError
from ptad.files import output_file
from ptad.jobs.batches import JobOptions, TableJob, is_repeatable
from ptad.jobs.reasons import why_fields
from ptad.jobs.resume import PartStore
from ptad.jobs.scored_batch import CellCounts
from ptad.jobs.training_table import TrainingTable
from ptad.model import Model
from ptad.tables import TableWriter

logger = logging.getLogger("ptad")

MOST_EXPLAINED = 1000  # columns named per row: each adds five to the output


@dataclass(frozen=True)
class ScoreSummary:
    """The result of a scoring job; ``anomalies`` and ``false_alarm_rate`` are None for a model without a threshold."""

    rows: int
    anomalies: int | None
    false_alarm_rate: float | None
    rows_resumed: int  # rows whose scores were left by an interrupted run
    out: str
    cells: CellCounts
    training_table: bool  # whether the model was fitted on this table

    @classmethod
    def of(
        cls, model: Model, cells: CellCounts, anomalies: int, resumed: int, out: Any, *, training_table: bool
    ) -> ScoreSummary:
        """Return the summary of all rows that were counted, and warn of columns in which no cell could be read."""
        for message in cells.unreadable_columns(model.schema_):
            logger.warning(message)
        calibrated = model.detector_.calibration is not None
        rate = model.false_alarm_rate_ if calibrated else None
        return cls(cells.rows, anomalies if calibrated else None, rate, resumed, str(out), cells, training_table)

    def to_json(self) -> dict[str, Any]:
        """Return plain types."""
        return {name: value for name, value in vars(self).items() if name != "cells"} | self.cells.to_json()


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(JobOptions):
    """Options of scoring, on this machine, on a cluster or into a database."""

    explain: int = 0  # adds the columns of ptad.jobs.reasons.why_columns for the strongest columns of every row
    append: bool = True  # whether the output has the columns of the table too
    prefix: str = ""  # put before the names of the added columns


class ScoreJob(TableJob):
    """A saved model, an open table, and the ``schema`` of the output."""

    def __init__(self, model_folder: str | Path, source: Any, options: ScoreOptions) -> None:
        if not 0 <= options.explain <= MOST_EXPLAINED:
            raise SettingError(
                f"{options.explain:,} columns cannot be explained in every row.",
                f"Give {{explain}} a number from 0 to {MOST_EXPLAINED:,}.",
            )
        super().__init__(model_folder, source, options)
        self.options, self.added = options, added_schema(options.explain, options.prefix)
        table_schema = self.scan.schema if options.append else pa.schema([])
        self.schema = output_schema(self.scan.label, table_schema, self.added)

    def fingerprint(self) -> dict[str, Any]:
        """Return everything that the scores depend on, as plain JSON."""
        model, options = self.model, self.options
        return {
            "ptad": __version__,
            "model": model.digest,
            "sources": [[str(s.path.resolve()), *s.state] for s in self.scan.sources],
            "device": model.detector_.pipeline.reference.device,
            "false_alarm_rate": None if model.detector_.calibration is None else model.false_alarm_rate_,
            "columns": self.added.names,
            "batch_rows": self.batch_rows,
            "encoding": options.encoding,
            "reading": [self.source.sheet, self.source.decimal, self.source.thousands],
            "missing": list(model.schema_.missing),
            "strict": options.strict,
        }


def score_table(model_folder: str | Path, source: Any, out: str | Path, **options: Any) -> ScoreSummary:
    """Score a table into a file, or to standard output as CSV if ``out`` is "-".

    The suffix of the file decides its format. It appears under its name when it is complete. A job that was killed
    resumes when it is called again with the same arguments. The options are those of :class:`ScoreOptions`.
    """
    score_options = ScoreOptions(**options)
    job = ScoreJob(model_folder, source, score_options)
    model, to_stdout = job.model, str(out) == "-"
    target = None if to_stdout else output_file(out, DataError)
    if target is not None and any(os.path.realpath(target) == os.path.realpath(s.path) for s in job.scan.sources):
        raise SettingError(f"{out} is the table itself. Name another file to write to.")
    store = None if target is None else PartStore(target, job.fingerprint())
    resumable = store if is_repeatable(source) else None
    anomalies = resumed = 0
    cells, training = CellCounts.none(model.schema_), TrainingTable(model.detector_.reference)
    with (
        _output(store, job.schema) as writer,
        closing(job.scored(score_options.explain, store=resumable, out=out)) as batches,
    ):
        for _, batch, scored in batches:
            table_columns = batch.columns if score_options.append else []
            writer.write(pa.RecordBatch.from_arrays([*table_columns, *scored.columns.values()], schema=job.schema))
            cells += scored.cells
            anomalies += scored.anomalies
            training.add(scored.encoded)
            resumed += batch.num_rows if scored.encoded is None else 0
    return ScoreSummary.of(model, cells, anomalies, resumed, out, training_table=training.detected)


def added_schema(explain: int, prefix: str = "") -> pa.Schema:
    """Return the columns that scoring adds."""
    fields = [("score", pa.float64()), ("p_value", pa.float64()), ("anomaly", pa.bool_())]
    fields += [field for k in range(1, explain + 1) for field in why_fields(k)]
    return pa.schema([(prefix + name, type_) for name, type_ in fields])


def output_schema(table: str, table_schema: pa.Schema, added: pa.Schema, otherwise: str = "Rename it.") -> pa.Schema:
    """Return the columns of a table followed by the added ones; a name that both have is refused.

    ``otherwise`` is the remedy for interfaces without the options ``prefix`` and ``append``.
    """
    present = set(table_schema.names)
    duplicates = [name for name in added.names if name in present]
    if duplicates:
        raise DataError(
            f"{table} already has a column {', '.join(map(repr, duplicates))}.",
            "Give the added columns other names with {prefix}, or leave the table's own columns out with {append}.",
            otherwise,
            options=(Option("append", False),),
        )
    return pa.schema([*table_schema, *added])


@contextmanager
def _output(store: PartStore | None, schema: pa.Schema) -> Iterator[TableWriter]:
    """Yield a writer to standard output, or to a file that appears when it is complete.

    After an interruption, the scores of finished batches stay in the store; after a user error they are deleted, since
    the table or a setting has to change.
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
        # BusyError: another job writes the list of bad cells, but the scores are still valid
        if not any(store.folder.glob("*.arrow")) or (isinstance(error, UserError) and not isinstance(error, BusyError)):
            store.discard()
        else:
            store.close()
            if not isinstance(error, UserError):
                logger.warning("interrupted: score again with the same arguments to resume")
        raise
