"""Addresses that score and explain rows."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from ptad.engines.local import added_schema, scored_columns
from ptad.engines.top_rows import explained_rows
from ptad.errors import DataError
from ptad.estimator import PTAD
from ptad.service.context import Context, context_of
from ptad.service.formats import ARROW, CSV, FORMATS, NDJSON, PARQUET, SUFFIXES, Encoder, wanted_format
from ptad.service.lane import BATCH_ROWS, Array, Pace, score_encoded
from ptad.service.messages import ExplainAnswer, Identifier, ScoreAnswer, problems
from ptad.service.problems import Problem
from ptad.service.rows import Row, encode_rows, ignored_columns, renumbered, typed_tables
from ptad.service.uploads import shown_name

router = APIRouter(tags=["ask"])

FILES = {CSV, NDJSON, ARROW, PARQUET, "text/tab-separated-values", "application/octet-stream", "application/gzip"}
_ROWS = {
    "type": "object",
    "required": ["rows"],
    "properties": {"rows": {"type": "array", "minItems": 1, "items": {"type": "object"}}},
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_SCORE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _ROWS}, **dict.fromkeys(sorted(FILES), _BINARY)},
    }
}
_EXPLAIN_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": _ROWS}}}}
_STREAMS: dict[int | str, dict[str, Any]] = {200: {"content": dict.fromkeys(FORMATS.values(), _BINARY)}}


@router.post(
    "/v1/models/{model}/score",
    response_model=ScoreAnswer,
    responses={**_STREAMS, **problems(404, 409, 415)},
    openapi_extra=_SCORE_BODY,
)
async def score(
    request: Request,
    model: Identifier,
    explain: Annotated[int, Query(ge=0, le=20, description="Files: name this many strongest columns")] = 0,
    append: Annotated[bool, Query(description="Files: answer with the table's own columns too")] = False,
    name: Annotated[str, Query(max_length=200, description="Files: what errors call the table")] = "the table",
) -> Response:
    """Score rows (JSON), or a table (CSV, TSV, Parquet, Arrow, JSON lines; the answer is streamed).

    The answer to a table is in the format that ``Accept`` names, or in the one that was sent.
    """
    context = context_of(request)
    kind = media_type(request)
    if kind == "application/json":
        async with context.bodies.read(request.stream(), context.settings.limits.json_rows) as rows:
            return await _score_rows(context, model, rows)
    if kind not in FILES:
        raise Problem(415, f"The header Content-Type must be application/json or one of: {', '.join(sorted(FILES))}.")
    return await _score_file(request, context, model, explain, append, shown_name(name))


@router.post(
    "/v1/models/{model}/explain",
    response_model=ExplainAnswer,
    responses=problems(404, 409, 415),
    openapi_extra=_EXPLAIN_BODY,
)
async def explain(
    request: Request,
    model: Identifier,
    columns: Annotated[int, Query(ge=1, le=5000, description="Strongest columns to name per row")] = 5,
) -> Response:
    """Explain the scores of a few rows: per column contribution, reason, observed and expected value."""
    context = context_of(request)
    if media_type(request) != "application/json":
        raise Problem(415, "The header Content-Type must be application/json.")
    limits = context.settings.limits
    async with context.bodies.read(request.stream(), limits.explain_rows) as rows:
        return await _explain_rows(context, model, rows, columns)


async def _explain_rows(context: Context, model: str, rows: Sequence[Row], columns: int) -> Response:
    limits = context.settings.limits
    detector = await context.models.load(model)
    pace, start = Pace(), 0
    results: list[dict[str, Any]] = []
    async with asyncio.timeout(limits.request_seconds):
        while start < len(rows):
            part = rows[start : start + pace.rows]
            found, seconds = await context.lane.run(
                partial(_timed, partial(_explained, detector, part, start, columns))
            )
            results += found
            start += len(part)
            pace.took(seconds)
    context.metrics.rows.labels("explained").inc(len(rows))
    return json_response({"model": model, "ignored": ignored_columns(detector.schema_, rows), "results": results})


def media_type(request: Request) -> str:
    """The declared kind of the body."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def json_response(content: Any) -> Response:
    """Plain JSON; dates and the like as text."""
    return Response(json.dumps(content, default=str), media_type="application/json")


async def _score_rows(context: Context, identifier: str, rows: Sequence[Row]) -> Response:
    limits = context.settings.limits
    model = await context.models.load(identifier)
    try:
        async with asyncio.timeout(limits.request_seconds):
            if len(rows) <= BATCH_ROWS:
                scores = await context.lane.score(model, rows)
            else:
                scores = await _score_many(context, model, rows)
    except TimeoutError:
        raise Problem(503, "Too many rows are being scored just now. Try again later.") from None
    results: list[dict[str, Any]]
    calibration = model.detector_.calibration
    if calibration is None:
        results = [{"score": s, "p_value": None, "anomaly": None} for s in scores.tolist()]
    else:
        flags, p_values = scores > -model.offset_, calibration.p_value(scores)
        results = [
            {"score": s, "p_value": p, "anomaly": a}
            for s, p, a in zip(scores.tolist(), p_values.tolist(), flags.tolist(), strict=True)
        ]
    return json_response(
        {
            "model": identifier,
            "false_alarm_rate": None if calibration is None else float(model.false_alarm_rate_),
            "threshold": None if calibration is None else -float(model.offset_),
            "ignored": ignored_columns(model.schema_, rows),
            "results": results,
        }
    )


async def _score_many(context: Context, model: PTAD, rows: Sequence[Row]) -> Array:
    x = await asyncio.to_thread(encode_rows, model.schema_, rows)  # not in the lane: it takes longer than a chunk
    if model.detector_.batch_size is not None:  # scored together
        return await context.lane.run(partial(score_encoded, model, x))
    pace, parts, start = Pace(), [], 0
    while start < len(x):
        part, seconds = await context.lane.run(
            partial(_timed, partial(score_encoded, model, x[start : start + pace.rows]))
        )
        parts.append(part)
        start += len(part)
        pace.took(seconds)
    context.metrics.rows.labels("large").inc(len(x))
    return np.concatenate(parts)


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return function(), time.perf_counter() - started


def _explained(model: PTAD, rows: Sequence[Row], start: int, columns: int) -> list[dict[str, Any]]:
    found: list[tuple[int, dict[str, Any]]] = []
    for places, table in typed_tables(model.schema_, rows):
        with renumbered(lambda i, places=places: places[i] + start):  # type: ignore[misc]
            numbers = [place + start for place in places]
            found += zip(numbers, explained_rows(model, table, numbers, columns), strict=True)
    return [clean(entry) for _, entry in sorted(found, key=lambda pair: pair[0])]


def clean(value: Any) -> Any:
    """Numbers that are not finite as null: JSON has no others."""
    if isinstance(value, dict):
        return {name: clean(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [clean(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


async def _score_file(
    request: Request, context: Context, identifier: str, explain: int, append: bool, name: str
) -> Response:
    model = await context.models.load(identifier)
    answer = wanted_format(request.headers.get("accept"), media_type(request))
    async with AsyncExitStack() as stack:
        path = await stack.enter_async_context(context.uploads.spooled(request.stream(), name))
        rows_file = path.with_name("rows.arrow")
        found = await context.uploads.read(path, name, schema=model.schema_, rows_file=rows_file, append=append)
        added = added_schema(explain)
        with pa.OSFile(str(rows_file)) as file:
            own = pa.ipc.open_file(file).schema
        own = own if append else pa.schema([])
        twice = [n for n in added.names if n in own.names]
        if twice:
            raise DataError(f"{name} already has a column {twice[0]!r}. Ask without append, or rename it.")
        later = stack.pop_all()  # the file is needed until the last byte of the answer
    chunks = _scored_chunks(context, model, rows_file, found["known"], explain)
    stream = _encoded(chunks, Encoder(answer, pa.schema([*own, *added])), append, later)
    headers = {"Content-Disposition": f'attachment; filename="scores.{SUFFIXES[answer]}"'}
    return StreamingResponse(stream, media_type=answer, headers=headers)


async def _scored_chunks(
    context: Context, model: PTAD, rows_file: Path, known: list[str], explain: int
) -> AsyncIterator[tuple[pa.RecordBatch, list[pa.Array]]]:
    """Chunks of the table with their scores, scored between the small calls of others."""
    pace = Pace()
    with pa.OSFile(str(rows_file)) as file:
        reader = pa.ipc.open_file(file)
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            start = 0
            while start < batch.num_rows:
                size = model.detector_.batch_size or pace.rows
                chunk = batch.slice(start, size)
                work = partial(scored_columns, model, chunk.select(known), explain)
                columns, seconds = await context.lane.run(partial(_timed, work))
                pace.took(seconds)
                start += chunk.num_rows
                context.metrics.rows.labels("large").inc(chunk.num_rows)
                yield chunk, list(columns.values())


async def _encoded(
    chunks: AsyncIterator[tuple[pa.RecordBatch, list[pa.Array]]], encoder: Encoder, append: bool, later: AsyncExitStack
) -> AsyncIterator[bytes]:
    async with later:
        async for chunk, columns in chunks:
            own = chunk.columns if append else []
            blob = encoder.write(pa.RecordBatch.from_arrays([*own, *columns], schema=encoder.schema))
            if blob:
                yield blob
        yield encoder.close()
