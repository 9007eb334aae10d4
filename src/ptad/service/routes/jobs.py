"""Routes for jobs: start, follow, cancel and delete them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
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
from ptad.service.context import Context, ServiceContext, get_context
from ptad.service.jobs import FINAL
from ptad.service.jobs.progress import Events
from ptad.tables.names import no_column

router = APIRouter(tags=["jobs"])

POLL_SECONDS, HEARTBEAT_SECONDS = 0.3, 10.0  # of a stream of events
# fields of a fit that are parameters of ptad.PTAD
PARAMETERS = ("preset", "false_alarm_rate", "types", "drop", "missing", "decimal", "thousands", "strict", "config")
_EVENT = {  # OpenAPI 3.1 describes each event of a stream
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["progress", "state"]},
        "id": {"type": "string", "description": "For Last-Event-ID; progress only"},
        "data": {"type": "string", "description": "JSON: progress of the job, or the job itself"},
    },
}


@router.post("/v1/fits", status_code=202, response_model=JobInfo, responses=problems(404, 429))
async def start_fit(request: Request, body: FitRequest) -> Any:
    """Start to fit a model on an uploaded table, and to score that table if ``score`` is true; the answer is a job."""
    table = get_context(request).uploads.get(body.table)
    names = [column["name"] for column in table["columns"]]
    known = set(names)
    label = [body.label] if body.label else []
    for field, given in (("label", label), ("drop", body.drop), ("types", body.types)):
        for name in given:
            if name not in known:
                raise DataError(no_column(table["name"], [name], names, why=f", named in {field!r}"))
    _check_label(body)
    spec = body.model_dump()
    spec["parameters"] = {name: spec.pop(name) for name in PARAMETERS} | {"random_state": spec.pop("seed")}
    if body.preset == "paper" and find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", "The preset 'paper'")
    checked_detector(spec["parameters"])  # an invalid setting is refused now, and does not become a failed job
    return _add_job(request, "fit", spec, body.name)


@router.post("/v1/scorings", status_code=202, response_model=JobInfo, responses=problems(404, 409, 429))
async def start_scoring(request: Request, body: ScoringRequest) -> Any:
    """Start to score an uploaded table with a model; the answer is a job."""
    table, model, rate = await _check_columns(get_context(request), body)
    # the rate at the time of the request: all rows of a table must be flagged at the same one
    return _add_job(request, "score", {**body.model_dump(), "false_alarm_rate": rate}, f"{table} with {model}")


@router.post("/v1/updates", status_code=202, response_model=JobInfo, responses=problems(404, 409, 429))
async def start_update(request: Request, body: RenewalRequest) -> Any:
    """Start to update a model: half of the new rows join its reference rows, half give its threshold."""
    return await _start_renewal(request, "update", body)


@router.post("/v1/recalibrations", status_code=202, response_model=JobInfo, responses=problems(404, 409, 429))
async def start_recalibration(request: Request, body: RenewalRequest) -> Any:
    """Start to recalibrate a model: its threshold comes from rows that it was not fitted on; scores stay the same."""
    return await _start_renewal(request, "recalibrate", body)


async def _start_renewal(request: Request, kind: str, body: RenewalRequest) -> Any:
    context = get_context(request)
    _check_label(body)
    training_tables = context.models.get(body.model).metadata.get("training_tables", ())
    if kind == "recalibrate" and any(context.uploads.same(table, body.table) for table in training_tables):
        raise DataError("The model was fitted on this table. Recalibrate it with rows that it was not fitted on.")
    table, model, rate = await _check_columns(context, body)
    spec = body.model_dump()
    if body.false_alarm_rate is None:
        spec["false_alarm_rate"] = rate
    return _add_job(request, kind, spec, f"{model} with {table}")


def _add_job(request: Request, kind: str, spec: dict[str, Any], title: str) -> dict[str, Any]:
    jobs = get_context(request).jobs
    job = jobs.add(kind, spec, title)
    request.path_params["job"] = job["id"]  # for the audit line
    return jobs.public(job)


def _check_label(body: FitRequest | RenewalRequest) -> None:
    if (body.label is None) != (not body.normal):
        raise SettingError("'label' (a column) and 'normal' (its values for normal rows) belong together.")


async def _check_columns(context: Context, body: ModelRequest) -> tuple[str, str, float | str | None]:
    """Check that the table has the columns of the model; return the names of both, and the rate of the model."""
    context.uploads.get(body.table)
    schema = (await context.models.load(body.model)).schema_
    table, entry = context.uploads.get(body.table), context.models.get(body.model)  # neither was deleted meanwhile
    names = [column["name"] for column in table["columns"]]
    if body.label is not None and body.label not in names:
        raise DataError(no_column(table["name"], [body.label], names, why=", named as the label"))
    known = set(names)
    missing = [] if schema.from_array else [name for name in schema.names if name not in known]
    if missing:
        unknown = [name for name in names if name not in schema.inputs]  # as in Schema.check_columns
        why = f", which the model {entry.metadata['name']!r} was trained with"
        raise DataError(
            no_column(table["name"], missing, names, why=why, candidates=unknown),
            "Add or rename columns, or choose another model.",
        )
    return table["name"], entry.display_name, entry.metadata.get("false_alarm_rate")


@router.get("/v1/jobs", response_model=list[JobInfo])
async def list_jobs(context: ServiceContext) -> Any:
    """List the jobs, the newest first."""
    jobs = sorted(context.jobs.entries.values(), key=lambda job: -job["created"])
    return list(map(context.jobs.public, jobs))


@router.get("/v1/jobs/{job}", response_model=JobInfo, responses=problems(404))
async def describe_job(context: ServiceContext, job: Identifier) -> Any:
    """Say where a job stands."""
    return context.jobs.public(context.jobs.get(job))


@router.get(
    "/v1/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": _EVENT}}}, **problems(404)},
)
async def job_events(
    context: ServiceContext, job: Identifier, last_event_id: Annotated[str | None, Header(max_length=30)] = None
) -> Response:
    """Follow a job as server-sent events: ``progress`` from the beginning or after Last-Event-ID, and ``state``.

    The stream ends with the job. It may also end when the service stops: then ask again with Last-Event-ID.
    """
    context.jobs.get(job)
    text = last_event_id or ""
    n_sent = int(text) if text.isascii() and text.isdigit() else 0
    return StreamingResponse(_events(context, job, n_sent), media_type="text/event-stream")


async def _events(context: Context, identifier: str, n_sent: int) -> AsyncIterator[bytes]:
    jobs, last_state, last_sent = context.jobs, None, time.monotonic()
    progress = Events(jobs.folder(identifier), n_sent)
    while (job := jobs.entries.get(identifier)) is not None:
        state = json.dumps(jobs.public(job))
        is_last = job["state"] in FINAL or jobs.stopping.is_set()  # before reading: no progress comes after the end
        blocks = []
        for event in await asyncio.to_thread(progress.read):
            n_sent += 1
            blocks.append(f"event: progress\nid: {n_sent}\ndata: {json.dumps(event)}\n\n")
        if state != last_state:
            last_state = state
            blocks.append(f"event: state\ndata: {state}\n\n")
        if not blocks and time.monotonic() - last_sent > HEARTBEAT_SECONDS:
            blocks.append(": heartbeat\n\n")
        if blocks:
            last_sent = time.monotonic()
            yield "".join(blocks).encode()
        if is_last:
            return
        await asyncio.sleep(POLL_SECONDS)


@router.post("/v1/jobs/{job}/cancel", response_model=JobInfo, responses=problems(404, 409))
async def cancel_job(context: ServiceContext, job: Identifier) -> Any:
    """Cancel a job."""
    return context.jobs.public(await context.jobs.cancel(job))


@router.delete("/v1/jobs/{job}", status_code=204, responses={204: {"description": "Gone"}, **problems(404, 409)})
async def delete_job(context: ServiceContext, job: Identifier) -> None:
    """Delete a job and its results; a model that it made stays."""
    await context.jobs.delete(job)
