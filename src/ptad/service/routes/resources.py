"""Addresses for what the service keeps: models and tables."""

from __future__ import annotations

import asyncio
import zipfile
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from ptad.errors import BundleError, SettingError
from ptad.service.api_types import Identifier, Marker, ModelChange, ModelInfo, ModelLine, TableInfo, binary, problems
from ptad.service.context import Context, context_of
from ptad.service.formats import FILES, json_response, media_type
from ptad.service.problems import Problem
from ptad.service.store import remove

router = APIRouter()

_NOTHING: dict[int | str, dict[str, Any]] = {204: {"description": "Gone"}}


@router.get("/v1/models", response_model=list[ModelLine], responses=problems(), tags=["models"])
async def list_models(request: Request) -> Any:
    """List the models, the newest first."""
    models = context_of(request).models
    return sorted((models.summary(e) for e in models.entries.values()), key=lambda line: -line["created"])


@router.get("/v1/models/{model}", response_model=ModelInfo, responses=problems(404, 409), tags=["models"])
async def describe_model(request: Request, model: Identifier) -> Response:
    """Describe a model: columns, terms, false-alarm rate, sizes, settings, versions."""
    return json_response(await context_of(request).models.describe(model))


@router.patch("/v1/models/{model}", response_model=ModelInfo, responses=problems(404, 409), tags=["models"])
async def change_model(request: Request, model: Identifier, change: ModelChange) -> Response:
    """Change the false-alarm rate or the name of a model, without fitting again."""
    models = context_of(request).models
    models.get(model)
    if change.false_alarm_rate is None and change.name is None:
        raise SettingError("Nothing is changed: give false_alarm_rate, name, or both.")
    if change.false_alarm_rate is not None:
        await models.set_rate(model, change.false_alarm_rate)
    if change.name is not None:
        models.rename(model, change.name)
    return json_response(await models.describe(model))


@router.delete("/v1/models/{model}", status_code=204, responses={**_NOTHING, **problems(404, 409)}, tags=["models"])
async def delete_model(request: Request, model: Identifier) -> Response:
    """Delete a model of the store."""
    context = context_of(request)
    context.models.get(model)
    if context.jobs.uses(model=model):
        raise Problem(409, "A job that is not finished needs this model. Cancel the job first.")
    await context.models.delete(model)
    return Response(status_code=204)


@router.get(
    "/v1/models/{model}/download",
    response_class=Response,
    responses={200: {"content": binary("application/zip")}, **problems(404, 409)},
    tags=["models"],
)
async def download_model(request: Request, model: Identifier) -> Response:
    """Download a model folder as a zip file, with the false-alarm rate in force."""
    context = context_of(request)
    detector, scratch = await context.models.load(model), context.store.scratch()

    def write() -> None:
        scratch.mkdir()
        detector.save(scratch / "model")
        with zipfile.ZipFile(scratch / "model.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted((scratch / "model").iterdir()):
                archive.write(file, f"model/{file.name}")

    try:
        await asyncio.to_thread(write)
    except BaseException as error:
        await asyncio.to_thread(remove, scratch)
        if isinstance(error, BundleError) and error.__cause__:  # nothing that the caller could correct
            raise error.__cause__ from None
        raise
    return FileResponse(
        scratch / "model.zip",
        media_type="application/zip",
        filename=f"{model}.zip",
        background=BackgroundTask(remove, scratch),
    )


@router.get("/v1/tables", response_model=list[TableInfo], responses=problems(), tags=["tables"])
async def list_tables(request: Request) -> Any:
    """List the uploaded tables, the newest first, without their columns."""
    tables = context_of(request).uploads.entries.values()
    lines = ({name: value for name, value in table.items() if name != "columns"} for table in tables)
    return sorted(lines, key=lambda line: -line["created"])


@router.post(
    "/v1/tables",
    status_code=201,
    response_model=TableInfo,
    responses=problems(415, 429),
    openapi_extra={"requestBody": {"required": True, "content": binary(*FILES)}},
    tags=["tables"],
)
async def add_table(
    request: Request,
    name: Annotated[str, Query(max_length=200, description="What to call it")] = "table",
    sheet: Annotated[
        str | None, Query(max_length=200, description="Sheet of a workbook: name, or number from 1")
    ] = None,
) -> Any:
    """Upload a table (CSV, TSV, Parquet, Arrow, JSON lines; compressed or not; Excel); the answer describes it."""
    if media_type(request) not in FILES:
        raise Problem(415, f"The header Content-Type must be one of: {', '.join(FILES)}.")
    about = await context_of(request).uploads.add(name, request.stream(), sheet)
    request.path_params["table"] = about["id"]  # for the audit line
    return about


@router.get("/v1/tables/{table}", response_model=TableInfo, responses=problems(404), tags=["tables"])
async def describe_table(
    request: Request,
    table: Identifier,
    missing: Annotated[list[Marker] | None, Query(max_length=100, description="Markers of missing values")] = None,
) -> Any:
    """Describe the columns of a table: types, problems, missing values, examples."""
    uploads = context_of(request).uploads
    return await uploads.described(table, missing) if missing else uploads.get(table)


@router.delete("/v1/tables/{table}", status_code=204, responses={**_NOTHING, **problems(404, 409)}, tags=["tables"])
async def delete_table(request: Request, table: Identifier) -> Response:
    """Delete an uploaded table."""
    context: Context = context_of(request)
    context.uploads.get(table)
    if context.jobs.uses(table=table):
        raise Problem(409, "A job that is not finished needs this table. Cancel the job first.")
    await context.uploads.delete(table)
    return Response(status_code=204)
