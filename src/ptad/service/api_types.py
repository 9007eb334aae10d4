"""Types of requests and answers: the source of the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ptad.tables.column_types import TYPES

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
ModelIdentifier = Annotated[Identifier, Path(alias="model")]  # where "model" is the name of the loaded model
# a name is shown, never used as a path; NUL and half surrogates cannot be stored as JSON text everywhere
Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]+$")]
Column = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
# a smaller rate would need more calibration rows than fit into this service
Rate = Annotated[float, Field(ge=1e-9, lt=1)] | Literal["auto"]
# a type, or a date with its format, which is checked where dates are read
ColumnType = Annotated[str, StringConstraints(max_length=100, pattern=rf"^({'|'.join(TYPES)})$|^date(time)?:.+$")]
Marker = Annotated[str, StringConstraints(max_length=1000)]
# nothing nested: values are checked, quoted and stored, and must not be of any depth
Setting = bool | int | float | str | None


class RequestBody(BaseModel):
    """A body in JSON; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=False)


class ProblemBody(BaseModel):
    """RFC 9457: what is wrong and what to do about it."""

    type: str
    title: str
    status: int
    detail: str


class ModelChange(RequestBody):
    """Changes to a model that need no new fit."""

    false_alarm_rate: Rate | None = None
    name: Name | None = None


class FitRequest(RequestBody):
    """Fit on the (normal) rows of an uploaded table."""

    table: Identifier
    name: Name = "model"
    label: Column | None = None
    normal: list[Marker] = Field(default=[], max_length=100)
    false_alarm_rate: Rate = "auto"
    types: dict[Column, ColumnType] = Field(default={}, max_length=5000)
    drop: list[Column] = Field(default=[], max_length=5000)
    missing: list[Marker] = Field(default=[], max_length=100)
    decimal: Literal[".", ","] | None = Field(default=None, description="Decimal sign of numbers in text")
    thousands: Literal["", ".", ",", " ", "'"] | None = Field(default=None, description="Their thousands sign")
    strict: bool = Field(default=False, description="Refuse a cell that cannot be read; otherwise it counts as missing")
    preset: Literal["default", "paper"] = "default"
    score: bool = Field(default=False, description="Then score the table itself, with held-out scores: one job")
    seed: int = Field(default=0, ge=0, lt=2**31)
    config: dict[str, Setting | list[Setting]] = Field(
        default={}, max_length=200, description="Settings that differ from the preset, by dotted name"
    )


class ModelRequest(RequestBody):
    """Do something with a model and an uploaded table."""

    table: Identifier
    model: Identifier
    label: Column | None = None
    normal: list[Marker] = Field(default=[], max_length=100)


class ScoringRequest(ModelRequest):
    """Score every row of an uploaded table with a model."""

    top: int = Field(default=50, ge=1, le=1000)
    missing: list[Marker] = Field(
        default=[], max_length=100, description="Text that means missing, in addition to that of the model"
    )
    strict: bool = Field(default=False, description="Refuse a cell that cannot be read; otherwise it counts as missing")


class RenewalRequest(ModelRequest):
    """Make a new version of a model with the (normal) rows of an uploaded table; the old version stays."""

    false_alarm_rate: Rate | None = Field(default=None, description="Another target rate than the model's")


class ModelLine(BaseModel):
    """A model in the list."""

    id: str
    name: str
    created: float
    fixed: bool = Field(description="Named when the service was started; cannot be deleted")
    training_rows: int | None = None
    columns_used: int | None = None
    table: str | None = None
    version: int = Field(default=1, description="1 for a fit; an update or a recalibration makes the next one")
    parent: str | None = Field(default=None, description="The model that this version was made from")
    made_by: Literal["fit", "update", "recalibrate"] | None = None
    new_rows: int | None = Field(default=None, description="Rows that the update or the recalibration took")


class ModelInfo(ModelLine):
    """Everything about a model."""

    model_config = ConfigDict(extra="allow")


class TableInfo(BaseModel):
    """An uploaded table and what its columns are."""

    id: str
    name: str
    created: float
    rows: int
    bytes: int
    format: str
    columns: list[dict[str, Any]] | None = None
    notes: list[str] = Field(default=[], description="How dates and numbers in text are read, and what is a guess")


class JobInfo(BaseModel):
    """A job and where it stands."""

    id: str
    kind: Literal["fit", "score", "update", "recalibrate"]
    title: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    created: float
    started: float | None
    ended: float | None
    attempts: int
    table: str
    model: str = Field(description="The model that scores, or the one that the job makes")
    parent: str | None = Field(description="The model that an update or a recalibration starts from")
    label: str | None
    normal: list[str]
    error: str | None
    summary: dict[str, Any] | None
    scores: dict[str, Any] | None = Field(description="What was scored, where the job scores a table and is done")


class RowResult(BaseModel):
    """The score of a row; p-value and anomaly are null for a model without a threshold."""

    score: float
    p_value: float | None
    anomaly: bool | None


class BadCell(BaseModel):
    """A cell that cannot be read and counts as missing; rows are counted from 0."""

    row: int
    column: str
    reason: str


class RowsAnswer(BaseModel):
    """What every answer to JSON rows says of them."""

    model: str
    ignored: list[str]
    bad_cells: int = Field(description="Cells that cannot be read and count as missing")
    bad_cell_list: list[BadCell] = Field(description="The first of them")


class ScoreAnswer(RowsAnswer):
    """The scores of all rows of a call, in their order."""

    false_alarm_rate: float | None
    threshold: float | None
    results: list[RowResult]


class Reason(BaseModel):
    """A column of a row, and what it adds to the score."""

    column: str
    reason: str = Field(
        description="unusual value, unusual combination with another column, missing, unseen category, or why the cell "
        "could not be read, such as: not a number: 'abc'"
    )
    observed: Any
    expected: Any
    contribution: float = Field(description="What the column adds to the score; all of them add up to it")
    percentage: float = Field(description="Share of the row's positive contributions; all of them add up to 100")


class ExplainedRow(RowResult):
    """A row with the columns that contribute most, the strongest first."""

    row: int
    columns: list[Reason]


class ExplainAnswer(RowsAnswer):
    """Explanations in the order of the rows."""

    results: list[ExplainedRow]


class ServiceInfo(BaseModel):
    """The service itself."""

    version: str
    limits: dict[str, float]
    types: list[str]
    presets: list[str]


PROBLEM: dict[str, Any] = {
    "description": "A problem, with the culprit and the remedy",
    "content": {"application/problem+json": {"schema": ProblemBody.model_json_schema()}},
}


def binary(*media_types: str) -> dict[str, Any]:
    """Return the OpenAPI content of a body that is a file of one of these media types."""
    return {kind: {"schema": {"type": "string", "format": "binary"}} for kind in media_types}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of an address for problems with these statuses."""
    return dict.fromkeys(statuses, PROBLEM)


COMMON_PROBLEMS = problems(400, 401, 403, 405, 408, 413, 422, 503, 507)  # of all addresses
