"""Addresses that score and explain rows."""

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
from numpy.typing import NDArray
from starlette.responses import Response

from ptad.estimator import PTAD
from ptad.jobs.explain import explained_rows
from ptad.service import bodies
from ptad.service.api_types import ExplainAnswer, Identifier, Marker, ScoreAnswer, binary, problems
from ptad.service.batching import BATCH_ROWS, Pace
from ptad.service.context import Context, context_of
from ptad.service.file_scores import score_file
from ptad.service.formats import ANSWER_FORMATS, FILES, JSON, json_response, media_type, wanted_format
from ptad.service.problems import Problem
from ptad.service.rows import (
    MOST_LISTED,
    Row,
    encode_rows,
    ignored_columns,
    parse_rows,
    placed,
    said_of,
    typed_tables,
    without_markers,
)
from ptad.service.uploads import beginning, continued, shown_name
from ptad.tables import BadCells

INLINE_BYTES = 64 * 1024  # a body that is parsed at once, in about a millisecond; a larger one in the sandbox
BODY = "The body"


class RowRoute(APIRoute):
    """A call without options goes straight to its function; reading them takes longer than the rest of it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        read_options = super().get_route_handler()

        async def handle(request: Request) -> Response:
            model = request.path_params["model"]
            if request.scope["query_string"] or model not in context_of(request).models.entries:
                return await read_options(request)
            answer: Response = await self.endpoint(request, model)
            return answer

        return handle


router = APIRouter(tags=["ask"], route_class=RowRoute)

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
    openapi_extra={"requestBody": {"required": True, "content": {**_JSON_BODY, **binary(*FILES)}}},
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
    if kind == JSON:
        return await _score_json(request, context, model, strict, missing)
    if kind not in FILES:
        raise Problem(415, f"The header Content-Type must be {JSON} or one of: {', '.join(FILES)}.")
    detector = _with_missing(await context.models.load(model), missing)
    answer = wanted_format(request.headers.get("accept"), kind)
    return await score_file(
        context, detector, request.stream(), shown_name(name), answer, explain=explain, append=append, strict=strict
    )


@router.post(
    "/v1/models/{model}/explain",
    response_model=ExplainAnswer,
    responses=problems(404, 409, 415),
    openapi_extra={"requestBody": {"required": True, "content": _JSON_BODY}},
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
    if media_type(request) != JSON:
        raise Problem(415, f"The header Content-Type must be {JSON}.")
    limits, detector = context.settings.limits, await context.models.load(model)
    body = request.stream()
    start, whole = await beginning(body, INLINE_BYTES)
    if whole:
        rows = parse_rows(start, limits.explain_rows, limits.columns)
        ignored = ignored_columns(detector.schema_, rows)
    else:
        async with context.uploads.spooled(continued(start, body), BODY, is_table=False) as path, _in_time(context):
            wish = {"name": BODY, "most": limits.explain_rows, "schema": detector.schema_.to_json()}
            found = await context.sandbox.run(bodies.json_rows, path=path, **wish)
        rows, ignored = found["rows"], found["ignored"]
    answer = await _explain_rows(context, _with_missing(detector, missing), rows, columns, strict)
    return json_response({"model": model, "ignored": ignored, **answer})


async def _explain_rows(
    context: Context, detector: PTAD, rows: list[Row], columns: int, strict: bool
) -> dict[str, Any]:
    bad, pace, start = BadCells(strict=strict), Pace(), 0
    results: list[dict[str, Any]] = []
    async with _in_time(context):
        while start < len(rows):
            part = rows[start : start + pace.rows]
            results += await context.batcher.run(partial(_explained, detector, part, start, columns, bad), pace)
            start += len(part)
    context.metrics.rows.labels("explained").inc(len(rows))
    said = said_of(*(await asyncio.to_thread(bad.of_parts, [len(rows)], MOST_LISTED))[0])
    return {**said, "results": results}


def _with_missing(model: PTAD, missing: Sequence[str]) -> PTAD:
    """The model, to which further text means missing."""
    if not missing:
        return model
    own = copy.copy(model)
    own.schema_ = model.schema_.with_missing(missing)
    return own


@asynccontextmanager
async def _in_time(context: Context) -> AsyncIterator[None]:
    """Bound the time that scoring takes; a client may take its own to send."""
    try:
        async with asyncio.timeout(context.settings.limits.request_seconds):
            yield
    except TimeoutError:
        raise Problem(503, "Too many rows are being scored just now. Try again later.") from None


async def _score_json(
    request: Request, context: Context, identifier: str, strict: bool, missing: Sequence[str]
) -> Response:
    limits, body = context.settings.limits, request.stream()
    start, whole = await beginning(body, INLINE_BYTES)
    model = await context.models.load(identifier)
    if whole:
        rows = parse_rows(start, limits.json_rows, limits.columns)
        async with _in_time(context):
            scores, said = await _score_rows(context, model, without_markers(rows, missing), strict)
    else:
        async with context.uploads.spooled(continued(start, body), BODY, is_table=False) as path, _in_time(context):
            scores, said = await _score_large(context, model, path, strict, missing)
    calibration = model.detector_.calibration
    p_values: Sequence[float | None] = [None] * len(scores)
    flags: Sequence[bool | None] = p_values  # type: ignore[assignment]
    if calibration is not None:
        p_values, flags = calibration.p_value(scores).tolist(), (scores > -model.offset_).tolist()
    return json_response(
        {
            "model": identifier,
            "false_alarm_rate": None if calibration is None else float(model.false_alarm_rate_),
            "threshold": None if calibration is None else -float(model.offset_),
            **said,
            "results": [
                {"score": s, "p_value": p, "anomaly": a}
                for s, p, a in zip(scores.tolist(), p_values, flags, strict=True)
            ],
        }
    )


Scored = tuple[NDArray[np.float64], dict[str, Any]]  # scores, and what the answer says of the rows


async def _score_rows(context: Context, model: PTAD, rows: Sequence[Row], strict: bool) -> Scored:
    """Score rows that came as a small body."""
    if len(rows) <= BATCH_ROWS:
        found = await context.batcher.score(model, rows)
        scores, n_bad, first_bad = found.scores, found.n_bad, found.first_bad
    else:
        bad = BadCells()
        x = await asyncio.to_thread(encode_rows, model.schema_, rows, bad)  # not in the batcher: longer than a chunk
        ((n_bad, first_bad),) = await asyncio.to_thread(bad.of_parts, [len(rows)], MOST_LISTED)
        scores = await context.batcher.score_many(model, x)
    if strict and n_bad:
        raise first_bad[0].refusal()
    return scores, {"ignored": ignored_columns(model.schema_, rows), **said_of(n_bad, first_bad)}


async def _score_large(context: Context, model: PTAD, path: Path, strict: bool, missing: Sequence[str]) -> Scored:
    """Score the rows of a large body: they become numbers in a process of its own, which takes its memory with it."""
    out = path.with_name("encoded")
    said = await context.sandbox.run(
        bodies.encoded_json,
        path=path,
        name=BODY,
        schema=model.schema_.to_json(),
        out=out,
        missing=list(missing),
        strict=strict,
    )
    x = np.memmap(out, np.float64, "r", shape=(said.pop("rows"), len(model.schema_.features)))
    return await context.batcher.score_many(model, x), said


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
