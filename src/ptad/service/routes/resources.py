"""Routes for what the service keeps: models and tables."""

from __future__ import annotations

import asyncio
import zipfile
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from ptad.errors import BundleError, SettingError
from ptad.service.api_types import Identifier, Marker, ModelChange, ModelInfo, ModelLine, TableInfo, binary, problems
from ptad.service.context import ServiceContext
from ptad.service.formats import UPLOAD_FORMATS, json_response, media_type
from ptad.service.problems import Problem
from ptad.service.store import remove

router = APIRouter()

_NO_CONTENT: dict[int | str, dict[str, Any]] = {204: {"description": "Gone"}}


@router.get("/v1/models", response_model=list[ModelLine], tags=["models"])
async def list_models(context: ServiceContext) -> Any:
    """List the models, the newest first."""
    return sorted((entry.summary() for entry in context.models.entries.values()), key=lambda line: -line["created"])


@router.get("/v1/models/{model}", response_model=ModelInfo, responses=problems(404, 409), tags=["models"])
async def describe_model(context: ServiceContext, model: Identifier) -> Response:
    """Describe a model: columns, terms, false-alarm rate, sizes, settings, versions."""
    return json_response(await context.models.describe(model))


@router.patch("/v1/models/{model}", response_model=ModelInfo, responses=problems(404, 409), tags=["models"])
async def change_model(context: ServiceContext, model: Identifier, change: ModelChange) -> Response:
    """Change the false-alarm rate or the name of a model, without fitting again."""
    context.models.get(model)
    if change.false_alarm_rate is None and change.name is None:
        raise SettingError("Nothing is changed: give false_alarm_rate, name, or both.")
    if change.false_alarm_rate is not None:
        await context.models.set_rate(model, change.false_alarm_rate)
    if change.name is not None:
        context.models.rename(model, change.name)
    return json_response(await context.models.describe(model))


@router.delete("/v1/models/{model}", status_code=204, responses=_NO_CONTENT | problems(404, 409), tags=["models"])
async def delete_model(context: ServiceContext, model: Identifier) -> None:
    """Delete a model of the store."""
    context.models.get(model)
    if context.jobs.need(model=model):
        raise Problem(409, "A job that is not finished needs this model. Cancel the job first.")
    await context.models.delete(model)


@router.get(
    "/v1/models/{model}/download",
    response_class=Response,
    responses={200: {"content": binary("application/zip")}, **problems(404, 409)},
    tags=["models"],
)
async def download_model(context: ServiceContext, model: Identifier) -> Response:
    """Download a model folder as a zip file, with the false-alarm rate in force."""
    detector, folder = await context.models.load(model), context.store.temporary_path()

    def write() -> None:
        folder.mkdir()
        detector.save(folder / "model")
        with zipfile.ZipFile(folder / "model.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted((folder / "model").iterdir()):
                archive.write(file, f"model/{file.name}")

    try:
        await asyncio.to_thread(write)
    except BaseException as error:
        await asyncio.to_thread(remove, folder)
        if isinstance(error, BundleError) and error.__cause__:  # such as a full disk: nothing that the caller corrects
            raise error.__cause__ from None
        raise
    return FileResponse(
        folder / "model.zip",
        media_type="application/zip",
        filename=f"{model}.zip",
        background=BackgroundTask(remove, folder),
    )


@router.get("/v1/tables", response_model=list[TableInfo], tags=["tables"])
async def list_tables(context: ServiceContext) -> Any:
    """List the uploaded tables, the newest first, without their columns."""
    lines = ({**table, "columns": None} for table in context.uploads.entries.values())
    return sorted(lines, key=lambda line: -line["created"])


@router.post(
    "/v1/tables",
    status_code=201,
    response_model=TableInfo,
    responses=problems(415, 429),
    openapi_extra={"requestBody": {"required": True, "content": binary(*UPLOAD_FORMATS)}},
    tags=["tables"],
)
async def add_table(
    request: Request,
    context: ServiceContext,
    name: Annotated[str, Query(max_length=200, description="What to call it")] = "table",
    sheet: Annotated[
        str | None, Query(max_length=200, description="Sheet of a workbook: name, or number from 1")
    ] = None,
) -> Any:
    """Upload a table (CSV, TSV, Parquet, Arrow, JSON lines; compressed or not; Excel); the answer describes it."""
    if media_type(request) not in UPLOAD_FORMATS:
        raise Problem(415, f"The header Content-Type must be one of: {', '.join(UPLOAD_FORMATS)}.")
    table = await context.uploads.add(name, request.stream(), sheet)
    request.path_params["table"] = table["id"]  # for the audit line
    return table


@router.get("/v1/tables/{table}", response_model=TableInfo, responses=problems(404), tags=["tables"])
async def describe_table(
    context: ServiceContext,
    table: Identifier,
    missing: Annotated[list[Marker] | None, Query(max_length=100, description="Markers of missing values")] = None,
) -> Any:
    """Describe the columns of a table: types, problems, missing values, examples."""
    return await context.uploads.profile(table, missing) if missing else context.uploads.get(table)


@router.delete("/v1/tables/{table}", status_code=204, responses=_NO_CONTENT | problems(404, 409), tags=["tables"])
async def delete_table(context: ServiceContext, table: Identifier) -> None:
    """Delete an uploaded table."""
    context.uploads.get(table)
    if context.jobs.need(table=table):
        raise Problem(409, "A job that is not finished needs this table. Cancel the job first.")
    await context.uploads.delete(table)
