"""A row has one score: alone, in any batch, order or chunk; and what the other context does instead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ptad import PTAD
from ptad.scoring import Scorer

Make = Callable[..., PTAD]
Rows = NDArray[np.float64]
SETTINGS = [
    ("default", {}),
    ("paper", {}),
    ("default", {"backbone": "transformer"}),
    ("default", {"backbone": "mlp"}),
    ("default", {"projection_mask": "random"}),
    ("default", {"members": "single", "calibration": "split", "matching": "product_min"}),
]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def fitted(request: pytest.FixtureRequest, make_detector: Make, rows: Rows) -> PTAD:
    preset, fields = request.param
    return make_detector(preset, **fields).fit(rows)


@pytest.fixture(scope="module")
def strange(rows: Rows) -> Rows:
    """The rows, some of them far away, some with missing cells."""
    x = rows.copy()
    x[:10] += 3.0
    x[5:20, 1] = np.nan
    x[20] = np.nan
    return x


def test_alone_in_any_batch_and_in_any_order(fitted: PTAD, strange: Rows) -> None:
    scores = fitted.anomaly_score(strange)
    alone = np.concatenate([fitted.anomaly_score(strange[i : i + 1]) for i in range(0, 100, 3)])
    assert np.array_equal(alone, scores[::3])
    order = np.random.default_rng(0).permutation(100)
    assert np.array_equal(fitted.anomaly_score(strange[order]), scores[order])
    assert np.array_equal(fitted.anomaly_score(strange[30:47]), scores[30:47])
    assert np.array_equal(fitted.anomaly_score(np.repeat(strange[:1], 33, axis=0)), np.repeat(scores[0], 33))


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1000])
def test_any_chunk_size(fitted: PTAD, strange: Rows, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    expected, parts, latent = fitted.anomaly_score(strange), fitted.score_parts(strange), fitted.transform(strange)
    contributions = fitted.explain(strange).contribution_values
    monkeypatch.setattr(Scorer, "chunk_rows", property(lambda self: chunk))
    assert np.array_equal(fitted.anomaly_score(strange), expected)
    assert all(np.array_equal(value, parts[name]) for name, value in fitted.score_parts(strange).items())
    assert np.array_equal(fitted.transform(strange), latent)
    assert np.array_equal(fitted.explain(strange).contribution_values, contributions)


def test_chunks_bound_the_memory(detector: PTAD) -> None:
    scorer = detector.scorer_
    branches = scorer.network.config.n_branches
    per_row = scorer.network.n_members * branches * scorer.network.backbone.latent_dim * 2
    assert 1 <= scorer.chunk_rows * per_row <= 2**22 + per_row


def test_batch_context_depends_on_the_batch(make_detector: Make, rows: Rows) -> None:
    model = make_detector(parameters={"context": "batch"}).fit(rows)
    reference = make_detector().fit(rows)
    assert not np.allclose(model.anomaly_score(rows), reference.anomaly_score(rows))
    neighbours = np.concatenate([rows[:1], rows[:20] + 5.0])
    assert model.anomaly_score(rows)[0] != model.anomaly_score(neighbours)[0]
    order = np.random.default_rng(0).permutation(64)  # one whole batch: the same rows in another order
    assert np.allclose(model.anomaly_score(rows[:64][order]), model.anomaly_score(rows[:64])[order], rtol=1e-6)


def test_reference_rows_come_from_the_training_rows(detector: PTAD, rows: Rows) -> None:
    encoded = detector.schema_.encode(rows)
    reference = detector.scorer_.reference_rows.numpy()
    assert reference.shape == (2, 32, 4)
    known = {row.tobytes() for row in encoded}
    assert all(row.astype(np.float32).tobytes() in known for row in reference.reshape(-1, 4))


def test_frozen_potentials_solve_the_transport_of_the_reference_rows(detector: PTAD) -> None:
    """PAPER-02: scoring the reference rows in the batch context of exactly these rows uses the same plan."""
    import torch

    from ptad.scoring.parts import solve_potentials

    scorer = detector.scorer_
    with torch.inference_mode():
        solved = solve_potentials(scorer.network, scorer._output(scorer.reference_rows, scorer.reference))
    assert torch.equal(solved.basis, scorer.potentials.basis)
    assert torch.equal(solved.prototype, scorer.potentials.prototype)
