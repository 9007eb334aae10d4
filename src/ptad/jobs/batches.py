"""A saved model and an open table: what every job that scores a table begins with, and the batches that it scores."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ptad.errors import Message, Option
from ptad.jobs import Progress
from ptad.jobs.bad_cell_list import bad_cell_list
from ptad.jobs.resume import PartStore
from ptad.jobs.scored_batch import ScoredBatch, score_batch
from ptad.model import Model, no_threshold
from ptad.tables import Query, Schema, scan_table
from ptad.tables.places import located
from ptad.tables.reading import TableSource, as_source

logger = logging.getLogger("ptad")

_CELLS_PER_BATCH = 2**19  # a batch takes seconds, not minutes: that much work is lost when a job is killed
_MOST_ROWS = 16384

AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Options of every job that scores a table with a saved model."""

    false_alarm_rate: float | str | None = None  # another target rate than the model's, or "auto"
    device: str = "auto"  # where the model runs
    encoding: str = "utf-8"  # of text files
    missing: Sequence[str] = ()  # text that counts as missing, in addition to that of the model
    strict: bool = False  # whether a cell that cannot be read is an error; otherwise it counts as missing
    bad_cells: Path | None = None  # a CSV file that lists such cells
    batch_rows: int | None = None  # rows scored and stored at a time; by default few enough for constant memory
    progress: Progress | None = None


class TableJob:
    """A saved model and an open table, whose column ``label`` the model need not know.

    ``batch_rows`` rows are scored at a time; ``known_names`` are the columns that the model uses.
    """

    def __init__(self, model_folder: str | Path, source: Any, options: JobOptions, *, label: str | None = None) -> None:
        self.source, self._options = as_source(source), options
        self.model = load_model(model_folder, self.source, options)
        self.batch_rows = options.batch_rows or rows_per_batch(self.model)
        self.scan = scan_table(source, batch_rows=self.batch_rows, encoding=options.encoding, schema=self.model.schema_)
        self.known_names, ignored = known_columns(self.model.schema_, self.scan.schema.names, label)
        warn_of_ignored(ignored)
        self._warned = {label}  # columns that need no further warning

    def scored(
        self, explain: int = 0, *, store: PartStore | None = None, out: Any = None
    ) -> Generator[tuple[int, pa.RecordBatch, ScoredBatch], None, None]:
        """Yield (number of the first row, batch, scores) of every batch, and list the cells that cannot be read.

        ``explain`` columns are named per row. Batches that an interrupted run has left in the ``store`` are not scored
        again, new ones are put there. The list of cells must not take the place of ``out``.
        """
        model, scan, options, start = self.model, self.scan, self._options, 0
        with bad_cell_list(options.bad_cells, scan.places, out) as bad_cells:
            for batch in scan:
                for name, message in constant_warnings(model.schema_, batch).items():
                    if name not in self._warned:
                        self._warned.add(name)
                        logger.warning(message)
                stored = None if store is None else store.get(start, batch.num_rows)
                if stored is None:
                    with located(scan.places.after(start)):
                        scored = score_batch(model, batch.select(self.known_names), explain, strict=options.strict)
                    if store is not None:
                        store.put(start, scored.to_batch())
                else:
                    scored = ScoredBatch.from_batch(stored, model.schema_)
                bad_cells.add(scored.bad, start)
                yield start, batch, scored
                start += batch.num_rows
                if options.progress is not None:
                    options.progress(start, scan.n_rows)


def constant_warnings(schema: Schema, batch: pa.RecordBatch) -> dict[str, Message]:
    """Return a warning for each column that is excluded because it was constant in training, and no longer is."""
    messages = {}
    for name, value in schema.changed_constants(batch).items():
        problem = f"column {name!r} is excluded ({schema.excluded[name]}) but now holds {value!r}."
        messages[name] = Message(
            problem, "To use it, fit again with {types}.", options=(Option("types", (name, "TYPE")),)
        )
    return messages


def load_model(folder: str | os.PathLike[str], source: TableSource, options: JobOptions) -> Model:
    """Load a model with the options of a job and the number signs of its table, if they are given."""
    return with_options(Model.load(folder, device=options.device), source, options)


def with_options(model: AnyModel, source: TableSource, options: JobOptions) -> AnyModel:
    """Give a model the target rate and the missing text of a job, and the number signs of its table."""
    model.schema_ = model.schema_.with_missing(options.missing).with_signs(source.decimal, source.thousands)
    rate = options.false_alarm_rate
    return model if rate is None else model.set_false_alarm_rate(rate)


def is_repeatable(source: Any) -> bool:
    """Whether a table can be read again: standard input cannot, and a database may have other rows by then."""
    paths = as_source(source).source
    parts = paths if isinstance(paths, list | tuple) else [paths]
    return not any(isinstance(part, Query) or str(part) == "-" for part in parts)


def operating_point(model: Model) -> tuple[float, float]:
    """Return (threshold, target false-alarm rate); a model without a threshold is refused."""
    if model.detector_.calibration is None:
        raise no_threshold()
    return -model.offset_, model.false_alarm_rate_


def rows_per_batch(model: Model) -> int:
    """Return how many rows are scored at a time; a multiple of the batch size where a model scores rows together."""
    n_rows = int(np.clip(_CELLS_PER_BATCH // len(model.schema_.features), 256, _MOST_ROWS))
    batch_size = model.detector_.batch_size
    return n_rows if batch_size is None else -(-n_rows // batch_size) * batch_size


def known_columns(schema: Schema, names: Sequence[str], label: str | None) -> tuple[list[str], list[str]]:
    """Return the columns of a table that the model uses, and those that it does not know; the label is neither.

    A column that the model uses and the table does not have is an error.
    """
    if schema.from_array:  # columns are known by their position: all but the label, unless it was a column in training
        is_input = len(names) == len(schema.inputs)
        return [name for name in names if is_input or name != label], []
    schema.check_columns(list(names))
    inputs = set(schema.inputs)
    return [name for name in names if name in inputs], [n for n in names if n not in inputs and n != label]


def warn_of_ignored(names: Sequence[str]) -> None:
    """Warn of columns that the model does not know."""
    if names:
        logger.warning("columns that were not there in training are ignored: %s", ", ".join(map(repr, names)))
