"""From a model and a table to one self-contained HTML file.

Nothing in the page asks the network for anything, and a policy in its head forbids it. Values of the table travel as
JSON inside a script element that is never executed, with every character that could end it escaped, and reach the
screen as text only.
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

from ptad.errors import DataError, Option
from ptad.estimator import PTAD
from ptad.files import OutputLock, write_atomic, write_errors
from ptad.jobs.bad_cell_list import bad_cell_list
from ptad.jobs.batches import is_read_again, rows_per_batch
from ptad.report.bundle import STYLE, asset, script
from ptad.report.content import ReportSettings, make_content
from ptad.report.cross_fit import CrossFit, training_parts
from ptad.report.survey import Label, Progress, Survey
from ptad.tables import TableSource, scan_table
from ptad.tables.conversion import as_frame
from ptad.tables.places import IN_MEMORY
from ptad.tables.reading import as_source

_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_report(
    model: PTAD | str | os.PathLike[str],
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
    model : PTAD or path
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
        Text that counts as missing, beside that of the model.
    strict : bool
        Whether a cell that cannot be read is an error; otherwise it counts as missing.
    bad_cells : path, optional
        A CSV file that lists such cells.
    device : str
        Where a model that is named by its folder runs.
    progress : callable, optional
        Told the number of rows done, and of all rows where it is known, after every batch.

    Returns
    -------
    dict
        What the page shows, as plain JSON types.
    """
    settings = settings or ReportSettings()
    if Path(out).is_dir():
        raise DataError(f"{out} is a folder. Name a file to write to.")
    with write_errors(out, DataError):
        lock = OutputLock(Path(out))
    with lock:
        detector = copy.copy(model) if isinstance(model, PTAD) else PTAD.load(model, device=device)
        # also refuses a model without a threshold
        wanted = detector.false_alarm_rate if settings.false_alarm_rate is None else settings.false_alarm_rate
        detector.set_false_alarm_rate(wanted)
        detector.schema_ = detector.schema_.with_missing(missing)
        batches, name = _batches(table, detector, encoding)
        label = None if settings.label is None else Label(settings.label, settings.normal)
        places = getattr(batches, "places", IN_MEMORY)
        with bad_cell_list(bad_cells, places, out) as listed:
            survey = Survey(
                detector, settings.top, label, time=settings.time, strict=strict, places=places, listed=listed
            )
            survey.add_all(batches, progress)
        if survey.training.is_it and _is_read_again(table):
            survey = _held_out(survey, lambda: _batches(table, detector, encoding)[0], progress)
        _check_survey(survey, name)
        model_name = "a model in memory" if isinstance(model, PTAD) else Path(model).resolve().name
        content = make_content(survey, settings, name, model_name)
        with write_errors(out, DataError):
            write_atomic(Path(out), make_page(content).encode("utf-8", "replace"))
        return content


def _check_survey(survey: Survey, name: str) -> None:
    """Raise if there is nothing to report on."""
    if not survey.n_rows:
        raise DataError(f"{name} has no rows to report on. Give a table with rows.")
    label = survey.label
    if label is not None and not survey.normal.counts.sum():
        raise DataError(
            f"No row of {name} is normal by the label column {label.column!r} (normal: "
            f"{', '.join(map(repr, label.normal)) or '0, false'}).",
            "Name the value of normal rows with {}.",
            (Option("normal"),),
        )


def _is_read_again(table: Any) -> bool:
    """Whether a table is still there after it was read: standard input is not."""
    return not _is_path(table) or is_read_again(table)


def _held_out(survey: Survey, batches: Callable[[], Iterable[pa.RecordBatch]], progress: Progress | None) -> Survey:
    """Survey the training table once more with scores by detectors that were fitted without the row."""
    scorer = CrossFit.fit(survey.model, training_parts(survey.model, batches(), survey.known))
    if not isinstance(scorer, CrossFit):  # what is trained for minutes is not trained again
        return survey
    found = Survey(survey.model, survey.top, survey.label, scorer, time=survey.time, places=survey.places)
    found.add_all(batches(), progress)
    return found


def make_page(content: dict[str, Any]) -> str:
    """Return the whole page for this content."""
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
    # split at the marks first: a part that looks like a mark stays what it is
    pieces = page.split("@@")
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _batches(table: Any, model: PTAD, encoding: str) -> tuple[Iterable[pa.RecordBatch], str]:
    if _is_path(table):
        wish = as_source(table)
        model.schema_ = model.schema_.with_signs(wish.decimal, wish.thousands)
        scan = scan_table(
            table,
            batch_rows=rows_per_batch(model),
            encoding=encoding,
            schema=model.schema_,
        )
        first = scan.sources[0].label
        more = len(scan.sources) - 1
        # the folder is nobody's business but the author's
        return scan, Path(first).name + (f" and {more} more files" if more else "")
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise DataError(
            f"A report needs a file or a pandas, polars or Arrow table; got {type(table).__name__}. Give its columns "
            "names, such as with pandas.DataFrame(X)."
        )
    try:
        rows = frame.to_arrow()
    except pa.ArrowException:  # numbers and text in one column
        rows = pa.Table.from_batches([as_frame(table)])
    return rows.to_batches(max_chunksize=rows_per_batch(model)), "a table in memory"


def _is_path(table: Any) -> bool:
    return isinstance(table, str | os.PathLike | list | tuple | TableSource)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
