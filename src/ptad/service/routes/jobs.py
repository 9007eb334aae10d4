"""Addresses for jobs: start, watch, cancel and delete them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response, StreamingResponse

from ptad.errors import DataError, MissingExtraError, SettingError
from ptad.jobs.fit import checked_detector
from ptad.service.api_types import (
    FitRequest,
    Identifier,
    JobInfo,
    ModelRequest,
    RenewalRequest,
    ScoringRequest,
    problems,
)
from ptad.service.context import Context, context_of
from ptad.service.jobs.attempt import FINAL
from ptad.service.jobs.progress import Events
from ptad.service.models import version_name
from ptad.tables.names import did_you_mean, listed, no_column

router = APIRouter(tags=["jobs"])

HEARTBEAT_SECONDS = 10.0
# members of a fit that are parameters of ptad.PTAD
PARAMETERS = ("preset", "false_alarm_rate", "types", "drop", "missing", "decimal", "thousands", "strict", "config")
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
    """Start to fit a model on an uploaded table, and to score that table if ``score`` is true; the answer is a job."""
    context = context_of(request)
    table = context.uploads.get(wanted.table)
    names = [column["name"] for column in table["columns"]]
    known = set(names)
    label = [wanted.label] if wanted.label else []
    for what, given in (("label", label), ("drop", wanted.drop), ("types", wanted.types)):
        for name in given:
            if name not in known:
                raise DataError(no_column(table["name"], [name], names, why=f", named in {what!r}"))
    _check_label(wanted)
    wish = wanted.model_dump()
    parameters = {name: wish.pop(name) for name in PARAMETERS} | {"random_state": wish.pop("seed")}
    if wanted.preset == "paper" and find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", "The preset 'paper'")
    checked_detector(parameters)  # a wrong setting is refused now, and does not become a failed job
    return _added(request, "fit", {**wish, "parameters": parameters}, wanted.name)


@router.post("/v1/scorings", status_code=202, response_model=JobInfo, responses=problems(404, 409, 429))
async def start_scoring(request: Request, wanted: ScoringRequest) -> Any:
    """Start to score an uploaded table with a model; the answer is a job."""
    context = context_of(request)
    table, name, rate = await _fitting(context, wanted)
    # the rate at the time of the request: half of a table must not be flagged at another one
    spec = {**wanted.model_dump(), "false_alarm_rate": rate}
    return _added(request, "score", spec, f"{table} with {name}")


@router.post("/v1/updates", status_code=202, response_model=JobInfo, responses=problems(404, 409, 429))
async def start_update(request: Request, wanted: RenewalRequest) -> Any:
    """Start to update a model: half of the new rows join its reference rows, half give its threshold."""
    return await _renewal(request, "update", wanted)


@router.post("/v1/recalibrations", status_code=202, response_model=JobInfo, responses=problems(404, 409, 429))
async def start_recalibration(request: Request, wanted: RenewalRequest) -> Any:
    """Start to recalibrate a model: its threshold comes from rows that it was not fitted on; scores stay the same."""
    return await _renewal(request, "recalibrate", wanted)


async def _renewal(request: Request, kind: str, wanted: RenewalRequest) -> Any:
    context = context_of(request)
    _check_label(wanted)
    known = context.models.get(wanted.model).about.get("training_tables", ())
    if kind == "recalibrate" and any(context.uploads.same(table, wanted.table) for table in known):
        raise DataError("The model was fitted on this table. Recalibrate it with rows that it was not fitted on.")
    table, name, rate = await _fitting(context, wanted)
    spec = {
        **wanted.model_dump(),
        "false_alarm_rate": rate if wanted.false_alarm_rate is None else wanted.false_alarm_rate,
    }
    return _added(request, kind, spec, f"{name} with {table}")


def _added(request: Request, kind: str, spec: dict[str, Any], title: str) -> dict[str, Any]:
    """Put a job into the queue."""
    jobs = context_of(request).jobs
    job = jobs.add(kind, spec, title)
    request.path_params["job"] = job["id"]  # for the audit line
    return jobs.public(job)


def _check_label(wanted: FitRequest | RenewalRequest) -> None:
    if (wanted.label is None) != (not wanted.normal):
        raise SettingError("'label' (a column) and 'normal' (its values for normal rows) belong together.")


async def _fitting(context: Context, wanted: ModelRequest) -> tuple[str, str, float | str | None]:
    """Names of table and model and the model's rate, once it is known that the table has the model's columns."""
    context.uploads.get(wanted.table)
    schema = (await context.models.load(wanted.model)).schema_
    table, entry = context.uploads.get(wanted.table), context.models.get(wanted.model)  # neither went meanwhile
    names = [column["name"] for column in table["columns"]]
    if wanted.label is not None and wanted.label not in names:
        raise DataError(no_column(table["name"], [wanted.label], names, why=", named as the label"))
    known = set(names)
    missing = [] if schema.from_array else [name for name in schema.names if name not in known]
    if missing:
        raise DataError(
            f"{table['name']} lacks {listed(missing)}, which the model {entry.about['name']!r} was trained with."
            f"{did_you_mean(missing, names)} It has {listed(names)}. Add or rename columns, or choose another model."
        )
    return table["name"], version_name(entry.about), entry.about.get("false_alarm_rate")


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
    told = last_event_id or ""
    after = int(told) if told.isascii() and told.isdigit() else 0
    return StreamingResponse(_events(context, job, after), media_type="text/event-stream")


async def _events(context: Context, identifier: str, sent: int) -> AsyncIterator[bytes]:
    jobs, told = context.jobs, None
    progress = Events(jobs.folder(identifier), sent)
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
