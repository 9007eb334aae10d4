"""Addresses for jobs: start, watch, cancel and delete them, take their results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from fastapi import APIRouter, Header, Query, Request
from starlette.responses import FileResponse, Response, StreamingResponse

from ptad.engines.bad_cell_list import COLUMNS
from ptad.engines.learning import checked_detector
from ptad.errors import DataError, MissingExtraError, SettingError
from ptad.service.context import Context, context_of
from ptad.service.formats import CSV, FORMATS, PARQUET, Encoder
from ptad.service.jobs import FINAL
from ptad.service.messages import FitRequest, Identifier, JobInfo, ScoringRequest, problems
from ptad.service.problems import Problem
from ptad.service.table_scores import BAD_CELLS, CONTENT, SCORED
from ptad.service.workers import Told
from ptad.tables.names import did_you_mean

router = APIRouter(tags=["jobs"])

HEARTBEAT_SECONDS = 10.0
_ANY = {"schema": {"type": "string", "format": "binary"}}
_EVENT = {  # of a stream, OpenAPI 3.1 describes each event
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["progress", "state"]},
        "id": {"type": "string", "description": "For Last-Event-ID; progress only"},
        "data": {"type": "string", "description": "JSON: progress of the job, or the job itself"},
    },
}


@router.post("/v1/fits", status_code=202, response_model=JobInfo, responses=problems(404, 429))
async def start_fit(request: Request, wanted: FitRequest) -> Any:
    """Start to fit a model on an uploaded table; the answer is a job."""
    context = context_of(request)
    table = context.uploads.get(wanted.table)
    names = [column["name"] for column in table["columns"]]
    for what, given in (
        ("label", [wanted.label] if wanted.label else []),
        ("drop", wanted.drop),
        ("kinds", wanted.kinds),
    ):
        for name in given:
            if name not in names:
                raise DataError(f"{table['name']} has no column {name!r}, named in {what!r}.{_meant([name], names)}")
    if (wanted.label is None) != (not wanted.normal):
        raise SettingError("'label' (a column) and 'normal' (its values for normal rows) belong together.")
    parameters = {
        "preset": wanted.preset,
        "false_alarm_rate": wanted.false_alarm_rate,
        "random_state": wanted.seed,
        "kinds": dict(wanted.kinds),
        "drop": list(wanted.drop),
        "missing": list(wanted.missing),
        "strict": wanted.strict,
        "config": wanted.config,
    }
    if wanted.preset == "paper" and find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", "The preset 'paper'")
    checked_detector(parameters)  # a wrong setting is refused now, and does not become a failed job
    spec = {
        "table": wanted.table,
        "name": wanted.name,
        "label": wanted.label,
        "normal": wanted.normal,
        "parameters": parameters,
    }
    return context.jobs.public(context.jobs.add("fit", spec, wanted.name))


@router.post("/v1/scorings", status_code=202, response_model=JobInfo, responses=problems(404, 409, 429))
async def start_scoring(request: Request, wanted: ScoringRequest) -> Any:
    """Start to score an uploaded table with a model; the answer is a job."""
    context = context_of(request)
    context.uploads.get(wanted.table)
    schema = (await context.models.load(wanted.model)).schema_
    table, entry = context.uploads.get(wanted.table), context.models.get(wanted.model)  # neither went meanwhile
    names = [column["name"] for column in table["columns"]]
    if wanted.label is not None and wanted.label not in names:
        meant = _meant([wanted.label], names)
        raise DataError(f"{table['name']} has no column {wanted.label!r}, named as the label.{meant}")
    missing = [] if schema.from_array else [name for name in schema.names if name not in names]
    if missing:
        raise DataError(
            f"{table['name']} lacks {_listed(missing)}, which the model {entry.about['name']!r} was trained with."
            f"{did_you_mean(missing, names)} It has {_listed(names)}. Add or rename columns, or choose another model."
        )
    # the rate at the time of the request: half of a table must not be flagged at another one
    spec = {**wanted.model_dump(), "false_alarm_rate": entry.about.get("false_alarm_rate")}
    title = f"{table['name']} with {entry.about['name']}"
    return context.jobs.public(context.jobs.add("score", spec, title))


def _meant(absent: list[str], names: list[str]) -> str:
    return did_you_mean(absent, names) or f" Its columns are: {_listed(names)}."


def _listed(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


@router.get("/v1/jobs", response_model=list[JobInfo], responses=problems())
async def list_jobs(request: Request) -> Any:
    """List the jobs, the newest first."""
    jobs = context_of(request).jobs
    return [jobs.public(job) for job in sorted(jobs.entries.values(), key=lambda job: -job["created"])]


@router.get("/v1/jobs/{job}", response_model=JobInfo, responses=problems(404))
async def describe_job(request: Request, job: Identifier) -> Any:
    """Say where a job stands."""
    jobs = context_of(request).jobs
    return jobs.public(jobs.get(job))


@router.get(
    "/v1/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": _EVENT}}}, **problems(404)},
)
async def job_events(
    request: Request, job: Identifier, last_event_id: Annotated[str | None, Header(max_length=30)] = None
) -> Response:
    """Follow a job as server-sent events: ``progress`` from the beginning or after Last-Event-ID, and ``state``.

    The stream ends with the job. It may also end when the service stops: then ask again with Last-Event-ID.
    """
    context = context_of(request)
    context.jobs.get(job)
    after = (
        int(last_event_id) if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit() else 0
    )
    return StreamingResponse(_events(context, job, after), media_type="text/event-stream")


async def _events(context: Context, identifier: str, sent: int) -> AsyncIterator[bytes]:
    jobs, told = context.jobs, None
    progress = Told(jobs.folder(identifier), sent)
    while True:
        news = jobs.news
        job = jobs.entries.get(identifier)
        if job is None:
            return
        state = json.dumps(jobs.public(job))
        final = job["state"] in FINAL
        for entry in await asyncio.to_thread(progress.read):
            sent += 1
            yield f"event: progress\nid: {sent}\ndata: {json.dumps(entry)}\n\n".encode()
        if state != told:
            told = state
            yield f"event: state\ndata: {state}\n\n".encode()
        if final or jobs.stopping.is_set():
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), HEARTBEAT_SECONDS)
        yield b": still here\n\n"


@router.post("/v1/jobs/{job}/cancel", response_model=JobInfo, responses=problems(404, 409))
async def cancel_job(request: Request, job: Identifier) -> Any:
    """Cancel a job."""
    jobs = context_of(request).jobs
    return jobs.public(await jobs.cancel(job))


@router.delete("/v1/jobs/{job}", status_code=204, responses={204: {"description": "Gone"}, **problems(404, 409)})
async def delete_job(request: Request, job: Identifier) -> Response:
    """Delete a job and its results; a model that it made stays."""
    await context_of(request).jobs.delete(job)
    return Response(status_code=204)


@router.get("/v1/jobs/{job}/report", response_model=dict[str, Any], responses=problems(404, 409))
async def job_report(request: Request, job: Identifier) -> Response:
    """What a finished scoring found: histogram, highest scores with reasons, drift, health of the model."""
    context = context_of(request)
    _finished_scoring(context, job)
    return FileResponse(context.jobs.folder(job) / CONTENT, media_type="application/json")


@router.get(
    "/v1/jobs/{job}/scores",
    response_class=Response,
    responses={200: {"content": dict.fromkeys(FORMATS.values(), _ANY)}, **problems(404, 409)},
)
async def job_scores(
    request: Request,
    job: Identifier,
    format: Annotated[Literal["csv", "parquet", "ndjson", "arrow"], Query()] = "csv",
) -> Response:
    """Download the table with its scores; in CSV, text that a spreadsheet would compute is made harmless."""
    context = context_of(request)
    _finished_scoring(context, job)
    path = context.jobs.folder(job) / SCORED
    if format == "parquet":
        return FileResponse(path, media_type=PARQUET, filename="scored.parquet")
    headers = {"Content-Disposition": f'attachment; filename="scored.{format}"'}
    return StreamingResponse(_converted(path, FORMATS[format]), media_type=FORMATS[format], headers=headers)


@router.get(
    "/v1/jobs/{job}/bad-cells",
    response_class=Response,
    responses={200: {"content": {"text/csv": _ANY}}, **problems(404, 409)},
)
async def job_bad_cells(request: Request, job: Identifier) -> Response:
    """The cells of the table that could not be read, as CSV: row (the header is row 1), column, value, reason."""
    context = context_of(request)
    path = context.jobs.folder(context.jobs.get(job)["id"]) / BAD_CELLS
    if not path.is_file():
        raise Problem(409, "Only a finished job has a list of cells that could not be read. Wait for its end.")
    headers = {"Content-Disposition": f'attachment; filename="{BAD_CELLS}"'}
    return StreamingResponse(_harmless(path), media_type=CSV, headers=headers)


async def _harmless(path: Path) -> AsyncIterator[bytes]:
    """A CSV file with text that a spreadsheet would compute made harmless."""
    names = (*COLUMNS, "file")
    convert = pcsv.ConvertOptions(column_types=dict.fromkeys(names, pa.large_string()))
    with pcsv.open_csv(path, convert_options=convert, parse_options=pcsv.ParseOptions(newlines_in_values=True)) as rows:
        encoder = Encoder(CSV, rows.schema)
        while (batch := await asyncio.to_thread(next, rows, None)) is not None:
            yield await asyncio.to_thread(encoder.write, batch)
        yield encoder.close()


def _finished_scoring(context: Context, identifier: str) -> None:
    job = context.jobs.get(identifier)
    if job["kind"] != "score" or job["state"] != "done":
        raise Problem(409, "Only a finished scoring has a report and scores. Start one with POST /v1/scorings.")


async def _converted(path: Any, media_type: str) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(pq.ParquetFile, path)
    try:
        encoder = Encoder(media_type, file.schema_arrow)
        batches = file.iter_batches(batch_size=8192, use_threads=False)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield await asyncio.to_thread(encoder.write, batch)
        yield encoder.close()
    finally:
        file.close()
