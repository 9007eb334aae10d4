"""The number of basis vectors K and of association prototypes M, from 1 to 9."""

from __future__ import annotations

from ptad.benchmark.experiments.variants import FOUR_TABLES, Experiment, paper_variant

COUNTS = Experiment(
    "counts",
    "Number of basis vectors (K) and prototypes (M)",
    (
        *(paper_variant(f"K = {k}", n_basis_vectors=k) for k in range(1, 10)),
        *(paper_variant(f"M = {m}", n_prototypes=m) for m in range(1, 10)),
    ),
    FOUR_TABLES,
)
