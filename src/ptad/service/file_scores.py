"""Scoring a table as it is sent: checked as a whole first, then scored while the answer is streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pyarrow as pa
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ptad.estimator import PTAD
from ptad.jobs.score import added_schema, output_schema
from ptad.jobs.scored_batch import score_batch
from ptad.service import sandbox_tasks
from ptad.service.batching import ChunkSize
from ptad.service.context import Context
from ptad.service.formats import ANSWER_FORMATS, Encoder


class TemporaryFileResponse(StreamingResponse):
    """A streamed answer that is made from temporary files, which ``cleanup`` removes.

    The response does it, not its stream: a stream whose client has already gone is never started.
    """

    def __init__(self, cleanup: AsyncExitStack, stream: AsyncIterator[bytes], **more: Any) -> None:
        super().__init__(stream, **more)
        self.cleanup = cleanup

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self.cleanup:
            await super().__call__(scope, receive, send)


async def score_file(
    context: Context,
    model: PTAD,
    body: AsyncIterator[bytes],
    name: str,
    media_type: str,
    *,
    explain: int,
    append: bool,
    strict: bool,
) -> Response:
    """Score a table as it is sent, and stream the answer in a media type."""
    async with AsyncExitStack() as stack:
        path = await stack.enter_async_context(context.uploads.receive(body, name))
        rows_file = path.with_name("rows.arrow")
        schema = model.schema_.to_json()
        arguments = {"name": name, "schema": schema, "out": rows_file, "append": append, "strict": strict}
        checked = await context.sandbox.run(sandbox_tasks.table_rows, path=path, **arguments)
        with pa.OSFile(str(rows_file)) as file:
            table_schema = pa.ipc.open_file(file).schema if append else pa.schema([])
        remedy = "Send the request without 'append', or rename it."
        encoder = Encoder(media_type, output_schema(name, table_schema, added_schema(explain), remedy))
        cleanup = stack.pop_all()  # the file is needed until the last byte of the answer

    async def stream() -> AsyncIterator[bytes]:
        """Yield the answer chunk by chunk; chunks are scored between the small calls of others."""
        chunk_size = ChunkSize()
        with pa.OSFile(str(rows_file)) as file:
            reader = pa.ipc.open_file(file)
            for i in range(reader.num_record_batches):
                batch, start = await asyncio.to_thread(reader.get_batch, i), 0
                while start < batch.num_rows:
                    chunk = batch.slice(start, model.detector_.batch_size or chunk_size.rows)
                    score = partial(score_batch, model, chunk.select(checked["inputs"]), explain)
                    scored = await context.batcher.run(score, chunk_size)
                    start += chunk.num_rows
                    context.metrics.rows.labels("large").inc(chunk.num_rows)
                    columns = [*(chunk.columns if append else ()), *scored.columns.values()]
                    rows = pa.RecordBatch.from_arrays(columns, schema=encoder.schema)
                    if block := await asyncio.to_thread(encoder.write, rows):
                        yield block
        yield encoder.close()

    suffix = next(suffix for suffix, kind in ANSWER_FORMATS.items() if kind == media_type)
    headers = {
        "Content-Disposition": f'attachment; filename="scores.{suffix}"',
        "Ptad-Bad-Cells": str(checked["bad_cells"]),
    }
    return TemporaryFileResponse(cleanup, stream(), media_type=media_type, headers=headers)
