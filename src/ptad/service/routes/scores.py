"""Routes that score and explain rows."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from ptad.arrays import Matrix
from ptad.estimator import PTAD
from ptad.jobs.explain import explained_rows
from ptad.service import sandbox_tasks
from ptad.service.api_types import ExplainAnswer, Marker, ModelIdentifier, ScoreAnswer, binary, problems
from ptad.service.batching import BATCH_ROWS, ChunkSize
from ptad.service.context import Context, get_context
from ptad.service.file_scores import score_file
from ptad.service.formats import ANSWER_FORMATS, JSON, UPLOAD_FORMATS, json_response, media_type, negotiate
from ptad.service.json_rows import (
    MOST_LISTED,
    JsonRow,
    bad_cell_fields,
    encode_rows,
    ignored_columns,
    parse_rows,
    replace_markers,
    row_positions,
    tables_by_type,
)
from ptad.service.problems import Problem
from ptad.service.uploads import display_name, read_start, rejoin
from ptad.tables import BadCells

INLINE_BYTES = 64 * 1024  # a body up to this size is parsed at once, in about a millisecond; others in the sandbox
BODY = "The body"


class RowRoute(APIRoute):
    """A route that skips FastAPI's parsing of parameters, the slowest part of a small call, where there are none."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that handles a request."""
        handle_with_parameters = super().get_route_handler()

        async def handle(request: Request) -> Response:
            identifier = request.path_params["model"]
            if request.scope["query_string"] or identifier not in get_context(request).models.entries:
                return await handle_with_parameters(request)
            answer: Response = await self.endpoint(request, identifier)
            return answer

        return handle


router = APIRouter(tags=["scores"], route_class=RowRoute)

_ROWS = {
    "type": "object",
    "required": ["rows"],
    "properties": {"rows": {"type": "array", "minItems": 1, "items": {"type": "object"}}},
}
_JSON_BODY = {JSON: {"schema": _ROWS}}
Strict = Annotated[bool, Query(description="Refuse a cell that cannot be read; otherwise it counts as missing")]
Missing = Annotated[
    list[Marker], Query(max_length=100, description="Text that means missing, beside that of the model")
]


@router.post(
    "/v1/models/{model}/score",
    response_model=ScoreAnswer,
    responses={200: {"content": binary(*ANSWER_FORMATS.values())}, **problems(404, 409, 415)},
    openapi_extra={"requestBody": {"required": True, "content": {**_JSON_BODY, **binary(*UPLOAD_FORMATS)}}},
)
async def score(
    request: Request,
    identifier: ModelIdentifier,
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
    context = get_context(request)
    sent = media_type(request)
    if sent == JSON:
        return await _score_json(request, context, identifier, strict, missing)
    if sent not in UPLOAD_FORMATS:
        raise Problem(415, f"The header Content-Type must be {JSON} or one of: {', '.join(UPLOAD_FORMATS)}.")
    model = _with_missing(await context.models.load(identifier), missing)
    accepted = negotiate(request.headers.get("accept"), sent)
    body = request.stream()
    return await score_file(
        context, model, body, display_name(name), accepted, explain=explain, append=append, strict=strict
    )


@router.post(
    "/v1/models/{model}/explain",
    response_model=ExplainAnswer,
    responses=problems(404, 409, 415),
    openapi_extra={"requestBody": {"required": True, "content": _JSON_BODY}},
)
async def explain(
    request: Request,
    identifier: ModelIdentifier,
    columns: Annotated[int, Query(ge=1, le=5000, description="Strongest columns to name per row")] = 5,
    strict: Strict = False,
    missing: Missing = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Explain the scores of a few rows: per column contribution, reason, observed and expected value."""
    context = get_context(request)
    if media_type(request) != JSON:
        raise Problem(415, f"The header Content-Type must be {JSON}.")
    limits, model = context.settings.limits, await context.models.load(identifier)
    body = request.stream()
    start, is_complete = await read_start(body, INLINE_BYTES)
    if is_complete:
        rows = parse_rows(start, limits.explain_rows, limits.columns)
        ignored = ignored_columns(model.schema_, rows)
    else:
        async with _received(context, start, body) as path:
            arguments = {"name": BODY, "most": limits.explain_rows, "schema": model.schema_.to_json()}
            parsed = await context.sandbox.run(sandbox_tasks.read_json_rows, path=path, **arguments)
        rows, ignored = parsed["rows"], parsed["ignored"]
    answer = await _explain_rows(context, _with_missing(model, missing), rows, columns, strict)
    return json_response({"model": identifier, "ignored": ignored, **answer})


async def _explain_rows(
    context: Context, model: PTAD, rows: list[JsonRow], columns: int, strict: bool
) -> dict[str, Any]:
    bad, chunk_size, start = BadCells(strict=strict), ChunkSize(), 0
    results: list[dict[str, Any]] = []
    async with _time_limit(context):
        while start < len(rows):
            part = rows[start : start + chunk_size.rows]
            results += await context.batcher.run(partial(_explain_chunk, model, part, start, columns, bad), chunk_size)
            start += len(part)
    context.metrics.rows.labels("explained").inc(len(rows))
    ((n_bad, first_bad),) = await asyncio.to_thread(bad.split, [len(rows)], MOST_LISTED)
    return {**bad_cell_fields(n_bad, first_bad), "results": results}


def _explain_chunk(
    model: PTAD, rows: Sequence[JsonRow], start: int, columns: int, bad: BadCells
) -> list[dict[str, Any]]:
    entries: dict[int, dict[str, Any]] = {}
    for positions, table in tables_by_type(model.schema_, rows):
        numbers, bad_here = [position + start for position in positions], BadCells(strict=bad.strict)
        with row_positions(numbers):
            entries |= zip(numbers, explained_rows(model, table, numbers, columns, bad_here), strict=True)
        bad.add_all(bad_here, np.array(numbers))
    return [_replace_non_finite(entries[number]) for number in sorted(entries)]


def _replace_non_finite(value: Any) -> Any:
    """Replace numbers that JSON does not have, such as NaN, by null."""
    if isinstance(value, dict):
        return {name: _replace_non_finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replace_non_finite(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _with_missing(model: PTAD, missing: Sequence[str]) -> PTAD:
    """Return the model with further markers of missing values."""
    if not missing:
        return model
    model = copy.copy(model)
    model.schema_ = model.schema_.with_missing(missing)
    return model


@asynccontextmanager
async def _time_limit(context: Context) -> AsyncIterator[None]:
    """Limit the time that scoring takes; receiving a body has limits of its own."""
    try:
        async with asyncio.timeout(context.settings.limits.request_seconds):
            yield
    except TimeoutError:
        raise Problem(503, "Too many rows are being scored just now. Try again later.") from None


@asynccontextmanager
async def _received(context: Context, start: bytes, body: AsyncIterator[bytes]) -> AsyncIterator[Path]:
    """Yield a file with a body that is too large to be parsed at once, and limit the time to work on it."""
    async with context.uploads.receive(rejoin(start, body), BODY, is_table=False) as path, _time_limit(context):
        yield path


async def _score_json(
    request: Request, context: Context, identifier: str, strict: bool, missing: Sequence[str]
) -> Response:
    limits, body = context.settings.limits, request.stream()
    start, is_complete = await read_start(body, INLINE_BYTES)
    model = await context.models.load(identifier)
    if is_complete:
        rows = replace_markers(parse_rows(start, limits.json_rows, limits.columns), missing)
        async with _time_limit(context):
            scores, fields = await _score_rows(context, model, rows, strict)
    else:
        async with _received(context, start, body) as path:
            scores, fields = await _score_large(context, model, path, strict, missing)
    # not scored_batch.decisions: its Arrow arrays would cost some percent of the time of a call with one row
    calibration = model.detector_.calibration
    p_values: Sequence[float | None] = [None] * len(scores)
    flags: Sequence[bool | None] = [None] * len(scores)
    if calibration is not None:
        p_values, flags = calibration.p_value(scores).tolist(), (scores > -model.offset_).tolist()
    results = [
        {"score": score, "p_value": p_value, "anomaly": flag}
        for score, p_value, flag in zip(scores.tolist(), p_values, flags, strict=True)
    ]
    return json_response(
        {
            "model": identifier,
            "false_alarm_rate": None if calibration is None else float(model.false_alarm_rate_),
            "threshold": None if calibration is None else -float(model.offset_),
            **fields,
            "results": results,
        }
    )


ScoredRows = tuple[Matrix, dict[str, Any]]  # scores, and fields of the answer


async def _score_rows(context: Context, model: PTAD, rows: Sequence[JsonRow], strict: bool) -> ScoredRows:
    """Score the rows of a small body."""
    if len(rows) <= BATCH_ROWS:
        result = await context.batcher.score(model, rows)
        scores, n_bad, first_bad = result.scores, result.n_bad, result.first_bad
    else:
        bad = BadCells()
        x = await asyncio.to_thread(encode_rows, model.schema_, rows, bad)  # not in the batcher: longer than a chunk
        ((n_bad, first_bad),) = await asyncio.to_thread(bad.split, [len(rows)], MOST_LISTED)
        scores = await context.batcher.score_many(model, x)
    if strict and n_bad:
        raise first_bad[0].error()
    return scores, {"ignored": ignored_columns(model.schema_, rows), **bad_cell_fields(n_bad, first_bad)}


async def _score_large(context: Context, model: PTAD, path: Path, strict: bool, missing: Sequence[str]) -> ScoredRows:
    """Score the rows of a large body, which are encoded in the sandbox: its memory is free again afterwards."""
    out = path.with_name("encoded")
    arguments = {"name": BODY, "schema": model.schema_.to_json(), "out": out, "missing": missing, "strict": strict}
    fields = await context.sandbox.run(sandbox_tasks.encoded_json, path=path, **arguments)
    x = np.memmap(out, np.float64, "r", shape=(fields.pop("rows"), len(model.schema_.features)))
    return await context.batcher.score_many(model, x), fields
