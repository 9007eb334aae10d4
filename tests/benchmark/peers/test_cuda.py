"""On a GPU: the captured step does what the eager step does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ptad.benchmark.peers import make_peer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

SMALL = {"embedding_dim": 8, "n_heads": 2}
SETTINGS = {
    "deepsvdd": {},
    "autoencoder": {},
    "goad": {"n_maps": 16, "map_dim": 8},
    "neutralad": {},
    "icl": {},
    "dte-c": {},
    "mcm": {"n_masks": 4},
    "npt-ad": {"network": SMALL},
    "mcm-npt": {"network": SMALL, "n_masks": 3},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_graph_equals_eager(name: str) -> None:
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(300, 6)), rng.normal(size=(50, 6))
    found = {}
    for graph in (False, True):
        training = {"graph": graph, "steps": 80, "log_every": 20, "learning_rate": 1e-3}
        peer = make_peer(name, device="cuda", training=training, **SETTINGS[name]).fit(train)
        losses = [entry["loss"] for entry in peer.history_]
        assert np.isfinite(losses).all()
        found[graph] = (losses, peer.anomaly_score(test))
    if name in ("deepsvdd", "autoencoder", "goad", "neutralad", "icl", "mcm"):  # no noise inside the step
        assert found[True][0] == pytest.approx(found[False][0], rel=2e-2)
        assert np.corrcoef(found[True][1], found[False][1])[0, 1] > 0.99
