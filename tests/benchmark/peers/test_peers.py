"""Registry, classical peers, the shared loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ptad.benchmark.peers import CHEAP_PEERS, DEEP_PEERS, PAPER_PEERS, PEERS, make_peer
from ptad.benchmark.peers.base import Peer
from ptad.benchmark.peers.deep import TrainingSettings, mlp, train
from ptad.benchmark.peers.dte import HalfDropout
from ptad.benchmark.peers.mcm import diversity_loss
from ptad.benchmark.peers.mcm_npt import McmNpt
from ptad.benchmark.peers.neighbours import nearest_distances
from ptad.benchmark.peers.npt_ad import NptAD, fit_batch
from ptad.benchmark.peers.pyod import PyodPeer
from ptad.errors import DataError, SettingError, TrainingError
from ptad.paper.attention import KeysValues
from ptad.paper.layers import Noise

RNG = np.random.default_rng(1)
TRAIN, TEST = RNG.normal(size=(80, 5)), RNG.normal(size=(30, 5)) * 1.5


def test_registry_is_complete() -> None:
    assert len(PAPER_PEERS) == 13
    assert {*CHEAP_PEERS, *DEEP_PEERS} <= set(PEERS)
    assert PAPER_PEERS[0] == "knn" and PAPER_PEERS[-1] == "mcm-npt"
    for name in PEERS:
        peer = make_peer(name)
        assert isinstance(peer, Peer)
        assert peer.name == name


def test_a_new_method_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Norm(Peer):
        def _fit(self, rows: Any) -> None:
            self._centre = rows.mean(axis=0)

        def _score(self, rows: Any) -> Any:
            return np.linalg.norm(rows - self._centre, axis=1)

    monkeypatch.setitem(PEERS, "norm", Norm.make)
    peer = make_peer("norm", random_state=3).fit(TRAIN)
    assert (peer.name, peer.params()) == ("norm", {}) and peer.anomaly_score(TEST).shape == (30,)


def test_unknown_method_lists_the_choices() -> None:
    with pytest.raises(SettingError, match=r"'knnn'.*knn, iforest.*pyod:NAME"):
        make_peer("knnn")
    with pytest.raises(SettingError, match="no detector 'NOPE'"):
        make_peer("pyod:NOPE")
    with pytest.raises(SettingError, match="does not take these settings"):
        make_peer("pca", colour="red")


@pytest.mark.parametrize("name", ["knn", "pca", "deepsvdd", "iforest"])
def test_bad_rows_are_named(name: str) -> None:
    bad = TRAIN.copy()
    bad[3, 2] = np.nan
    with pytest.raises(DataError, match="row 3, column 2"):
        make_peer(name).fit(bad)
    settings = {"training": {"epochs": 1}} if name == "deepsvdd" else {}
    with pytest.raises(DataError, match="fitted on 5 columns"):
        make_peer(name, **settings).fit(TRAIN).anomaly_score(TEST[:, :3])
    with pytest.raises(DataError, match="call fit first"):
        make_peer(name).anomaly_score(TEST)


def test_knn_equals_pyod() -> None:
    ours = make_peer("knn").fit(TRAIN).anomaly_score(TEST)
    theirs = make_peer("pyod:KNN", n_neighbors=5, method="largest").fit(TRAIN).anomaly_score(TEST)
    assert ours == pytest.approx(theirs, abs=1e-10)
    mean = make_peer("dte-np").fit(TRAIN).anomaly_score(TEST)
    theirs = make_peer("pyod:KNN", n_neighbors=5, method="mean").fit(TRAIN).anomaly_score(TEST)
    assert mean == pytest.approx(theirs, abs=1e-10)


def test_a_duplicate_row_has_distance_zero_and_k_is_limited() -> None:
    far = TRAIN + 1e4
    assert nearest_distances(far, far[:3], 1, "cpu")[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert nearest_distances(TRAIN[:2], TEST, 5, "cpu").shape == (30, 2)


def test_own_scaling_of_the_neighbour_peers() -> None:
    train = np.array([[0.0, 10.0], [1.0, 30.0], [0.5, 20.0]])
    test = np.array([[0.5, 1000.0]])
    clipped = make_peer("nn1-clipped").fit(train).anomaly_score(test)
    assert clipped[0] == pytest.approx(np.hypot(0.5, 0.5))  # the value is clipped to 1.5, the row (1, 1) is nearest
    wide = make_peer("nn1-clip1").fit(train).anomaly_score(test)
    assert wide[0] == pytest.approx(np.hypot(0.5, 1.0))  # clipped to 2.0 instead
    with pytest.raises(SettingError, match="'clip' parameter"):
        make_peer("nn1-clipped", clip=-1.0)
    plain = make_peer("knn-minmax", n_neighbors=1).fit(train).anomaly_score(test)
    assert plain[0] == pytest.approx(np.hypot(0.5, 49.5 - 1.0))
    assert make_peer("nn1-clipped").own_scaling and make_peer("knn-minmax").own_scaling
    assert not make_peer("knn").own_scaling


def test_pca_residual_by_hand() -> None:
    train = np.array([[-1.0, 0.1], [1.0, 0.1], [-1.0, -0.1], [1.0, -0.1]])
    score = make_peer("pca").fit(train).anomaly_score(np.array([[5.0, 0.0], [0.0, 2.0]]))
    assert score == pytest.approx([0.0, 4.0], abs=1e-12)
    with pytest.raises(SettingError, match="variance"):
        make_peer("pca", variance=1.5)


def test_pyod_row_cap_is_reported() -> None:
    peer = PyodPeer(detector="OCSVM", max_rows=20, random_state=0).fit(TRAIN)
    assert peer.capped_ == "fitted on 20 of 80 training rows"
    assert make_peer("ocsvm").fit(TRAIN).capped_ == ""
    with pytest.raises(SettingError, match="no option 'colour'"):
        make_peer("lof", colour=1).fit(TRAIN)


def test_step_cap_is_reported_and_learning_rate_decays() -> None:
    settings = TrainingSettings(epochs=10, batch_size=40, max_steps=5, decay=0.5, log_every=2)
    peer = make_peer("autoencoder", training=settings).fit(TRAIN)
    assert peer.capped_ == "trained 5 of 20 steps"
    assert [entry["step"] for entry in peer.history_] == [2.0, 4.0, 5.0]


def test_the_last_batch_of_an_epoch_is_filled_up() -> None:
    seen: list[list[float]] = []
    module = mlp((1, 1), torch.Generator().manual_seed(0), nn.ReLU())

    def loss(batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        seen.append(batch[:, 0].tolist())
        return module(batch).sum()

    rows = torch.arange(5.0).unsqueeze(1)
    train(module, loss, rows, TrainingSettings(epochs=2, batch_size=3), 0)
    assert [len(batch) for batch in seen] == [3, 3, 3, 3]
    for first, second in (seen[:2], seen[2:]):
        assert set(first + second) == {0.0, 1.0, 2.0, 3.0, 4.0} and second[-1] == first[0]


def test_one_adam_step_by_hand() -> None:
    """The first step of Adam moves every weight by the learning rate against the gradient's sign."""
    module = mlp((2, 1), torch.Generator().manual_seed(0), nn.ReLU())
    before = module[0].weight.detach().clone()
    rows = torch.tensor([[1.0, -2.0]])
    train(module, lambda batch, g: module(batch).sum(), rows, TrainingSettings(epochs=1, learning_rate=0.01), 0)
    assert (module[0].weight.detach() - before)[0].tolist() == pytest.approx([-0.01, 0.01], abs=1e-5)


def test_training_rules_and_failures() -> None:
    with pytest.raises(SettingError, match=r"'training\.batch_size'"):
        TrainingSettings(batch_size=0)
    with pytest.raises(SettingError, match=r"'training\.learning_rate'"):
        TrainingSettings(learning_rate=0)
    module = mlp((2, 1), torch.Generator().manual_seed(0), nn.ReLU())
    rows = torch.ones(4, 2)
    with pytest.raises(TrainingError, match=r"non-finite at step 1.*scale the columns"):
        train(module, lambda b, g: module(b).sum() * float("inf"), rows, TrainingSettings(epochs=1), 0)


def test_dropout_is_silent_outside_training() -> None:
    noise = Noise()
    layer = HalfDropout(noise)
    noise.generator = torch.Generator().manual_seed(0)
    x = torch.ones(1000)
    dropped = layer(x)
    assert set(dropped.tolist()) == {0.0, 2.0}
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.1)
    noise.generator = None
    assert torch.equal(layer(x), x)
    assert make_peer("dte-c", training={"epochs": 1}).fit(TRAIN)._noise.generator is None


def test_npt_ad_caps() -> None:
    settings, reason = fit_batch(TrainingSettings(batch_size=4096), 10_000, 500, 4)
    assert settings.batch_size == 200
    assert reason == "batches of 200 instead of 4096 rows"
    network = {"embedding_dim": 4, "n_heads": 2}
    peer = NptAD(n_context=20, max_subsets=2, network=network, training=TrainingSettings(steps=2)).fit(TRAIN)
    assert peer.capped_ == "20 of 80 training rows in the context; 2 of 5 columns hidden in turn"
    assert len(peer._columns) == 2


def test_a_narrower_attention_between_rows_is_reported() -> None:
    """Beyond the limit on columns times e the attention between rows is factorised, and the cell is marked."""
    network = {"embedding_dim": 32, "n_heads": 2, "abd_full_limit": 100}
    reason = "attention between rows at width 128 instead of 160"
    wide = NptAD(network=network, training=TrainingSettings(steps=1)).fit(TRAIN)
    assert wide.capped_ == reason and wide._module.layers[0].between_datapoints.factorised
    assert McmNpt(n_masks=2, network=network, training=TrainingSettings(steps=1)).fit(TRAIN).capped_ == reason
    tiny = {**network, "n_steps": 2, "batch_size": 64, "interval": 1}
    config = {f"network.{name}": value for name, value in tiny.items()}
    assert make_peer("ptad-paper", config=config).fit(TRAIN).capped_ == reason
    assert make_peer("ptad-paper", config={**config, "network.abd_full_limit": 160}).fit(TRAIN).capped_ == ""


def test_ptad_is_calibrated_and_the_paper_preset_is_not() -> None:
    peer = make_peer("ptad").fit(TRAIN)
    p_values = peer.p_value(peer.anomaly_score(TEST))
    assert p_values.shape == (30,) and p_values.min() >= 1 / 81 and p_values.max() <= 1.0
    assert peer.n_parameters_ == 0 and peer.history_ == []
    network = {"embedding_dim": 4, "n_heads": 2, "n_steps": 4, "interval": 2, "batch_size": 64}
    paper = make_peer("ptad-paper", config={f"network.{k}": v for k, v in network.items()}).fit(TRAIN)
    assert paper.p_value(paper.anomaly_score(TEST)) is None
    assert paper.n_parameters_ > 100 and len(paper.history_) == 2
    with pytest.raises(SettingError, match="no setting 'colour'"):
        make_peer("ptad", config={"colour": 1})


def test_npt_ad_score_by_hand() -> None:
    """The score is the sum over columns of the squared error when that column alone is hidden."""
    network = {"embedding_dim": 4, "n_heads": 2}
    peer = NptAD(n_layers=1, network=network, training=TrainingSettings(steps=2)).fit(TRAIN)
    row = torch.tensor(TEST[:1], dtype=torch.float32)
    total = 0.0
    for j in range(5):
        hidden = torch.zeros(1, 5)
        hidden[0, j] = 1.0
        shown = row.clone()
        shown[0, j] = 0.0
        with torch.no_grad():
            restored, _ = peer._module(shown, hidden, peer._references)
        total += float((restored[0, j] - row[0, j]) ** 2)
    assert peer.anomaly_score(TEST[:1])[0] == pytest.approx(total, rel=1e-5)


def test_mcm_npt_score_by_hand() -> None:
    """MCM's loss and score with NPT layers inside: every mask alone through the layers, then the mean of the norms."""
    network = {"embedding_dim": 4, "n_heads": 2, "dropout": 0.0}
    settings = {"n_masks": 3, "n_reference": 40, "network": network, "training": TrainingSettings(steps=2)}
    peer = McmNpt(**settings).fit(TRAIN)
    net = peer._module

    def restored(shown: torch.Tensor, seen: Any, mask: int) -> torch.Tensor:
        def of_mask(part: Any) -> Any:
            return None if part is None else KeysValues(part.keys[mask : mask + 1], part.values[mask : mask + 1])

        cells = net.npt.embedding(shown, torch.zeros_like(shown)).unsqueeze(0)
        for layer, part in zip(net.npt.layers, seen, strict=True):
            cells = layer(cells, of_mask(part))[0]
        return net.npt.readout(cells)[0]

    rows = torch.tensor(TEST[:6], dtype=torch.float32)
    with torch.no_grad():
        raw = net.masks(rows)
        outputs = [restored(rows * raw[:, m].sigmoid(), peer._reference, m) for m in range(3)]
        norms = torch.stack([(output - rows).norm(dim=1) for output in outputs], 1)
        alone = [restored(rows * raw[:, m].sigmoid(), (None, None), m) for m in range(3)]
        batch_norms = torch.stack([(output - rows).norm(dim=1) for output in alone], 1)
        loss = peer._loss(rows, torch.Generator().manual_seed(0))
    assert peer.anomaly_score(TEST[:6]) == pytest.approx(norms.mean(1).numpy(), rel=1e-4)
    diversity = float(diversity_loss(raw, 0.1).mean())
    assert float(loss) == pytest.approx(float(batch_norms.mean()) + 5.0 * diversity, rel=1e-4)


def test_autoencoder_score_by_hand() -> None:
    peer = make_peer("autoencoder", training={"epochs": 1}).fit(TRAIN)
    rows = TEST[:4].astype(np.float32)
    hidden = rows
    layers = [layer for layer in peer._module if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in layers] == [128, 64, 2, 64, 128, 5]
    for layer in layers:
        hidden = np.maximum(hidden, 0.0) if layer is not layers[0] else hidden
        hidden = hidden @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    assert peer.anomaly_score(TEST[:4]) == pytest.approx(((hidden - rows) ** 2).sum(axis=1), rel=1e-4)
