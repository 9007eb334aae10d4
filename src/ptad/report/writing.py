"""Writes the report of a table as one self-contained HTML file.

The page makes no network request, and its content security policy forbids any. Values of the table are JSON inside a
script element that is not executed, with every character that could end it escaped, and are shown as text only.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa

from ptad.errors import DataError
from ptad.files import OutputLock, output_file, write_atomic, write_errors
from ptad.jobs import Progress
from ptad.jobs.bad_cell_list import bad_cell_list
from ptad.jobs.batches import JobOptions, is_repeatable, load_model, operating_point, rows_per_batch, with_options
from ptad.model import Model
from ptad.report.content import ReportSettings, make_content
from ptad.report.cross_fit import CrossFit, training_parts
from ptad.report.scripts import STYLE, asset, script
from ptad.report.survey import Label, Survey
from ptad.tables import TableSource, scan_table
from ptad.tables.conversion import as_frame
from ptad.tables.places import IN_MEMORY
from ptad.tables.reading import as_source

_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_report(
    model: Model | str | os.PathLike[str],
    table: Any,
    out: str | os.PathLike[str],
    settings: ReportSettings | None = None,
    *,
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    strict: bool = False,
    bad_cells: Path | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Score a table and write the report.

    Parameters
    ----------
    model : PTAD, Model or path
        A fitted detector, or the folder it was saved to.
    table : path, folder, glob, "-", list of those; TableSource; or a pandas, polars or Arrow table
        The rows to report on. Files are read in batches: memory does not grow with their length.
    out : path
        The HTML file; it appears only when it is complete.
    settings : ReportSettings, optional
        What to show.
    encoding : str
        Encoding of text files.
    missing : sequence of str
        Text that counts as missing, in addition to that of the model.
    strict : bool
        Whether a cell that cannot be read is an error; otherwise it counts as missing.
    bad_cells : path, optional
        A CSV file that lists such cells.
    device : str
        Where a model that is named by its folder runs.
    progress : callable, optional
        Called after every batch with the number of rows so far, and of all rows where it is known.

    Returns
    -------
    dict
        What the page shows, as plain JSON types.
    """
    settings = settings or ReportSettings()
    options = JobOptions(
        false_alarm_rate=settings.false_alarm_rate, device=device, encoding=encoding, missing=missing, strict=strict
    )
    target = output_file(out, DataError)
    with write_errors(out, DataError):
        lock = OutputLock(target)
    with lock:
        source = as_source(table) if _is_path(table) else TableSource(None)
        used: Model
        if isinstance(model, Model):
            model._check_fitted()
            used, model_name = with_options(copy.copy(model), source, options), "a model in memory"
        else:
            used, model_name = load_model(model, source, options), Path(model).resolve().name
        operating_point(used)  # refuses a model without a threshold
        batches, name = _open_table(table, used, encoding)
        places = getattr(batches, "places", IN_MEMORY)
        label = None if settings.label is None else Label(settings.label, settings.normal)
        with bad_cell_list(bad_cells, places, out) as listed:
            survey = Survey(used, settings.top, label, time=settings.time, strict=strict, places=places, listed=listed)
            survey.add_all(batches, progress)
        if survey.training.detected and (not _is_path(table) or is_repeatable(table)):
            survey = _held_out(survey, lambda: _open_table(table, used, encoding)[0], progress)
        _check_survey(survey, name)
        content = make_content(survey, settings, name, model_name)
        with write_errors(out, DataError):
            write_atomic(target, make_page(content).encode("utf-8", "replace"))
        return content


def _check_survey(survey: Survey, name: str) -> None:
    """Raise if the table has no rows, or no normal ones by its label."""
    if not survey.n_rows:
        raise DataError(f"{name} has no rows to report on. Give a table with rows.")
    label = survey.label
    if label is not None and not survey.normal.counts.sum():
        raise DataError(
            f"No row of {name} is normal by the label column {label.column!r} (normal: "
            f"{', '.join(map(repr, label.normal)) or '0, false'}).",
            "Name the value of normal rows with {normal}.",
        )


def _held_out(survey: Survey, batches: Callable[[], Iterable[pa.RecordBatch]], progress: Progress | None) -> Survey:
    """Survey the training table again, with scores by detectors that were fitted without the row."""
    scorer = CrossFit.fit(survey.model, training_parts(survey.model, batches(), survey.model_columns))
    if not isinstance(scorer, CrossFit):  # the model is too expensive to fit again
        return survey
    again = Survey(survey.model, survey.highest.size, survey.label, scorer, time=survey.time, places=survey.places)
    again.add_all(batches(), progress)
    return again


def make_page(content: dict[str, Any]) -> str:
    """Return the HTML of the page for this content."""
    style = asset(STYLE)
    code = script("page.js")
    data = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(code)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    parts = {"policy": policy, "title": html.escape(content["title"]), "style": style, "script": code, "data": data}
    page = asset("page.html")
    # split before anything is filled in: a value that contains @@ is not a placeholder
    pieces = page.split("@@")
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _open_table(table: Any, model: Model, encoding: str) -> tuple[Iterable[pa.RecordBatch], str]:
    """Return the batches of a table and its name; files are named without their folder."""
    if _is_path(table):
        scan = scan_table(table, batch_rows=rows_per_batch(model), encoding=encoding, schema=model.schema_)
        n_more = len(scan.sources) - 1
        return scan, Path(scan.sources[0].label).name + (f" and {n_more} more files" if n_more else "")
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise DataError(
            f"A report needs a file or a pandas, polars or Arrow table; got {type(table).__name__}. Give its columns "
            "names, such as with pandas.DataFrame(X)."
        )
    rows = pa.Table.from_batches([as_frame(table)])
    return rows.to_batches(max_chunksize=rows_per_batch(model)), "a table in memory"


def _is_path(table: Any) -> bool:
    return isinstance(table, str | os.PathLike | list | tuple | TableSource)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
