"""PTAD in the paper's batch context declares that a score depends on the batch, and it does."""

from __future__ import annotations

from typing import Any

from ptad.benchmark.contracts import check_batch_dependence_declared
from ptad.benchmark.peers import make_peer

NETWORK = {"embedding_dim": 4, "n_heads": 2, "n_steps": 10, "batch_size": 64, "context": "batch"}
CONFIG: dict[str, Any] = {f"network.{name}": value for name, value in NETWORK.items()}


def test_batch_context_is_declared() -> None:
    peer = make_peer("ptad-paper", config=CONFIG)
    assert peer.batch_dependent
    check_batch_dependence_declared(lambda seed: make_peer("ptad-paper", random_state=seed, config=CONFIG))
