"""Two scorings side by side, and two models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptad.service.scored_file import ScoredFile

LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
MOST_POINTS = 2000  # of the scatter of scores
MOST_CHANGED = 200  # rows that are listed
_DETAILS = (
    "false_alarm_rate",
    "threshold",
    "training_rows",
    "new_rows",
    "calibration_rows",
    "reference_rows",
    "preset",
)


def compare_scorings(first: ScoredFile, second: ScoredFile, *, same_table: bool) -> dict[str, Any]:
    """Return quantiles of both and, for the same table, which rows changed their flag and how the scores agree."""
    a, b = first.scores(), second.scores()
    found: dict[str, Any] = {
        "same_table": same_table,
        "levels": list(LEVELS),
        "first": _distribution(a[0], a[2]),
        "second": _distribution(b[0], b[2]),
    }
    return found | (_by_row(a, b) if same_table else {})


def _distribution(scores: NDArray[np.float64], flags: NDArray[np.bool_]) -> dict[str, Any]:
    return {
        "rows": len(scores),
        "flagged": int(flags.sum()),
        "flag_rate": float(flags.mean()),
        "quantiles": [float(q) for q in np.quantile(scores, LEVELS)],
    }


def _by_row(a: tuple[Any, Any, Any], b: tuple[Any, Any, Any]) -> dict[str, Any]:
    """Flags and scores of the same rows."""
    gained, lost = np.flatnonzero(~a[2] & b[2]), np.flatnonzero(a[2] & ~b[2])
    changed = np.concatenate([gained, lost])
    # the clearest cases first: those whose p-values lie furthest apart
    apart = np.abs(np.log(a[1][changed]) - np.log(b[1][changed]))
    listed = changed[np.argsort(-apart, kind="stable")[:MOST_CHANGED]]
    shown = np.unique(np.concatenate([_sample(len(a[0]), MOST_POINTS - len(listed)), listed]))
    return {
        "flags": {
            "both": int((a[2] & b[2]).sum()),
            "first_only": len(lost),
            "second_only": len(gained),
            "neither": int((~a[2] & ~b[2]).sum()),
        },
        "rank_correlation": _rank_correlation(a[0], b[0]),
        "changed": [
            {
                "row": int(i),
                "first": {"score": float(a[0][i]), "p_value": float(a[1][i]), "flagged": bool(a[2][i])},
                "second": {"score": float(b[0][i]), "p_value": float(b[1][i]), "flagged": bool(b[2][i])},
            }
            for i in listed
        ],
        "points": [[int(i), float(a[0][i]), float(b[0][i])] for i in shown],
    }


def _sample(n: int, most: int) -> NDArray[np.int64]:
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Spearman's, of a sample where there are very many rows; None where one side is constant."""
    from scipy.stats import spearmanr

    some = _sample(len(a), 200_000)
    if len(some) < 3 or np.ptp(a[some]) == 0 or np.ptp(b[some]) == 0:
        return None
    return float(spearmanr(a[some], b[some]).statistic)


def compare_models(
    first: dict[str, Any],
    second: dict[str, Any],
    calibrations: tuple[NDArray[np.float64] | None, NDArray[np.float64] | None],
) -> dict[str, Any]:
    """Return what differs between two models, of which descriptions and scores of calibration rows are given."""
    types = [{c["name"]: c["type"] for c in model["columns"]} for model in (first, second)]
    settings = [_flat(model["config"]) for model in (first, second)]
    sides = [
        {name: model.get(name) for name in ("id", "name", "version", "created", "made_by", "table", *_DETAILS)}
        | {"columns": len(model["columns"])}
        | {"quantiles": None if scores is None else [float(q) for q in np.quantile(scores, LEVELS)]}
        for model, scores in zip((first, second), calibrations, strict=True)
    ]
    return {
        "first": sides[0],
        "second": sides[1],
        "levels": list(LEVELS),
        "columns": {
            "first_only": sorted(types[0].keys() - types[1].keys()),
            "second_only": sorted(types[1].keys() - types[0].keys()),
            "types": [
                [name, types[0][name], types[1][name]]
                for name in types[0]
                if name in types[1] and types[0][name] != types[1][name]
            ],
        },
        "settings": [
            [name, settings[0].get(name), settings[1].get(name)]
            for name in sorted({*settings[0], *settings[1]})
            if settings[0].get(name) != settings[1].get(name)
        ],
    }


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Every setting by its dotted name, as a fit takes it."""
    groups = {**config["terms"], **{name: group for name, group in config.items() if name != "terms"}}
    return {f"{group}.{name}": value for group, values in groups.items() for name, value in values.items()}
