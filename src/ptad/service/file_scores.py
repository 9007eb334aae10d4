"""A table that is scored as it is sent: checked as a whole first, then scored while the answer goes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pyarrow as pa
from starlette.responses import Response, StreamingResponse

from ptad.errors import DataError
from ptad.estimator import PTAD
from ptad.jobs.score import added_schema
from ptad.jobs.scored_batch import score_batch
from ptad.service import bodies
from ptad.service.batching import Pace
from ptad.service.context import Context
from ptad.service.formats import ANSWER_FORMATS, Encoder

BAD_CELLS_HEADER = "Ptad-Bad-Cells"  # the header of a streamed answer that says how many cells could not be read


async def score_file(
    context: Context,
    model: PTAD,
    body: AsyncIterator[bytes],
    name: str,
    answer: str,
    *,
    explain: int,
    append: bool,
    strict: bool,
) -> Response:
    """Score a table as it is sent, and answer with a stream in the media type ``answer``."""
    async with AsyncExitStack() as stack:
        path = await stack.enter_async_context(context.uploads.spooled(body, name))
        rows_file = path.with_name("rows.arrow")
        schema = model.schema_.to_json()
        wish = {"name": name, "schema": schema, "out": rows_file, "append": append, "strict": strict}
        found = await context.sandbox.run(bodies.table_rows, path=path, **wish)
        added = added_schema(explain)
        with pa.OSFile(str(rows_file)) as file:
            own = pa.ipc.open_file(file).schema
        own = own if append else pa.schema([])
        twice = [n for n in added.names if n in own.names]
        if twice:
            raise DataError(f"{name} already has a column {twice[0]!r}. Ask without append, or rename it.")
        later = stack.pop_all()  # the file is needed until the last byte of the answer
    encoder = Encoder(answer, pa.schema([*own, *added]))
    stream = _scored(context, model, rows_file, found["known"], explain, append, encoder, later)
    suffix = next(name for name, kind in ANSWER_FORMATS.items() if kind == answer)
    headers = {
        "Content-Disposition": f'attachment; filename="scores.{suffix}"',
        BAD_CELLS_HEADER: str(found["bad_cells"]),
    }
    return StreamingResponse(stream, media_type=answer, headers=headers)


async def _scored(
    context: Context,
    model: PTAD,
    rows_file: Path,
    known: list[str],
    explain: int,
    append: bool,
    encoder: Encoder,
    later: AsyncExitStack,
) -> AsyncIterator[bytes]:
    """The table with its scores, chunk by chunk, which are scored between the small calls of others."""
    pace = Pace()
    async with later:
        with pa.OSFile(str(rows_file)) as file:
            reader = pa.ipc.open_file(file)
            for i in range(reader.num_record_batches):
                batch, start = await asyncio.to_thread(reader.get_batch, i), 0
                while start < batch.num_rows:
                    chunk = batch.slice(start, model.detector_.batch_size or pace.rows)
                    scored = await context.batcher.run(partial(score_batch, model, chunk.select(known), explain), pace)
                    start += chunk.num_rows
                    context.metrics.rows.labels("large").inc(chunk.num_rows)
                    columns = [*(chunk.columns if append else ()), *scored.columns.values()]
                    rows = pa.RecordBatch.from_arrays(columns, schema=encoder.schema)
                    if blob := await asyncio.to_thread(encoder.write, rows):
                        yield blob
        yield encoder.close()
