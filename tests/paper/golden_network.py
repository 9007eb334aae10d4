"""Scores of small networks whose numbers follow from a formula, in double precision.

Neither a generator nor training takes part, so the scores change only when the mathematics does. Run as a program, it
writes the golden scores anew, after a change that is meant to alter numbers: ``make golden``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ptad.paper.network import Network
from ptad.paper.scores import Scorer
from ptad.paper.settings import NetworkSettings

FILE = Path(__file__).with_name("golden_network.json")
SMALL = {"embedding_dim": 4, "n_heads": 2, "n_basis_vectors": 3, "n_prototypes": 2}
CASES: dict[str, dict[str, Any]] = {
    "paper": {},
    "product_min": {"matching": "product_min"},
    "factorised": {"abd_width": 6},
    "transformer_mse": {"backbone": "transformer", "basis_distance": "mse", "prototype_distance": "mse"},
    "mlp_single": {"backbone": "mlp", "projection_mask": "single"},
    "no_masks": {"data_mask": False, "projection_mask": "none"},
}
N_FEATURES, N_REFERENCE, N_ROWS = 5, 9, 7


def wave(shape: tuple[int, ...], phase: float) -> torch.Tensor:
    """Return numbers in [-1, 1] without any visible order."""
    n = int(np.prod(shape))
    return torch.from_numpy(np.sin(1.7 * np.arange(1, n + 1) ** 1.1 + phase)).reshape(shape)


def golden_scores(case: str) -> dict[str, list[float]]:
    """Return every part of the score of the fixed rows, unrounded."""
    indicator_errors = (
        torch.tensor([0.0, 0.125, 0.005, 0.0, 0.04], dtype=torch.float64),
        torch.tensor([1.0, 0.125, 0.405, 1.0, 0.64], dtype=torch.float64),
    )
    x = 2.0 * wave((N_ROWS, N_FEATURES), 0.9)
    x[2, 1] = x[4, 0] = float("nan")
    found: dict[str, list[float]] = {}
    for context in ("reference", "batch"):
        settings = NetworkSettings(**{**SMALL, **CASES[case], "context": context})
        network = Network(torch.Generator(), N_FEATURES, settings).double()
        for i, (name, parameter) in enumerate(network.named_parameters()):
            scale = 1.0 if name.startswith(("projection", "prototypes")) else 0.4
            parameter.data.copy_(scale * wave(tuple(parameter.shape), float(i)))
        scores = Scorer(network, 2.0 * wave((N_REFERENCE, N_FEATURES), 0.3), indicator_errors)(x)
        parts = {
            "reconstruction": scores.errors.sum(-1),
            "basis": scores.basis.value,
            "prototype": scores.prototype.value,
            "missing": scores.missing.sum(-1),
            "latent": scores.output.latent.sum(-1),
        }
        found |= {f"{context}.{name}": part.tolist() for name, part in parts.items()}
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps({case: golden_scores(case) for case in CASES}, indent=1) + "\n")
