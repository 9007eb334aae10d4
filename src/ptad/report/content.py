"""The content of the report as plain JSON types: aggregates and the rows with the highest scores, of bounded size."""

from __future__ import annotations

import datetime as dt
import platform
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ptad._version import __version__
from ptad.errors import SettingError
from ptad.model import Model
from ptad.report.cross_fit import CrossFit
from ptad.report.numbers import number_text, value_text
from ptad.report.score_histogram import ScoreHistogram, common_edges, roc_auc
from ptad.report.survey import Survey
from ptad.report.synthetic_check import synthetic_check

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
    """Options of the report.

    Parameters
    ----------
    top : int
        Rows to show, those with the highest scores; at most 1000.
    rows : bool
        Whether values of the table may appear; otherwise rows are shown by their number only.
    label, normal : str, tuple of str
        The label column and its values for normal rows (none: 0 and false); the report then shows how many of the
        known anomalies are flagged.
    false_alarm_rate : float or "auto", optional
        Another target rate than the model's.
    title : str, optional
        Heading of the page.
    time : str, optional
        The column with the time of a row, for scores over time; the model need not use it. By default, the first
        column of date-times, or of dates, that it uses.
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
                f"A report cannot show {self.top:,} rows.", f"Give {{top}} a number from 1 to {MOST_TOP:,}."
            )


def make_content(
    survey: Survey, settings: ReportSettings, table: str, model_name: str, notes: Iterable[str] = ()
) -> dict[str, Any]:
    """Return everything that the page shows; ``notes`` are sentences at its top."""
    model, cells = survey.model, survey.cells
    counting = survey.places.of(0).numbering
    curve = [entry for entry in model.history_ if "total" in entry]
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
        "bad": {"cells": int(cells.bad.sum()), "columns": _first(cells.bad_columns)},
        "fitted": _fitted(survey, values=settings.rows),
        "scores": _scores(survey),
        "over_time": None if survey.over_time is None else survey.over_time.content(),
        "drivers": _drivers(survey),
        "top": _highest(survey, values=settings.rows) | {"counting": {"first": counting.first, "note": counting.note}},
        "drift": _drift(survey, values=settings.rows),
        "health": {"synthetic": synthetic_check(model), "history": [_loss_curve(curve)] if curve else []},
        "settings": _settings(model),
        "versions": _versions(),
    }


def _notes(survey: Survey, notes: Iterable[str]) -> list[dict[str, str | None]]:
    """Return the notes at the top of the page; those about the training table have an id."""
    training: list[dict[str, str | None]] = []
    if isinstance(survey.scorer, CrossFit):
        training = [{"id": "held-out", "text": HELD_OUT}]
    elif survey.training.detected:
        training = [{"id": "training-table", "text": TRAINING_TABLE}]
    unread = [message.phrase(lambda option: None) for message in survey.cells.unreadable_columns(survey.model.schema_)]
    return training + [{"id": None, "text": text} for text in [*unread, *notes]]


def _first(columns: dict[str, Any]) -> list[list[Any]]:
    """Return the first entries as pairs."""
    return [list(pair) for pair in list(columns.items())[:MOST_COLUMNS]]


def _cells(n_rows: int, columns: dict[str, int]) -> dict[str, Any]:
    """Return how many rows have such a cell, and in which columns, the most frequent first."""
    return {"rows": n_rows, "n_columns": len(columns), "columns": _first(columns)}


def _fitted(survey: Survey, *, values: bool) -> dict[str, Any]:
    model, schema = survey.model, survey.model.schema_
    excluded = {name: exclusion.phrase(values=values) for name, exclusion in schema.exclusions.items()}
    return {
        "n_calibration": len(survey.calibration.scores),
        "n_reference": len(model.detector_.reference),
        "n_columns": len(schema.names),
        "terms": [[settings.title(), settings.weight] for settings in model.config_.terms],
        "types": dict(Counter(schema.types.values())),
        "columns": _first(schema.types),
        "excluded": _first(excluded),
    }


def _scores(survey: Survey) -> dict[str, Any]:
    calibration_scores = survey.calibration.scores
    calibration = ScoreHistogram(survey.threshold, survey.scale)
    calibration.add(calibration_scores)
    edges, (normal, anomalous, held_out) = common_edges([survey.normal, survey.anomalous, calibration])
    n = len(calibration_scores)
    n_beyond = n - np.searchsorted(calibration_scores, edges, side="right")
    labelled = None
    if survey.label is not None:
        auc = roc_auc(survey.normal.counts, survey.anomalous.counts)
        labelled = {"counts": anomalous.tolist(), "column": survey.label.column, "auc": auc}
    return {
        "edges": [_digits(edge, 9) for edge in edges],
        "counts": (normal + anomalous).tolist(),
        "calibration": held_out.tolist(),
        "rates": [_digits((1 + beyond) / (n + 1), 4) for beyond in n_beyond],
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


def _highest(survey: Survey, *, values: bool) -> dict[str, Any]:
    """Return the rows with the highest scores, with their strongest cells and those of the columns of the table."""
    highest, explanation = survey.highest, survey.explain_highest()
    if explanation is None:
        return {"columns": [], "names": {}, "rows": []}
    contributions, percentages = explanation.contribution_values, explanation.percentage_values
    p_values = survey.calibration.p_value(highest.scores)
    shown = np.argsort(-percentages.sum(axis=0), kind="stable")[:SHOWN_COLUMNS]
    tables = explanation.observed, explanation.expected, explanation.reasons
    observed, expected, reasons = ({name: t[name].to_pylist() for name in explanation.names} for t in tables)
    if not values:  # the reason of a cell that cannot be read quotes it
        for bad in survey.model.schema_.bad_cells(highest.rows):
            reasons[bad.column][bad.row] = f"not {bad.expected}"
    terms = {name: explanation.terms[name].to_pylist() for name in explanation.terms.column_names}

    def cell(i: int, j: int) -> dict[str, Any]:
        name = explanation.names[j]
        content = {
            "column": int(j),
            "contribution": _digits(contributions[i, j]),
            "percentage": _digits(percentages[i, j]),
            "reason": reasons[name][i],
        }
        if values:
            content |= {"observed": value_text(observed[name][i]), "expected": value_text(expected[name][i], 4)}
        return content

    rows: list[dict[str, Any]] = []
    for i, number in enumerate(highest.numbers):
        strongest = np.argsort(-contributions[i], kind="stable")[:CELLS_PER_ROW]
        place = survey.places.of(int(number))
        place = replace(place, file=place.file and Path(place.file).name)  # without its folder
        rows.append(
            {
                "row": int(number),
                "place": str(place),
                "number": place.number,
                "file": place.file,
                "score": _digits(highest.scores[i], 9),  # as many digits as a score has
                "p": _digits(p_values[i]),
                "anomaly": bool(highest.labels[i]) if survey.label is not None else None,
                "cells": [cell(i, j) for j in strongest],
                "shown": [cell(i, j) for j in shown],
                "rest": _digits(contributions[i].sum() - contributions[i, strongest].sum()),
                "terms": {name: _digits(amounts[i]) for name, amounts in terms.items()},
            }
        )
    used = {c["column"] for row in rows for key in ("cells", "shown") for c in row[key]}
    return {"columns": shown.tolist(), "names": {j: explanation.names[j] for j in sorted(used)}, "rows": rows}


def _drift(survey: Survey, *, values: bool) -> dict[str, Any]:
    columns = survey.drift.columns(labels=values)
    counts = Counter(entry["verdict"] for entry in columns)
    constants = {name: value_text(value) if values else None for name, value in survey.changed_constants.items()}
    return {
        "columns": columns[:MOST_COLUMNS],
        "n_columns": len(columns),
        "n_some": counts["some"],
        "n_strong": counts["strong"],
        "n_unknown": counts["too few rows"],
        "constants": _first(constants),
    }


def _loss_curve(history: list[Any]) -> dict[str, list[float]]:
    """Return the training loss over the steps, and that of held-out rows if it was measured."""
    curve = {"step": [entry["step"] for entry in history], "total": [_digits(entry["total"]) for entry in history]}
    if all("held_out" in entry for entry in history):
        curve["held_out"] = [_digits(entry["held_out"]) for entry in history]
    return curve


def _settings(model: Model) -> list[list[str]]:
    """Return every setting by its dotted name."""
    settings: dict[str, Any] = {"preset": model.preset, "false_alarm_rate": float(model.false_alarm_rate_)}
    for group in model.config_.groups():
        settings |= {f"{group.title()}.{name}": value for name, value in group.to_json().items()}
    return [[name, number_text(value) if isinstance(value, float) else str(value)] for name, value in settings.items()]


def _versions() -> dict[str, str]:
    versions = {
        "ptad": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": version("scikit-learn"),
    }
    # an extra, which is imported only if the model uses it
    return versions | ({"torch": str(sys.modules["torch"].__version__)} if "torch" in sys.modules else {})


def _digits(value: Any, n: int = 5) -> float:
    return float(f"{float(value):.{n}g}")
