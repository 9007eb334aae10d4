"""Transport or squared distance for basis vectors and for prototypes: the paper's two-by-two table."""

from __future__ import annotations

from ptad.benchmark.experiments.variants import Experiment, paper_variant

DISTANCE = Experiment(
    "distance",
    "Transport or MSE for basis vectors and prototypes",
    tuple(
        paper_variant(f"basis {basis}, prototypes {prototypes}", basis_distance=basis, prototype_distance=prototypes)
        for basis in ("mse", "transport")
        for prototypes in ("mse", "transport")
    ),
)
