"""Addresses that score and explain rows."""

from __future__ import annotations

import asyncio
import copy
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
from pydantic import StringConstraints
from starlette.responses import Response, StreamingResponse

from ptad.errors import DataError
from ptad.estimator import PTAD
from ptad.jobs.score import added_schema
from ptad.jobs.scored_batch import score_batch
from ptad.jobs.top_rows import explained_rows
from ptad.service.api_types import ExplainAnswer, Identifier, ScoreAnswer, problems
from ptad.service.batching import BATCH_ROWS, Pace, RowScores, score_encoded
from ptad.service.context import Context, context_of
from ptad.service.formats import ARROW, CSV, FORMATS, NDJSON, PARQUET, SUFFIXES, Encoder, wanted_format
from ptad.service.problems import Problem
from ptad.service.rows import (
    MOST_LISTED,
    Row,
    encode_rows,
    ignored_columns,
    placed,
    said_of,
    typed_tables,
    without_markers,
)
from ptad.service.uploads import shown_name
from ptad.tables import BadCells

router = APIRouter(tags=["ask"])

FILES = {CSV, NDJSON, ARROW, PARQUET, "text/tab-separated-values", "application/octet-stream", "application/gzip"} | {
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.ms-excel",
    "application/vnd.oasis.opendocument.spreadsheet",
}
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
BAD_CELLS = "Ptad-Bad-Cells"  # the header of a streamed answer that says how many cells could not be read
Strict = Annotated[bool, Query(description="Refuse a cell that cannot be read; otherwise it counts as missing")]
Missing = Annotated[
    list[Annotated[str, StringConstraints(max_length=1000)]],
    Query(max_length=100, description="Text that means missing, beside that of the model"),
]
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
    strict: Strict = False,
    missing: Missing = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Score rows (JSON), or a table (CSV, TSV, Parquet, Arrow, JSON lines; the answer is streamed).

    The answer to a table is in the format that ``Accept`` names, or in the one that was sent. Its header
    ``Ptad-Bad-Cells`` says how many cells could not be read and count as missing.
    """
    context = context_of(request)
    kind = media_type(request)
    if kind == "application/json":
        async with context.bodies.read(request.stream(), context.settings.limits.json_rows) as rows:
            return await _score_rows(context, model, rows, strict, missing)
    if kind not in FILES:
        raise Problem(415, f"The header Content-Type must be application/json or one of: {', '.join(sorted(FILES))}.")
    detector = _with_missing(await context.models.load(model), missing)
    return await _score_file(request, context, detector, explain, append, shown_name(name), strict)


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
    strict: Strict = False,
    missing: Missing = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Explain the scores of a few rows: per column contribution, reason, observed and expected value."""
    context = context_of(request)
    if media_type(request) != "application/json":
        raise Problem(415, "The header Content-Type must be application/json.")
    limits = context.settings.limits
    async with context.bodies.read(request.stream(), limits.explain_rows) as rows:
        return await _explain_rows(context, model, rows, columns, strict, missing)


async def _explain_rows(
    context: Context, model: str, rows: Sequence[Row], columns: int, strict: bool, missing: Sequence[str]
) -> Response:
    limits = context.settings.limits
    detector, bad = _with_missing(await context.models.load(model), missing), BadCells(strict=strict)
    pace, start = Pace(), 0
    results: list[dict[str, Any]] = []
    async with asyncio.timeout(limits.request_seconds):
        while start < len(rows):
            part = rows[start : start + pace.rows]
            found, seconds = await context.batcher.run(
                partial(_timed, partial(_explained, detector, part, start, columns, bad))
            )
            results += found
            start += len(part)
            pace.took(seconds)
    context.metrics.rows.labels("explained").inc(len(rows))
    ignored = ignored_columns(detector.schema_, rows)
    said = said_of(*(await asyncio.to_thread(bad.of_parts, [len(rows)], MOST_LISTED))[0])
    return json_response({"model": model, "ignored": ignored, **said, "results": results})


def _with_missing(model: PTAD, missing: Sequence[str]) -> PTAD:
    """The model, to which further text means missing."""
    if not missing:
        return model
    own = copy.copy(model)
    own.schema_ = model.schema_.with_missing(missing)
    return own


def media_type(request: Request) -> str:
    """The declared kind of the body."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def json_response(content: Any) -> Response:
    """Plain JSON; dates and the like as text."""
    return Response(json.dumps(content, default=str), media_type="application/json")


async def _score_rows(
    context: Context, identifier: str, rows: list[Row], strict: bool, missing: Sequence[str]
) -> Response:
    limits = context.settings.limits
    if missing:
        rows = await asyncio.to_thread(without_markers, rows, missing)
    model = await context.models.load(identifier)
    try:
        async with asyncio.timeout(limits.request_seconds):
            if len(rows) <= BATCH_ROWS:
                found = await context.batcher.score(model, rows)
            else:
                found = await _score_many(context, model, rows)
    except TimeoutError:
        raise Problem(503, "Too many rows are being scored just now. Try again later.") from None
    if strict and found.n_bad:
        raise found.first_bad[0].refusal()
    results: list[dict[str, Any]]
    scores = found.scores
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
            **said_of(found.n_bad, found.first_bad),
            "results": results,
        }
    )


async def _score_many(context: Context, model: PTAD, rows: Sequence[Row]) -> RowScores:
    bad = BadCells()
    x = await asyncio.to_thread(encode_rows, model.schema_, rows, bad)  # not in the batcher: longer than a chunk
    ((n_bad, first_bad),) = await asyncio.to_thread(bad.of_parts, [len(rows)], MOST_LISTED)
    if model.detector_.batch_size is not None:  # scored together
        return RowScores(await context.batcher.run(partial(score_encoded, model, x)), n_bad, first_bad)
    pace, parts, start = Pace(), [], 0
    while start < len(x):
        part, seconds = await context.batcher.run(
            partial(_timed, partial(score_encoded, model, x[start : start + pace.rows]))
        )
        parts.append(part)
        start += len(part)
        pace.took(seconds)
    context.metrics.rows.labels("large").inc(len(x))
    return RowScores(np.concatenate(parts), n_bad, first_bad)


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return function(), time.perf_counter() - started


def _explained(model: PTAD, rows: Sequence[Row], start: int, columns: int, bad: BadCells) -> list[dict[str, Any]]:
    found: list[tuple[int, dict[str, Any]]] = []
    for places, table in typed_tables(model.schema_, rows):
        numbers, own = [place + start for place in places], BadCells(strict=bad.strict)
        with placed(numbers):
            found += zip(numbers, explained_rows(model, table, numbers, columns, own), strict=True)
        bad.add_all(own, np.array(numbers))
    return [clean(entry) for _, entry in sorted(found, key=lambda pair: pair[0])]


def clean(value: Any) -> Any:
    """Numbers that are not finite as null: JSON has no others."""
    if isinstance(value, dict):
        return {name: clean(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [clean(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


async def _score_file(
    request: Request, context: Context, model: PTAD, explain: int, append: bool, name: str, strict: bool
) -> Response:
    answer = wanted_format(request.headers.get("accept"), media_type(request))
    async with AsyncExitStack() as stack:
        path = await stack.enter_async_context(context.uploads.spooled(request.stream(), name))
        rows_file = path.with_name("rows.arrow")
        found = await context.uploads.read(
            path, name, schema=model.schema_, rows_file=rows_file, append=append, strict=strict
        )
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
    headers = {
        "Content-Disposition": f'attachment; filename="scores.{SUFFIXES[answer]}"',
        BAD_CELLS: str(found["bad_cells"]),
    }
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
                work = partial(score_batch, model, chunk.select(known), explain)
                scored, seconds = await context.batcher.run(partial(_timed, work))
                pace.took(seconds)
                start += chunk.num_rows
                context.metrics.rows.labels("large").inc(chunk.num_rows)
                yield chunk, list(scored.columns.values())


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
