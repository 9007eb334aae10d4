"""Losses and scores of the deep peers against independent few-line numpy formulas on tiny tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ptad.benchmark.peers.deep import TrainingSettings
from ptad.benchmark.peers.deepsvdd import DeepSVDD, push_from_zero
from ptad.benchmark.peers.dte import DteC, noise_scale
from ptad.benchmark.peers.goad import Goad, centre_score, triplet_centre_loss
from ptad.benchmark.peers.icl import matching_loss, run_indices, run_length
from ptad.benchmark.peers.mcm import MaskGenerators, Mcm, diversity_loss, reconstruction_error
from ptad.benchmark.peers.neutralad import NeutralAD, contrastive_loss
from ptad.benchmark.peers.npt_ad import masked_error

RNG = np.random.default_rng(0)


def unit(a: np.ndarray) -> np.ndarray:
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def test_triplet_centre_loss() -> None:
    views = RNG.normal(size=(3, 4, 2))
    centres = views.mean(axis=0)
    terms = []
    for n in range(3):
        for m in range(4):
            distance = ((views[n, m] - centres) ** 2).sum(axis=1)
            terms.append(max(0.0, distance[m] + 1.0 - np.delete(distance, m).min()))
    assert float(triplet_centre_loss(torch.tensor(views), 1.0)) == pytest.approx(np.mean(terms), abs=1e-9)


def test_goad_loss_adds_a_tenth_of_the_triplet_term() -> None:
    peer = Goad(n_maps=4, map_dim=3, training=TrainingSettings(epochs=0)).fit(RNG.normal(size=(10, 5)))
    batch = torch.tensor(RNG.normal(size=(6, 5)), dtype=torch.float32)
    with torch.no_grad():
        views, logits = peer._module(batch)
        loss = float(peer._loss(batch, torch.Generator()))
        triplet = float(triplet_centre_loss(views, 1.0))
    assert views.shape == (6, 4, 8) and triplet > 0
    chance = np.exp(logits.double().numpy())
    chance /= chance.sum(axis=2, keepdims=True)
    entropy = -np.log(np.diagonal(chance, axis1=1, axis2=2)).mean()  # view m is to be told as map m
    assert loss == pytest.approx(entropy + 0.1 * triplet, rel=1e-5)


def test_goad_score_uses_the_fitted_centres() -> None:
    views, centres = RNG.normal(size=(2, 3, 2)), RNG.normal(size=(3, 2))
    expected = []
    for n in range(2):
        total = 0.0
        for m in range(3):
            weight = np.exp(-((views[n, m] - centres) ** 2).sum(axis=1))
            total -= np.log(weight[m] / weight.sum())
        expected.append(total)
    assert centre_score(torch.tensor(views), torch.tensor(centres)).numpy() == pytest.approx(expected, abs=1e-9)


def test_neutralad_contrastive_loss() -> None:
    encoded = RNG.normal(size=(2, 4, 5))
    z = unit(encoded)
    expected = []
    for n in range(2):
        total = 0.0
        for v in (1, 2, 3):
            similarity = np.exp(z[n, v] @ z[n].T / 0.1)
            total -= np.log(similarity[0] / (similarity.sum() - similarity[v]))
        expected.append(total / abs(3 * np.log(1 / 3)))
    assert contrastive_loss(torch.tensor(encoded), 0.1).numpy() == pytest.approx(expected, rel=1e-9)


def test_neutralad_views_are_the_row_and_the_row_plus_a_change() -> None:
    peer = NeutralAD(n_views=3, hidden=7, training=TrainingSettings(epochs=0)).fit(RNG.normal(size=(10, 4)))
    x = RNG.normal(size=(5, 4)).astype(np.float32)
    views = [x]
    for first, second in zip(peer._module.first, peer._module.second, strict=True):
        hidden = x @ first.detach().numpy()
        views.append(x + np.where(hidden > 0, hidden, 0.01 * hidden) @ second.detach().numpy())
    with torch.no_grad():
        encoded = peer._module.encoder(torch.tensor(np.stack(views, axis=1)))
    assert encoded.shape == (5, 4, 128)
    assert peer.anomaly_score(x) == pytest.approx(contrastive_loss(encoded, 0.1).numpy(), rel=1e-4)


def test_icl_matching_loss_and_runs() -> None:
    left, right = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 3, 4))
    expected = []
    for n in range(2):
        logits = unit(left[n]) @ unit(right[n]).T / 0.5
        probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        expected.append(-np.log(np.diag(probability)).mean())
    assert matching_loss(torch.tensor(left), torch.tensor(right), 0.5).numpy() == pytest.approx(expected, rel=1e-9)
    over_runs = [np.linalg.norm(a, axis=1, keepdims=True) for a in (left, right)]
    quirk = matching_loss(torch.tensor(left), torch.tensor(right), 0.5, axis=1).numpy()
    for n in range(2):
        logits = (left[n] / over_runs[0][n]) @ (right[n] / over_runs[1][n]).T / 0.5
        assert quirk[n] == pytest.approx((np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)).mean(), rel=1e-9)
    inside, outside = run_indices(5, 2)
    assert inside.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert outside.tolist() == [[2, 3, 4], [0, 3, 4], [0, 1, 4], [0, 1, 2]]


@pytest.mark.parametrize(
    ("n_features", "length"),
    [(2, 1), (3, 2), (40, 2), (41, 10), (160, 10), (161, 11), (274, 74), (481, 81), (500, 100)],
)
def test_icl_run_length(n_features: int, length: int) -> None:
    assert run_length(n_features) == length
    assert n_features - length + 1 <= 401


def test_dte_noise_and_loss() -> None:
    beta = np.linspace(1e-4, 1e-2, 400)
    assert noise_scale(400).numpy() == pytest.approx(np.sqrt(1 - np.cumprod(1 - beta)), rel=1e-6)
    logits = np.array([[2.0, 0.0, -1.0], [0.5, 0.5, 3.0]])
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    target = np.array([0, 1])
    plain = -np.log(softmax[[0, 1], target]).mean()
    twice = np.exp(softmax) / np.exp(softmax).sum(axis=1, keepdims=True)
    double = -np.log(twice[[0, 1], target]).mean()
    for flag, expected in ((False, plain), (True, double)):
        loss = DteC(double_softmax=flag)._cross_entropy(torch.tensor(logits), torch.tensor(target))
        assert float(loss) == pytest.approx(expected, rel=1e-9)


def test_dte_loss_diffuses_by_the_drawn_time() -> None:
    peer = DteC(training=TrainingSettings(epochs=0)).fit(RNG.normal(size=(10, 3)))
    batch = torch.tensor(RNG.normal(size=(8, 3)), dtype=torch.float32)
    generator = torch.Generator().manual_seed(4)
    time = torch.randint(0, 400, (8,), generator=generator)
    noise = torch.randn(8, 3, generator=generator)
    beta = np.linspace(1e-4, 1e-2, 400)
    scale = np.sqrt(1 - np.cumprod(1 - beta))[time.numpy(), None]
    diffused = torch.tensor(batch.numpy() + scale * noise.numpy(), dtype=torch.float32)
    with torch.no_grad():
        expected = peer._cross_entropy(peer._module(diffused), torch.tensor(time.numpy() // (400 / 7)).long())
        loss = peer._loss(batch, torch.Generator().manual_seed(4))
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)


def test_dte_score_is_the_expected_bin() -> None:
    train = RNG.normal(size=(20, 3))
    peer = DteC(training=TrainingSettings(epochs=0)).fit(train)
    logits = peer._module(torch.tensor(train, dtype=torch.float32)).detach().double().numpy()
    probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert peer.anomaly_score(train) == pytest.approx(probability @ np.arange(7), rel=1e-5)


def test_mcm_losses() -> None:
    x, reconstructions = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 4, 3))
    error = np.linalg.norm(reconstructions - x[:, None], axis=2).mean(axis=1)
    assert reconstruction_error(torch.tensor(x), torch.tensor(reconstructions)).numpy() == pytest.approx(error)
    masks = RNG.uniform(size=(2, 4, 3))
    z = unit(masks)
    expected = []
    for n in range(2):
        similarity = np.exp(z[n] @ z[n].T / 0.1)
        others = similarity.sum(axis=1) - np.diag(similarity)
        expected.append(np.log(others).sum() / abs(3 * np.log(1 / 3)))
    assert diversity_loss(torch.tensor(masks), 0.1).numpy() == pytest.approx(expected, rel=1e-9)


def test_mcm_loss_is_the_error_plus_weighted_diversity() -> None:
    peer = Mcm(n_masks=4, training=TrainingSettings(epochs=0)).fit(RNG.normal(size=(10, 3)))
    batch = torch.tensor(RNG.normal(size=(6, 3)), dtype=torch.float32)
    with torch.no_grad():
        raw = peer._module.masks(batch)
        restored = [peer._module.decoder(peer._module.encoder(batch * raw[:, m].sigmoid())) for m in range(4)]
        error = torch.stack([(output - batch).norm(dim=1) for output in restored], 1).mean(1)
        loss = float(peer._loss(batch, torch.Generator()))
    assert peer.anomaly_score(batch.numpy()) == pytest.approx(error.numpy(), rel=1e-5)
    assert loss == pytest.approx(float(error.mean() + 5.0 * diversity_loss(raw, 0.1).mean()), rel=1e-5)


def test_mcm_batched_masks_equal_separate_nets() -> None:
    net = MaskGenerators(3, 2, torch.Generator().manual_seed(0))
    x = RNG.normal(size=(5, 3)).astype(np.float32)
    raw_masks = net(torch.tensor(x)).detach().numpy()
    for m in range(2):
        a, b, c = (w[m].detach().numpy() for w in (net.first, net.second, net.third))
        hidden = np.maximum(np.maximum(x @ a, 0) @ b, 0)
        assert raw_masks[:, m] == pytest.approx(hidden @ c, rel=1e-4, abs=1e-6)


def test_npt_ad_error_counts_hidden_cells_only() -> None:
    x, restored = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.0, 9.0], [3.0, 1.0]])
    hidden = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert float(masked_error(x, restored, hidden)) == pytest.approx((1.0 + 9.0) / 2)


def test_deepsvdd_centre_and_score() -> None:
    assert push_from_zero(torch.tensor([0.05, -0.02, 0.0, 0.5, -0.3])).tolist() == pytest.approx(
        [0.1, -0.1, 0.1, 0.5, -0.3]
    )
    train = RNG.normal(size=(30, 4)).astype(np.float32)
    peer = DeepSVDD(training=TrainingSettings(epochs=0)).fit(train)
    hidden = train
    for layer in (0, 2, 4):
        hidden = hidden @ peer._module[layer].weight.detach().numpy().T
        if layer < 4:
            hidden = np.where(hidden > 0, hidden, 0.01 * hidden)
    centre = hidden.mean(axis=0)
    centre = np.where(np.abs(centre) < 0.1, np.where(centre < 0, -0.1, 0.1), centre)
    assert peer.anomaly_score(train) == pytest.approx(((hidden - centre) ** 2).sum(axis=1), rel=1e-4)
