"""Scores that must not change unless somebody means it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from golden_network import CASES, FILE, golden_scores

GOLDEN = json.loads(FILE.read_text())


@pytest.mark.parametrize("case", sorted(CASES))
def test_golden_scores(case: str) -> None:
    found = golden_scores(case)
    assert found.keys() == GOLDEN[case].keys()
    for name, values in found.items():
        assert np.allclose(values, GOLDEN[case][name], rtol=1e-9, atol=1e-9), name


def test_the_file_holds_these_cases_and_they_differ() -> None:
    assert sorted(GOLDEN) == sorted(CASES)
    totals = [GOLDEN[case]["reference.reconstruction"][0] for case in CASES if case != "product_min"]
    assert len(set(totals)) == len(totals)
    assert all(np.isfinite(values).all() for case in GOLDEN.values() for values in case.values())
    assert not np.allclose(GOLDEN["paper"]["reference.basis"], GOLDEN["product_min"]["reference.basis"])
    assert not np.allclose(GOLDEN["paper"]["reference.latent"], GOLDEN["paper"]["batch.latent"])
