"""Every registered detector keeps the contract, at tiny settings; one that does not is caught."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import peer_checks
import pytest

from ptad.benchmark.peers import PEERS, make_peer

# Small enough for one core, large enough to learn the planted data.
SMALL_NET = {"embedding_dim": 4, "n_heads": 2, "dropout": 0.0}
TINY_PTAD = {**SMALL_NET, "n_basis_vectors": 2, "n_prototypes": 2, "n_steps": 40, "batch_size": 64}
TINY_PTAD = {f"network.{name}": value for name, value in {**TINY_PTAD, "n_reference": 64, "interval": 10}.items()}
TINY: dict[str, dict[str, Any]] = {
    "deepsvdd": {"training": {"epochs": 15}},
    "autoencoder": {"training": {"epochs": 40}},
    "goad": {"n_maps": 16, "map_dim": 8, "training": {"epochs": 20}},
    "neutralad": {"n_views": 5, "hidden": 16, "training": {"epochs": 20}},
    "icl": {"training": {"epochs": 25}},
    "dte-c": {"training": {"epochs": 25, "learning_rate": 1e-3}},
    "npt-ad": {"network": SMALL_NET, "training": {"steps": 60, "log_every": 10}, "n_layers": 1},
    "mcm": {"n_masks": 3, "training": {"epochs": 60, "log_every": 10, "learning_rate": 0.01}},
    "mcm-npt": {"n_masks": 3, "network": SMALL_NET, "training": {"steps": 40, "log_every": 10, "batch_size": 64}},
    "ptad-paper": {"config": TINY_PTAD},
}


def factory(name: str) -> peer_checks.PeerFactory:
    return functools.partial(_make, name, TINY.get(name, {}))


def _make(name: str, settings: dict[str, Any], random_state: int) -> Any:
    return make_peer(name, random_state=random_state, **settings)


@pytest.mark.parametrize("name", [*PEERS, "pyod:MCD"])
@pytest.mark.parametrize("check", peer_checks.CHECKS)
def test_contract(name: str, check: str) -> None:
    if check == "loss_fell":
        peer_checks.check_loss_fell(factory(name), trained=name in TINY)
    else:
        peer_checks.CHECKS[check](factory(name))


def at_start(name: str) -> peer_checks.PeerFactory:
    """The same method without training; PTAD refuses that, so it makes one step too small to matter."""
    settings = dict(TINY[name])
    if "config" in settings:
        settings["config"] = settings["config"] | {
            "network.n_steps": 1,
            "network.learning_rate": 1e-5,
            "network.warmup_epochs": 0,
        }
    else:
        settings["training"] = settings["training"] | (
            {"steps": 0} if "steps" in settings["training"] else {"epochs": 0}
        )
    return functools.partial(_make, name, settings)


@pytest.mark.parametrize("name", TINY)
def test_better_than_random_start(name: str) -> None:
    peer_checks.check_better_than_start(factory(name), at_start(name))


def test_a_net_that_never_trained_is_caught() -> None:
    with pytest.raises(peer_checks.ContractError, match="at the random start"):
        peer_checks.check_better_than_start(at_start("goad"), at_start("goad"))
    with pytest.raises(peer_checks.ContractError, match="keeps its losses"):
        peer_checks.check_loss_fell(at_start("goad"), trained=True)


class _Broken:
    """A detector with one fault at a time."""

    name, own_scaling, n_parameters_, capped_ = "broken", False, 0, ""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.batch_dependent = False
        self.history_: list[dict[str, float]] = [{"loss": 1.0}, {"loss": 2.0 if fault == "loss_fell" else 0.5}]

    def params(self) -> dict[str, Any]:
        return {}

    def fit(self, X: Any) -> _Broken:
        if self.fault == "input_untouched":
            X[0, 0] = 1e6
        return self

    def anomaly_score(self, X: Any) -> Any:
        scores = np.linalg.norm(np.asarray(X), axis=1)
        if self.fault == "scores_usable":
            return np.zeros(len(scores))
        if self.fault == "finds_planted":
            return -scores
        if self.fault == "same_seed_same_scores":
            return scores + np.random.default_rng().normal(size=len(scores))
        if self.fault == "batch_dependence_declared":
            return scores - scores.mean()
        return scores


@pytest.mark.parametrize("fault", peer_checks.CHECKS)
def test_each_check_catches_its_fault(fault: str) -> None:
    with pytest.raises(peer_checks.ContractError):
        peer_checks.CHECKS[fault](lambda seed: _Broken(fault))
    others = [check for name, check in peer_checks.CHECKS.items() if name != fault]
    if fault == "same_seed_same_scores":  # noise between calls is batch dependence as well
        others.remove(peer_checks.check_batch_dependence_declared)
    if fault == "scores_usable":  # a constant finds nothing either
        others.remove(peer_checks.check_finds_planted)
    for check in others:
        check(lambda seed: _Broken(fault))
