"""A row has one score: alone, in any batch, order or chunk; and what the other context does instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from batches import batch
from numpy.typing import NDArray

from ptad.paper.scores import Scorer, solve_potentials
from ptad.terms.network import NetworkTerm

Fit = Callable[..., NetworkTerm]
Rows = NDArray[np.float64]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"backbone": "transformer"},
    {"backbone": "mlp"},
    {"projection_mask": "random"},
    {"matching": "product_min"},
]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def fitted(request: pytest.FixtureRequest, fit_term: Fit, rows: Rows) -> NetworkTerm:
    return fit_term(rows, **request.param)


@pytest.fixture(scope="module")
def unusual(rows: Rows) -> Rows:
    """The rows, some of them far away, some with missing cells."""
    x = rows.copy()
    x[:10] += 3.0
    x[5:20, 1] = np.nan
    x[20] = np.nan
    return x


def test_alone_in_any_batch_and_in_any_order(fitted: NetworkTerm, unusual: Rows) -> None:
    value = fitted.value(batch(unusual))
    alone = np.concatenate([fitted.value(batch(unusual[i : i + 1])) for i in range(0, 100, 3)])
    assert np.array_equal(alone, value[::3])
    order = np.random.default_rng(0).permutation(100)
    assert np.array_equal(fitted.value(batch(unusual[order])), value[order])
    assert np.array_equal(fitted.value(batch(unusual[30:47])), value[30:47])
    assert np.array_equal(fitted.value(batch(np.repeat(unusual[:1], 33, axis=0))), np.repeat(value[0], 33))


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1000])
def test_any_chunk_size(fitted: NetworkTerm, unusual: Rows, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    expected, latent = fitted.value(batch(unusual)), fitted.transform(batch(unusual))
    found = fitted.explain(batch(unusual))
    monkeypatch.setattr(Scorer, "chunk_rows", chunk)
    assert np.array_equal(fitted.value(batch(unusual)), expected)
    assert np.array_equal(fitted.transform(batch(unusual)), latent)
    again = fitted.explain(batch(unusual))
    assert np.array_equal(again.shares, found.shares) and np.array_equal(again.expected, found.expected)


@pytest.mark.parametrize("fields", [{}, {"embedding_dim": 32}, {"backbone": "mlp"}], ids=str)
def test_chunks_bound_the_memory(fit_term: Fit, rows: Rows, fields: dict[str, Any]) -> None:
    scorer = fit_term(rows, n_steps=1, **fields).scorer
    per_row = 5 * scorer.network.backbone.latent_dim * 4
    assert 1 <= scorer.chunk_rows * per_row <= 2**22 + per_row


def test_batch_context_depends_on_the_batch(fit_term: Fit, term: NetworkTerm, rows: Rows) -> None:
    together = fit_term(rows, context="batch")
    assert together.batch_size == 64 and term.batch_size is None
    assert not np.allclose(together.value(batch(rows)), term.value(batch(rows)))
    neighbours = np.concatenate([rows[:1], rows[:20] + 5.0])
    assert together.value(batch(rows))[0] != together.value(batch(neighbours))[0]
    order = np.random.default_rng(0).permutation(64)  # one whole batch: the same rows in another order
    assert np.allclose(together.value(batch(rows[:64][order])), together.value(batch(rows[:64]))[order], rtol=1e-6)
    assert np.array_equal(together.value(batch(rows))[64:], together.value(batch(rows[64:])))


def test_the_context_changes_nothing_about_training(fit_term: Fit, term: NetworkTerm, rows: Rows) -> None:
    together = fit_term(rows, context="batch").state()
    assert all(np.array_equal(array, together[name]) for name, array in term.state().items())


def test_reference_rows_come_from_the_reference(term: NetworkTerm, rows: Rows) -> None:
    assert term.reference.shape == (32, 4) and len(set(term.reference_index)) == 32
    assert torch.equal(term.reference, term.encoding.encode(rows)[term.reference_index])


def test_frozen_potentials_solve_the_transport_of_the_reference_rows(term: NetworkTerm) -> None:
    """PAPER-02: scoring the reference rows in the batch context of exactly these rows uses the same plan."""
    scorer = term.scorer
    with torch.no_grad():
        solved = solve_potentials(scorer.network, scorer.network(term.reference.double()))
    assert scorer.potentials is not None
    assert torch.equal(solved.basis, scorer.potentials.basis)
    assert torch.equal(solved.prototype, scorer.potentials.prototype)


def test_permuted_columns(make_network: Callable[..., Any]) -> None:
    """Permuting columns together with everything that belongs to them permutes the reconstructions."""
    network = make_network(3, backbone="transformer", data_mask=False, projection_mask="none")
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before, order = network(x).reconstructions, [2, 0, 1]
    with torch.no_grad():
        for module in (network.backbone.embedding, network.backbone.readout):
            for name in ("value", "missing", "weight", "bias"):
                if hasattr(module, name):
                    parameter = getattr(module, name)
                    parameter.copy_(parameter[order].clone())
    assert torch.allclose(network(x[:, order]).reconstructions, before[..., order], atol=1e-12)
