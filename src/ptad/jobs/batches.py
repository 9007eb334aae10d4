"""A model from its folder, and the batches of a table as the model takes them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from ptad.messages import Message, Option
from ptad.model import Model
from ptad.table_model import TableModel, no_threshold
from ptad.tables import Query, TableScan, scan_table
from ptad.tables.reading import as_source

if TYPE_CHECKING:
    from ptad.estimator import PTAD

logger = logging.getLogger("ptad")

_CELLS_PER_BATCH = 2**19  # a batch takes seconds, not minutes: that much work is lost by a kill
_MOST_ROWS = 16384

AnyModel = TypeVar("AnyModel", bound=TableModel)


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


def scan_for(model: TableModel, source: Any, *, batch_rows: int, encoding: str) -> TableScan:
    """Open a table for a model, which from now on reads numbers with the signs that the source names, if any."""
    wish = as_source(source)
    model.schema_ = model.schema_.with_signs(wish.decimal, wish.thousands)
    return scan_table(source, batch_rows=batch_rows, encoding=encoding, schema=model.schema_)


def decision_of(model: TableModel) -> tuple[float, float]:
    """Return (threshold, false-alarm rate): rows with a score above the threshold are flagged."""
    if model.detector_.calibration is None:
        raise no_threshold()
    return -model.offset_, model.false_alarm_rate_


def rows_per_batch(model: TableModel) -> int:
    """Return how many rows are scored at a time; whole batches where a model scores rows together."""
    size = int(np.clip(_CELLS_PER_BATCH // len(model.schema_.features), 256, _MOST_ROWS))
    together = model.detector_.batch_size
    return size if together is None else -(-size // together) * together


def known_batches(model: TableModel, scan: TableScan) -> Iterator[tuple[int, pa.RecordBatch, pa.RecordBatch]]:
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
                found = f"column {name!r} is excluded ({model.schema_.excluded[name]}) but now holds {value!r}."
                logger.warning(Message(found, "To use it, fit again with {}.", (Option("types", (name, "TYPE")),)))
        yield start, batch, batch.select(names)
        start += batch.num_rows


def known_names(model: TableModel, names: list[str], *, say: bool = True) -> list[str]:
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
