"""What the page says, as plain JSON types: aggregates and the rows with the highest scores, so its size is bounded."""

from __future__ import annotations

import datetime as dt
import platform
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from ptad._version import __version__
from ptad.errors import Option, SettingError
from ptad.explanation import Explanation
from ptad.report.cross_fit import CrossFit
from ptad.report.numbers import number_text, value_text
from ptad.report.score_histogram import ScoreHistogram, common_edges, roc_auc
from ptad.report.survey import Survey
from ptad.report.synthetic_check import synthetic_check
from ptad.table_model import TableModel
from ptad.tables.places import Place

HELD_OUT = (
    "Held-out scores of the training rows: the model was fitted on this table, so each row is scored by a model that "
    "was fitted without it."
)
TRAINING_TABLE = (
    "The model was fitted on this table, or on a part of it. Scores of training rows are too low, and so are the "
    "counts of flagged rows. To see what the model finds, report on rows that it was not fitted on."
)
MOST_TOP = 1000
SHOWN_COLUMNS = 6  # columns of the table of anomalies
CELLS_PER_ROW = 20  # columns in the explanation of a row
MOST_COLUMNS = 300  # columns named in lists


@dataclass(frozen=True)
class ReportSettings:
    """What the reader wants to see.

    Parameters
    ----------
    top : int
        Rows to show, those with the highest scores; at most 1000.
    rows : bool
        Whether values of the table may appear. Without them, rows are only known by their number.
    label, normal : str, tuple of str
        The label column and its values for normal rows (none: 0 and false); the report then tells how many of the
        known anomalies were found.
    false_alarm_rate : float or "auto", optional
        Another target rate than the model's.
    title : str, optional
        Heading of the page.
    time : str, optional
        The column that tells when a row happened, for scores over time; the model need not use it. Unless named, the
        first column of date-times, or of dates, that it uses.
    """

    top: int = 50
    rows: bool = True
    label: str | None = None
    normal: tuple[str, ...] = ()
    false_alarm_rate: float | str | None = None
    title: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.top <= MOST_TOP:
            raise SettingError(
                f"A report cannot show {self.top:,} rows.",
                f"Give {{}} a number from 1 to {MOST_TOP:,}.",
                (Option("top"),),
            )


def make_content(
    survey: Survey, settings: ReportSettings, table: str, model_name: str, notes: Iterable[str] = ()
) -> dict[str, Any]:
    """Put together everything that the page shows; ``notes`` are sentences that stand above everything else."""
    model, cells = survey.model, survey.cells
    return {
        "title": settings.title or f"Anomaly report: {table}",
        "table": table,
        "model": model_name,
        "made": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "n_rows": survey.n_rows,
        "n_flagged": survey.n_flagged,
        "rate": float(model.false_alarm_rate_),
        "values_shown": settings.rows,
        "notes": _notes(survey, notes),
        "held_out": isinstance(survey.scorer, CrossFit),
        "training_table": survey.training.detected,
        "ignored": survey.ignored[:MOST_COLUMNS],
        "missing": _cells(cells.rows_missing, cells.missing_columns),
        "unseen": _cells(cells.rows_unseen, cells.unseen_columns),
        "bad": {"cells": int(cells.bad.sum()), "columns": list(map(list, cells.bad_columns.items()))[:MOST_COLUMNS]},
        "fitted": _fitted(survey, values=settings.rows),
        "scores": _scores(survey),
        "over_time": None if survey.over_time is None else survey.over_time.content(),
        "drivers": _drivers(survey),
        "top": _top(survey, survey.explain_highest(), values=settings.rows),
        "drift": _drift(survey, values=settings.rows),
        "health": {"synthetic": synthetic_check(model), "history": _history(model)},
        "settings": _settings(model),
        "versions": _versions(),
    }


def _notes(survey: Survey, notes: Iterable[str]) -> list[dict[str, str | None]]:
    """Return what the reader has to know first; a note with an id can be found by it."""
    own: list[dict[str, str | None]] = []
    if isinstance(survey.scorer, CrossFit):
        own.append({"id": "held-out", "text": HELD_OUT})
    elif survey.training.detected:
        own.append({"id": "training-table", "text": TRAINING_TABLE})
    unread = survey.cells.unread(survey.model.schema_)
    said = [*(message.phrase(lambda option: None) for message in unread), *notes]  # a page has no options
    return own + [{"id": None, "text": text} for text in said]


def _cells(n_rows: int, columns: dict[str, int]) -> dict[str, Any]:
    """Return how many rows have such a cell, and in which columns, the most frequent first."""
    return {"rows": n_rows, "n_columns": len(columns), "columns": list(map(list, columns.items()))[:MOST_COLUMNS]}


def _fitted(survey: Survey, *, values: bool) -> dict[str, Any]:
    model = survey.model
    schema = model.schema_
    # a reason such as "constant: 'Paris'" quotes the table
    excluded = {name: reason if values else reason.split(":")[0] for name, reason in schema.excluded.items()}
    return {
        "n_calibration": len(survey.calibration.scores),
        "n_reference": len(model.detector_.reference),
        "n_columns": len(schema.names),
        "terms": [[settings.title(), settings.weight] for settings in model.config_.terms],
        "types": dict(Counter(schema.types.values())),
        "columns": [[name, type_] for name, type_ in list(schema.types.items())[:MOST_COLUMNS]],
        "excluded": [list(pair) for pair in list(excluded.items())[:MOST_COLUMNS]],
    }


def _scores(survey: Survey) -> dict[str, Any]:
    known = survey.calibration.scores
    calibration = ScoreHistogram(survey.threshold, survey.scale)
    calibration.add(known)
    edges, (normal, anomalous, held_out) = common_edges([survey.normal, survey.anomalous, calibration])
    n = len(known)
    beyond = n - np.searchsorted(known, edges, side="right")
    labelled = None
    if survey.label is not None:
        labelled = {
            "counts": anomalous.tolist(),
            "column": survey.label.column,
            "auc": roc_auc(survey.normal.counts, survey.anomalous.counts),
        }
    return {
        "edges": [_digits(edge, 9) for edge in edges],
        "counts": (normal + anomalous).tolist(),
        "calibration": held_out.tolist(),
        "rates": [float(f"{(1 + b) / (n + 1):.4g}") for b in beyond],
        "threshold": survey.threshold,
        "threshold_index": int(np.searchsorted(edges, survey.threshold)),
        "scale": [_digits(survey.scale.centre, 9), _digits(survey.scale.unit, 9)],
        "labelled": labelled,
    }


def _drivers(survey: Survey) -> list[dict[str, Any]]:
    """Return the columns by their share of the positive contributions of flagged rows."""
    n_flagged = max(survey.n_flagged, 1)
    order = np.argsort(-survey.share, kind="stable")[:12]
    names = survey.model.schema_.names
    return [
        {"name": names[j], "first": round(float(survey.first_reason[j])), "share": float(survey.share[j]) / n_flagged}
        for j in order
        if survey.share[j] > 0
    ]


def _top(survey: Survey, explanation: Explanation | None, *, values: bool) -> dict[str, Any]:
    if explanation is None:
        return {"columns": [], "names": {}, "rows": [], "counting": _counting(survey)}
    cells, percentages = explanation.contribution_values, explanation.percentage_values
    p_values = survey.calibration.p_value(survey.highest.scores)
    shown = np.argsort(-percentages.sum(axis=0), kind="stable")[:SHOWN_COLUMNS]
    tables = explanation.observed, explanation.expected, explanation.reasons
    observed, expected, reasons = ({name: t[name].to_pylist() for name in explanation.names} for t in tables)
    if not values:  # why a cell cannot be read quotes it
        for bad in survey.model.schema_.bad_cells(survey.highest.rows):
            reasons[bad.column][bad.row] = f"not {bad.what}"
    terms = {name: explanation.terms[name].to_pylist() for name in explanation.terms.column_names}

    def cell(i: int, j: int) -> dict[str, Any]:
        name = explanation.names[j]
        found = {
            "column": int(j),
            "contribution": _digits(cells[i, j]),
            "percentage": _digits(percentages[i, j]),
            "reason": reasons[name][i],
        }
        return found | (
            {"observed": value_text(observed[name][i]), "expected": value_text(expected[name][i], 4)} if values else {}
        )

    rows: list[dict[str, Any]] = []
    for i, number in enumerate(survey.highest.numbers):
        strongest = np.argsort(-cells[i], kind="stable")[:CELLS_PER_ROW]
        place = _place(survey, int(number))
        rows.append(
            {
                "row": int(number),
                "place": str(place),
                "number": place.number,
                "file": place.file,
                "score": _digits(survey.highest.scores[i], 9),  # as many digits as a score has
                "p": _digits(p_values[i]),
                "anomaly": bool(survey.highest.labels[i]) if survey.label is not None else None,
                "cells": [cell(i, int(j)) for j in strongest],
                "shown": [cell(i, int(j)) for j in shown],
                "rest": _digits(cells[i].sum() - cells[i, strongest].sum()),
                "terms": {name: _digits(amounts[i]) for name, amounts in terms.items()},
            }
        )
    used = {int(c["column"]) for row in rows for key in ("cells", "shown") for c in row[key]}
    names = {j: explanation.names[j] for j in sorted(used)}
    return {"columns": shown.tolist(), "names": names, "rows": rows, "counting": _counting(survey)}


def _place(survey: Survey, row: int) -> Place:
    """Return where a row is; of several files, which one, without its folder."""
    place = survey.places.of(row)
    return place if place.file is None else replace(place, file=Path(place.file).name)


def _counting(survey: Survey) -> dict[str, Any]:
    """Return how rows are numbered: the number of the first one, and words for it."""
    counting = survey.places.of(0).counting
    return {"first": counting.first, "note": counting.note}


def _drift(survey: Survey, *, values: bool) -> dict[str, Any]:
    columns = survey.drift.columns(labels=values)
    counts = Counter(entry["verdict"] for entry in columns)
    constants = list(survey.changed_constants.items())[:MOST_COLUMNS]
    return {
        "columns": columns[:MOST_COLUMNS],
        "n_columns": len(columns),
        "n_some": counts["some"],
        "n_strong": counts["strong"],
        "n_unknown": counts["too few rows"],
        "constants": [[name, value_text(value) if values else None] for name, value in constants],
    }


def _history(model: TableModel) -> list[dict[str, list[float]]]:
    """Return the curve of the training loss, if something was trained."""
    entries = [entry for entry in model.history_ if "total" in entry]
    if not entries:
        return []
    curve = {"step": [entry["step"] for entry in entries], "total": [_digits(entry["total"]) for entry in entries]}
    if all("held_out" in entry for entry in entries):
        curve["held_out"] = [_digits(entry["held_out"]) for entry in entries]
    return [curve]


def _settings(model: TableModel) -> list[list[str]]:
    """Return every setting by its dotted name."""
    found: dict[str, Any] = {"preset": model.preset, "false_alarm_rate": float(model.false_alarm_rate_)}
    for group in model.config_.groups():
        found |= {f"{group.title()}.{name}": value for name, value in group.to_json().items()}
    return [[name, number_text(value) if isinstance(value, float) else str(value)] for name, value in found.items()]


def _versions() -> dict[str, str]:
    found = {
        "ptad": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    # it is an extra, and only a model that uses it has imported it
    return found | ({"torch": str(sys.modules["torch"].__version__)} if "torch" in sys.modules else {})


def _digits(value: Any, n: int = 5) -> float:
    return float(f"{float(value):.{n}g}")
