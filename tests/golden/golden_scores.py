"""Scores of small networks whose numbers follow from a formula, in double precision.

Neither a generator nor training takes part, so the scores change only when the mathematics does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ptad.config import make_config
from ptad.model import Network
from ptad.scoring import Retrieval, Scorer, Space

Array = NDArray[np.float64]
SMALL = {"embedding_dim": 4, "n_heads": 2, "n_basis_vectors": 3, "n_prototypes": 2}
CASES: dict[str, dict[str, Any]] = {
    "paper": {},
    "product_min": {"matching": "product_min"},
    "factorised": {"abd_width": 6},
    "transformer_mse": {"backbone": "transformer", "basis_distance": "mse", "prototype_distance": "mse"},
    "mlp_single": {"backbone": "mlp", "projection_mask": "single"},
    "no_masks": {"data_mask": False, "projection_mask": "none"},
    "retrieval": {"n_neighbours": 3},
    "dense_passes": {"backbone": "dense", "dense_width": 6, "data_mask": False, "n_passes": 3},
    "npt_passes": {"n_passes": 3},
}
N_FEATURES, N_REFERENCE, N_ROWS = 5, 9, 7


def wave(shape: tuple[int, ...], phase: float) -> torch.Tensor:
    """Return numbers in [-1, 1] without any visible order."""
    n = int(np.prod(shape))
    return torch.from_numpy(np.sin(1.7 * np.arange(1, n + 1) ** 1.1 + phase)).reshape(shape)


def golden_scores(case: str) -> dict[str, list[float]]:
    """Return every part of the score of the fixed rows, averaged over two members, unrounded."""
    config = make_config("paper", {**SMALL, **CASES[case]})
    network = Network([torch.Generator()] * 2, N_FEATURES, config).double()
    for i, (name, parameter) in enumerate(network.named_parameters()):
        scale = 1.0 if name.startswith(("projection", "prototypes")) else 0.4
        parameter.data.copy_(scale * wave(tuple(parameter.shape), float(i)))
    bank = 2.0 * wave((20, N_FEATURES), 0.6)
    bank[3, 4] = float("nan")
    scorer = Scorer(
        network=network,
        reference_rows=2.0 * wave((2, N_REFERENCE, N_FEATURES), 0.3),
        missing_rate=torch.tensor([0.0, 0.5, 0.1, 0.0, 0.2], dtype=torch.float64),
        column_weight=torch.tensor([1.0, 0.5, 0.5, 1.0, 1.0], dtype=torch.float64),
        space=Space(
            centre=torch.tensor([0.1, 0.0, -0.2, 0.0, 0.3], dtype=torch.float64),
            unit=torch.tensor([2.0, 1.0, 0.5, 1.0, 1.0], dtype=torch.float64),
            pass_of=torch.tensor([[0, 1, 1, 2, 0], [1, 0, 0, 2, 2]]),
        )
        if config.n_passes
        else Space(torch.zeros(N_FEATURES), torch.ones(N_FEATURES)),
        retrieval=Retrieval(bank, config.n_neighbours, config.neighbour_ridge) if config.n_neighbours else None,
        network_factor=0.25 if config.n_neighbours else 1.0,
    )
    x = 2.0 * wave((N_ROWS, N_FEATURES), 0.9).float()
    x[2, 1] = x[4, 0] = float("nan")
    found: dict[str, list[float]] = {}
    for context in ("reference", "batch"):
        (judged,) = scorer._assess(x.numpy(), context)
        with torch.inference_mode():
            parts = {
                "reconstruction": judged.errors.sum(-1),
                "basis": judged.basis,
                "prototype": judged.prototype,
                "missing": judged.missing.sum(-1),
                "latent": judged.output.latent.sum(-1),
            }
            if judged.retrieved is not None:
                parts["neighbour"] = judged.retrieved.neighbour.sum(-1).unsqueeze(0)
                parts["local"] = judged.retrieved.local.sum(-1).unsqueeze(0)
        found |= {f"{context}.{name}": part.mean(0).tolist() for name, part in parts.items()}
    return found
