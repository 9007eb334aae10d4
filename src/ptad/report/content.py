"""What the page says, as plain JSON types: aggregates and the strangest rows only, so its size is bounded."""

from __future__ import annotations

import datetime as dt
import platform
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
import torch

from ptad._version import __version__
from ptad.errors import SettingError
from ptad.estimator import PTAD
from ptad.report.score_histogram import ScoreHistogram, common_edges, roc_auc
from ptad.report.survey import Survey, training_rows
from ptad.report.synthetic import synthetic_check
from ptad.scoring import Explanation

MOST_TOP = 1000
SHOWN_COLUMNS = 8  # columns of the table of strangest rows
CELLS_PER_ROW = 20  # columns in the explanation of a row
MOST_COLUMNS = 300  # columns named in lists
TEXT_LENGTH = 80


@dataclass(frozen=True)
class ReportSettings:
    """What the reader wants to see.

    Parameters
    ----------
    top : int
        Strangest rows to show, at most 1000.
    rows : bool
        Whether values of the table may appear. Without them, rows are only known by their number.
    label, normal : str, tuple of str
        A column that says which rows are normal, and its values for normal rows (none: 0 and false); the report then
        tells how many of the known anomalies were found.
    false_alarm_rate : float or "auto", optional
        Another promised rate than the model's.
    title : str, optional
        Heading of the page.
    """

    top: int = 50
    rows: bool = True
    label: str | None = None
    normal: tuple[str, ...] = ()
    false_alarm_rate: float | str | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.top <= MOST_TOP:
            raise SettingError(f"The 'top' parameter of the report must be an int in [1, {MOST_TOP}]. Got {self.top}.")


def make_content(survey: Survey, settings: ReportSettings, table: str, model_name: str) -> dict[str, Any]:
    """Put together everything that the page shows."""
    model = survey.model
    drift = survey.drift.columns(labels=settings.rows)
    return {
        "title": settings.title or f"Anomaly report: {table}",
        "table": table,
        "model": model_name,
        "made": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "n_rows": survey.n_rows,
        "n_strange": survey.n_strange,
        "rate": float(model.false_alarm_rate_),
        "values_shown": settings.rows,
        "ignored": survey.ignored[:MOST_COLUMNS],
        "learned": _learned(model, values=settings.rows),
        "scores": _scores(survey),
        "drivers": _drivers(survey),
        "top": _top(survey, survey.explain_top(), values=settings.rows),
        "drift": {
            "columns": drift[:MOST_COLUMNS],
            "n_columns": len(drift),
            "n_some": sum(entry["verdict"] == "some" for entry in drift),
            "n_strong": sum(entry["verdict"] == "strong" for entry in drift),
            "constants": [
                [name, _text(value, 6) if settings.rows else None]
                for name, value in list(survey.changed_constants.items())[:MOST_COLUMNS]
            ],
        },
        "health": {"synthetic": synthetic_check(model), "history": _history(model)},
        "settings": _settings(model),
        "versions": {
            "ptad": __version__,
            "Python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }


def _learned(model: PTAD, *, values: bool) -> dict[str, Any]:
    schema, scorer = model.schema_, model.scorer_
    assert model.calibration_ is not None  # a report starts from a threshold
    # a reason such as "constant: 'Paris'" quotes the table
    left_out = {name: reason if values else reason.split(":")[0] for name, reason in schema.left_out.items()}
    return {
        "n_calibration": len(model.calibration_.scores),
        "n_reference": int(training_rows(model).shape[1]),
        "n_columns": len(schema.names),
        "n_encoded": schema.n_encoded,
        "n_members": scorer.network.n_members,
        "n_parameters": scorer.network.n_parameters,
        "kinds": dict(Counter(schema.kinds.values())),
        "columns": [[name, kind] for name, kind in list(schema.kinds.items())[:MOST_COLUMNS]],
        "left_out": list(left_out.items())[:MOST_COLUMNS],
    }


def _scores(survey: Survey) -> dict[str, Any]:
    calibration = survey.model.calibration_
    assert calibration is not None
    usual = ScoreHistogram(survey.threshold)
    usual.add(calibration.scores)
    edges, (normal, anomalous, held_out) = common_edges([survey.normal, survey.anomalous, usual])
    n = len(calibration.scores)
    beyond = n - np.searchsorted(calibration.scores, edges, side="right")
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
        "usual": held_out.tolist(),
        "rates": [float(f"{(1 + b) / (n + 1):.4g}") for b in beyond],
        "threshold": survey.threshold,
        "threshold_index": int(np.searchsorted(edges, survey.threshold)),
        "labelled": labelled,
    }


def _drivers(survey: Survey) -> list[dict[str, Any]]:
    n_strange = max(survey.n_strange, 1)
    order = np.argsort(-survey.share, kind="stable")[:12]
    names = survey.model.schema_.names
    return [
        {"name": names[j], "first": survey.first_reason[j] / n_strange, "share": survey.share[j] / n_strange}
        for j in order
        if survey.share[j] > 0
    ]


def _top(survey: Survey, explanation: Explanation | None, *, values: bool) -> dict[str, Any]:
    if explanation is None:
        return {"columns": [], "names": {}, "rows": []}
    cells = explanation.contribution_values
    assert survey.model.calibration_ is not None
    p_values = survey.model.calibration_.p_value(explanation.score)
    shown = np.argsort(-cells.sum(axis=0), kind="stable")[:SHOWN_COLUMNS]
    observed = {name: explanation.observed[name].to_pylist() for name in explanation.names}
    expected = {name: explanation.expected[name].to_pylist() for name in explanation.names}

    def cell(i: int, j: int) -> list[Any]:
        name = explanation.names[j]
        pair = [_text(observed[name][i], 6), _text(expected[name][i], 4)] if values else [None, None]
        return [int(j), _digits(cells[i, j]), *pair]

    rows: list[dict[str, Any]] = []
    for i, number in enumerate(survey.top_numbers):
        strongest = np.argsort(-cells[i], kind="stable")[:CELLS_PER_ROW]
        rows.append(
            {
                "row": int(number),
                "score": _digits(explanation.score[i], 9),  # as many digits as a score has
                "p": _digits(p_values[i]),
                "anomaly": bool(survey.top_labels[i]) if survey.label is not None else None,
                "cells": [cell(i, int(j)) for j in strongest],
                "shown": [cell(i, int(j)) for j in shown],
                "rest": _digits(cells[i].sum() - cells[i, strongest].sum()),
            }
        )
    used = {int(c[0]) for row in rows for key in ("cells", "shown") for c in row[key]}
    return {"columns": shown.tolist(), "names": {j: explanation.names[j] for j in sorted(used)}, "rows": rows}


def _history(model: PTAD) -> list[dict[str, list[float]]]:
    """Return one curve per group of members that was trained together."""
    curves = []
    for member in sorted({entry.get("member", 0.0) for entry in model.history_}):
        entries = [entry for entry in model.history_ if entry.get("member", 0.0) == member]
        curve = {"step": [entry["step"] for entry in entries], "total": [_digits(entry["total"]) for entry in entries]}
        if all("held_out" in entry for entry in entries):
            curve["held_out"] = [_digits(entry["held_out"]) for entry in entries]
        curves.append(curve)
    return curves


def _settings(model: PTAD) -> list[list[str]]:
    own = {"preset": model.preset, "context": model.context, "false_alarm_rate": model.false_alarm_rate_}
    return [[name, str(value)] for name, value in {**own, **model.config_.to_json()}.items()]


def _digits(value: Any, n: int = 5) -> float:
    return float(f"{float(value):.{n}g}")


def _text(value: Any, digits: int) -> str | None:
    """Write one cell for people: short numbers, ISO dates, no more than a line of text."""
    if value is None or value != value:
        return None
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    text = value.isoformat(" ") if isinstance(value, dt.datetime) else str(value)
    return text if len(text) <= TEXT_LENGTH else text[: TEXT_LENGTH - 1] + "…"
