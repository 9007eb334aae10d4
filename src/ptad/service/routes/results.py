"""Routes for results of scorings: report, scores, timeline; and for comparisons of scorings and of models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from fastapi import APIRouter, Depends, Query
from starlette.responses import FileResponse, Response, StreamingResponse

from ptad.files import read_json
from ptad.jobs.bad_cell_list import COLUMNS
from ptad.report.writing import make_page
from ptad.service.api_types import Column, Identifier, JobInfo, binary, problems
from ptad.service.context import ServiceContext
from ptad.service.formats import ANSWER_FORMATS, CSV, PARQUET, encode, json_response
from ptad.service.jobs.table_scores import BAD_CELLS, CONTENT, SCORED
from ptad.service.problems import Problem
from ptad.service.results import ScoredFile, compare_models, compare_scorings, timeline
from ptad.tables.places import POSITIONS

router = APIRouter(tags=["results"])


async def _scoring_folder(context: ServiceContext, job: Identifier) -> Path:
    """Return the folder of a job that has scored a table."""
    entry = context.jobs.public(context.jobs.get(job))
    if entry["state"] != "done" or not entry["scores"]:
        raise Problem(409, "Only a finished scoring has a report and scores. Start one with POST /v1/scorings.")
    return context.jobs.folder(job)


ScoringFolder = Annotated[Path, Depends(_scoring_folder)]


@router.get("/v1/jobs/{job}/report", response_model=dict[str, Any], responses=problems(404, 409))
async def job_report(folder: ScoringFolder) -> Response:
    """What a finished scoring found: histogram, highest scores with reasons, drift, health of the model."""
    return FileResponse(folder / CONTENT, media_type="application/json")


@router.get(
    "/v1/jobs/{job}/report.html",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, **problems(404, 409)},
)
async def job_report_page(folder: ScoringFolder) -> Response:
    """The same as one HTML file that needs no network: to keep, to send, to print."""
    content = await asyncio.to_thread(read_json, folder / CONTENT)
    page = await asyncio.to_thread(make_page, content)
    headers = {"Content-Disposition": 'attachment; filename="report.html"'}
    return Response(page.encode("utf-8", "replace"), media_type="text/html", headers=headers)


@router.get(
    "/v1/jobs/{job}/scores",
    response_class=Response,
    responses={200: {"content": binary(*ANSWER_FORMATS.values())}, **problems(404, 409)},
)
async def job_scores(
    folder: ScoringFolder, format: Annotated[Literal["csv", "parquet", "ndjson", "arrow"], Query()] = "csv"
) -> Response:
    """Download the table with scores, p-values, flags, and the reasons of flagged rows.

    In CSV, text that a spreadsheet would compute is made harmless.
    """
    path, media_type = folder / SCORED, ANSWER_FORMATS[format]
    if media_type == PARQUET:
        return FileResponse(path, media_type=PARQUET, filename="scored.parquet")
    headers = {"Content-Disposition": f'attachment; filename="scored.{format}"'}

    async def convert() -> AsyncIterator[bytes]:
        with await asyncio.to_thread(pq.ParquetFile, path) as file:
            async for block in encode(media_type, file.schema_arrow, file.iter_batches(8192, use_threads=False)):
                yield block

    return StreamingResponse(convert(), media_type=media_type, headers=headers)


@router.get(
    "/v1/jobs/{job}/bad-cells",
    response_class=Response,
    responses={200: {"content": binary(CSV)}, **problems(404, 409)},
)
async def job_bad_cells(context: ServiceContext, job: Identifier) -> Response:
    """The cells of the table that could not be read, as CSV: row (the header is row 1), column, value, reason."""
    path = context.jobs.folder(context.jobs.get(job)["id"]) / BAD_CELLS
    if not path.is_file():
        raise Problem(409, "This job has no list of unreadable cells. GET /v1/jobs/ID says whether it has finished.")
    headers = {"Content-Disposition": f'attachment; filename="{BAD_CELLS}"'}
    return StreamingResponse(_convert_bad_cells(path), media_type=CSV, headers=headers)


async def _convert_bad_cells(path: Path) -> AsyncIterator[bytes]:
    """Yield the list of bad cells, without text that a spreadsheet would compute."""
    convert = pcsv.ConvertOptions(column_types=dict.fromkeys((*COLUMNS, "file"), pa.large_string()))
    with pcsv.open_csv(path, convert_options=convert, parse_options=pcsv.ParseOptions(newlines_in_values=True)) as rows:
        async for block in encode(CSV, rows.schema, rows):
            yield block


@router.get("/v1/jobs/{job}/timeline", response_model=dict[str, Any], responses=problems(404, 409))
async def job_timeline(
    folder: ScoringFolder,
    column: Annotated[
        Column | None, Query(description="A date column of the table; that of the report if none")
    ] = None,
) -> Response:
    """Scores and flag rate over time, by a date column of the scored table."""

    def compute() -> dict[str, Any]:
        return timeline(ScoredFile.open(folder / SCORED), read_json(folder / CONTENT), column)

    return json_response(await asyncio.to_thread(compute))


@router.get("/v1/jobs/{job}/comparison", response_model=dict[str, Any], responses=problems(404, 409))
async def job_comparison(
    context: ServiceContext,
    job: Identifier,
    folder: ScoringFolder,
    other: Annotated[Identifier, Query(description="Another finished scoring")],
) -> Response:
    """Compare two scorings: quantiles and flag rates and, for the same table, flags and scores row by row."""
    folders = [folder, await _scoring_folder(context, other)]
    same_table = context.uploads.same(context.jobs.get(job)["table"], context.jobs.get(other)["table"])

    def compute() -> dict[str, Any]:
        top = read_json(folders[0] / CONTENT)["top"]
        counting = top.get("counting", {"first": 0, "note": POSITIONS.note})
        first, second = (ScoredFile.open(folder / SCORED) for folder in folders)
        return compare_scorings(first, second, same_table=same_table, counting=counting)

    return json_response(await asyncio.to_thread(compute))


@router.get("/v1/models/{model}/scorings", response_model=list[JobInfo], responses=problems(404))
async def model_scorings(
    context: ServiceContext,
    model: Identifier,
    versions: Annotated[bool, Query(description="Those of all versions of the model")] = False,
) -> Any:
    """The finished scorings with a model, the oldest first: flag rates and quantiles of scores by upload."""
    root = context.models.get(model).root
    models = {entry.id for entry in context.models.entries.values() if entry.root == root} if versions else {model}
    jobs = sorted(context.jobs.entries.values(), key=lambda job: job["created"])
    done = (context.jobs.public(job) for job in jobs if job["state"] == "done")
    return [job for job in done if job["scores"] and job["model"] in models]


@router.get("/v1/models/{model}/comparison", response_model=dict[str, Any], responses=problems(404, 409))
async def model_comparison(
    context: ServiceContext, model: Identifier, other: Annotated[Identifier, Query(description="Another model")]
) -> Response:
    """Compare two models, such as two versions of one: threshold, rows, columns, settings, calibration scores."""
    first, second = [await context.models.describe(identifier) for identifier in (model, other)]
    models = [await context.models.load(identifier) for identifier in (model, other)]
    return json_response(compare_models(first, second, [loaded.detector_.calibration for loaded in models]))
