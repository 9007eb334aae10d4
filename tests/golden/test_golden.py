"""Scores that must not change unless somebody means it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden_scores import CASES, golden_scores


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, list[float]]]:
    return dict(json.loads(Path(__file__).with_name("scores.json").read_text()))


@pytest.mark.parametrize("case", sorted(CASES))
def test_golden_scores(golden: dict[str, dict[str, list[float]]], case: str) -> None:
    found = golden_scores(case)
    assert found.keys() == golden[case].keys()
    for name, values in found.items():
        assert np.allclose(values, golden[case][name], rtol=1e-6, atol=1e-6), name


def test_the_file_holds_these_cases_and_they_differ(golden: dict[str, dict[str, list[float]]]) -> None:
    assert sorted(golden) == sorted(CASES)
    assert all(np.isfinite(values).all() for case in golden.values() for values in case.values())
    scores = [tuple(case["score"]) for case in golden.values()]
    assert len(set(scores)) == len(scores)
