"""What each part of the default preset adds: one taken away at a time."""

from __future__ import annotations

from typing import Any

from ptad.benchmark.experiments.variants import Experiment, Variant, all_tables


def _without(name: str, **config: Any) -> Variant:
    return Variant(name, "ptad", {"config": config} if config else {})


DEFAULT_PARTS = Experiment(
    "default-parts",
    "The default preset with one part taken away",
    (
        _without("default"),
        _without("without the network", network_weight=0.0, n_steps=1),
        _without("without retrieved rows", n_neighbours=0),
        _without("without hidden cells", hidden_rate=0.0, n_passes=0),
        _without("without P-space masks", projection_mask="none"),
        _without("without basis vectors and prototypes", basis_vectors=False, prototypes=False),
        _without("without the common unit", common_unit=False),
    ),
    all_tables(),
)
