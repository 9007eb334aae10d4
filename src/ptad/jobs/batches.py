"""A saved model and a table that is open for it: what every job that scores begins with, and its batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from ptad.errors import Message, Option
from ptad.jobs.bad_cell_list import bad_cell_list
from ptad.jobs.resume import PartStore
from ptad.jobs.scored_batch import ScoredBatch, score_batch
from ptad.model import Model, no_threshold
from ptad.tables import Query, scan_table
from ptad.tables.places import located
from ptad.tables.reading import TableSource, as_source

if TYPE_CHECKING:
    from ptad.estimator import PTAD

logger = logging.getLogger("ptad")

_CELLS_PER_BATCH = 2**19  # a batch takes seconds, not minutes: that much work is lost by a kill
_MOST_ROWS = 16384

AnyModel = TypeVar("AnyModel", bound=Model)
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """How a table is scored with a model, whatever comes of it.

    Parameters
    ----------
    false_alarm_rate : float or "auto", optional
        Another target rate than the model's.
    device : str
        Where the model runs.
    encoding : str
        Encoding of text files.
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

    false_alarm_rate: float | str | None = None
    device: str = "auto"
    encoding: str = "utf-8"
    missing: Sequence[str] = ()
    strict: bool = False
    bad_cells: Path | None = None
    batch_rows: int | None = None
    progress: Progress | None = None


class TableJob:
    """A model, and a table that is open for it.

    Parameters
    ----------
    model_folder : path
        A saved model.
    source : path, folder, glob, "-", TableSource or Query
        The table, as for :func:`ptad.tables.scan_table`.
    options : JobOptions
    device : str, optional
        Where the model runs in this process, if not where the options say.
    label : str, optional
        The label column, which the model need not know.
    """

    def __init__(
        self,
        model_folder: str | Path,
        source: Any,
        options: JobOptions,
        *,
        device: str | None = None,
        label: str | None = None,
    ) -> None:
        self.wish, self._options = as_source(source), options
        self.model = model_for(self.wish, model_folder, options, device)
        self.step = options.batch_rows or rows_per_batch(self.model)
        self.scan = scan_table(source, batch_rows=self.step, encoding=options.encoding, schema=self.model.schema_)
        # a model of an array takes columns by place
        self.known_names = known_names(self.model, self.scan.schema.names, label)
        self._warned = {label}  # columns of which no more is said

    def scored(
        self, explain: int = 0, *, store: PartStore | None = None, keep: bool = False, out: Any = None
    ) -> Generator[tuple[int, pa.RecordBatch, ScoredBatch], None, None]:
        """Yield (number of the first row, batch, what scoring says of it), and list the cells that cannot be read.

        ``explain`` columns are named per row. What an interrupted run has left in the ``store`` is not scored again;
        ``keep`` says whether new results go there. The list of cells must not take the place of ``out``.
        """
        model, scan, options, start = self.model, self.scan, self._options, 0
        with bad_cell_list(options.bad_cells, scan.places, out) as listed:
            for batch in scan:
                self._say_changed_constants(batch)
                kept = None if store is None else store.get(start, batch.num_rows)
                if kept is None:
                    with located(scan.places.after(start)):
                        scored = score_batch(model, batch.select(self.known_names), explain, strict=options.strict)
                    if store is not None and keep:
                        store.put(start, scored.to_batch())
                else:
                    scored = ScoredBatch.from_batch(kept, model.schema_)
                listed.add(scored.bad, start)
                yield start, batch, scored
                start += batch.num_rows
                if options.progress is not None:
                    options.progress(start, scan.n_rows)

    def _say_changed_constants(self, batch: pa.RecordBatch) -> None:
        """Warn once of each column that is excluded since it never varied, and now does."""
        schema = self.model.schema_
        for name, value in schema.changed_constants(batch).items():
            if name not in self._warned:
                self._warned.add(name)
                found = f"column {name!r} is excluded ({schema.excluded[name]}) but now holds {value!r}."
                logger.warning(Message(found, "To use it, fit again with {}.", (Option("types", (name, "TYPE")),)))


def model_for(wish: TableSource, folder: str | Path, options: JobOptions, device: str | None = None) -> Model:
    """Load a model for a table; it reads numbers with the signs that the source names, if any."""
    changes = {"false_alarm_rate": options.false_alarm_rate, "missing": options.missing}
    model = load_light(folder, device=device or options.device, **changes)
    model.schema_ = model.schema_.with_signs(wish.decimal, wish.thousands)
    return model


def load_model(folder: str | Path, *, device: str = "auto", **changes: Any) -> PTAD:
    """Load a model as an estimator; ``changes`` are another ``false_alarm_rate``, and further ``missing`` text."""
    from ptad.estimator import PTAD

    return _changed(PTAD.load(folder, device=device), **changes)


def load_light(folder: str | Path, *, device: str = "auto", **changes: Any) -> Model:
    """Load a model for scoring and explaining only, as :func:`load_model` does; scikit-learn is not imported."""
    return _changed(Model.load(folder, device=device), **changes)


def _changed(model: AnyModel, false_alarm_rate: float | str | None = None, missing: Sequence[str] = ()) -> AnyModel:
    model.schema_ = model.schema_.with_missing(missing)
    return model if false_alarm_rate is None else model.set_false_alarm_rate(false_alarm_rate)


def is_read_again(source: Any) -> bool:
    """Whether a table is the same when it is read again: standard input is gone, a database may have other rows."""
    found = as_source(source).source
    parts = found if isinstance(found, list | tuple) else [found]
    return not any(isinstance(part, Query) or str(part) == "-" for part in parts)


def decision_of(model: Model) -> tuple[float, float]:
    """Return (threshold, false-alarm rate): rows with a score above the threshold are flagged."""
    if model.detector_.calibration is None:
        raise no_threshold()
    return -model.offset_, model.false_alarm_rate_


def rows_per_batch(model: Model) -> int:
    """Return how many rows are scored at a time; whole batches where a model scores rows together."""
    size = int(np.clip(_CELLS_PER_BATCH // len(model.schema_.features), 256, _MOST_ROWS))
    together = model.detector_.batch_size
    return size if together is None else -(-size // together) * together


def known_names(model: Model, names: list[str], label: str | None = None) -> list[str]:
    """Return those of the columns that the model knows, and name in the log those that it does not but for a label.

    A column that it needs and the table does not have is an error.
    """
    model.schema_.check_columns(names)
    if model.schema_.from_array:
        return names
    inputs = set(model.schema_.inputs)
    extra = [n for n in names if n not in inputs and n != label]
    if extra:
        logger.warning("columns that were not there in training are ignored: %s", ", ".join(map(repr, extra)))
    return [n for n in names if n in inputs]
