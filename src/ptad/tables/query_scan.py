"""Rows of a query, batch by batch: the same scan that files give."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ptad.errors import DataError
from ptad.tables.database import Query
from ptad.tables.query_readers import OpenQuery, open_query
from ptad.tables.reading import TableScan
from ptad.tables.sources import Source

if TYPE_CHECKING:
    from ptad.tables.schema import Schema


class QueryScan(TableScan):
    """Batches of a query in the order in which the database gives them; ``n_rows`` is None unless it is known."""

    def __init__(
        self,
        query: Query,
        batch_rows: int,
        missing: Sequence[str],
        fitted: Schema | None,
        label: str | None = None,
    ) -> None:
        self._query = query
        self._open: OpenQuery
        database = query.database
        path = database.path or Path(database.kind)
        source = Source(path, label or f"The query on {database.label}", "query", None, (0, 0))
        super().__init__([source], batch_rows, tuple(missing), "utf-8", fitted)

    def _look(self) -> tuple[pa.Schema, int | None]:
        self._open = open_query(self._query, self._batch_rows)
        # a scan that is given up leaves no connection open
        weakref.finalize(self, self._open.close)
        first = next(self._open.batches, None)
        if first is None:
            self._open.close()
            raise DataError(f"{self.label} gives no rows. Check its conditions.")
        self._waiting = chain([first], self._open.batches)
        return self._open.schema, self._open.n_rows

    def _of(self, source: Source) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._waiting
        finally:
            self._open.close()
