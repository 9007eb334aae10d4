"""The paper's further experiments as lists of variants, and how far scores of the paper preset depend on the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ptad.benchmark.collections import load_dataset
from ptad.benchmark.experiments.base import FOUR_TABLES, Experiment, Measurement, paper_variant
from ptad.benchmark.loading import Dataset, half_split
from ptad.benchmark.peers import PEERS, make_peer
from ptad.benchmark.peers.base import batch_dependence
from ptad.benchmark.plan import RunSettings, Variant
from ptad.benchmark.runner import Loader
from ptad.synthetic import ANOMALY_TYPES, drawn_table

_NOTHING = {"data_mask": False, "projection_mask": "none", "prototypes": False, "orthogonality": False}
_DATA_MASK = {**_NOTHING, "data_mask": True}
_WEIGHTS = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)
BATCH_TABLE, N_BATCH_ROWS = "cardio", 400


def _backbones() -> Iterator[Variant]:
    """Yield each backbone plain, with masks, with prototypes, with both; prototypes need attention between columns."""
    for backbone, masks, prototypes in product(("mlp", "transformer", "npt"), (False, True), (False, True)):
        if backbone != "mlp" or not prototypes:
            parts = [name for name, on in (("masks", masks), ("prototypes", prototypes)) if on]
            yield paper_variant(
                f"{backbone}, {' and '.join(parts) or 'plain'}",
                backbone=backbone,
                data_mask=masks,
                projection_mask="multiple" if masks else "none",
                orthogonality=masks,
                prototypes=prototypes,
            )


def synthetic_loader(real: Loader) -> Loader:
    """Return a loader of ``TABLE:KIND``, such as ``cardiotocography:local``; a plain name is the real table.

    A synthetic table has as many normal rows and anomalies as the real one.
    """

    def load(name: str, seed: int) -> Dataset:
        table, colon, kind = name.partition(":")
        data = real(table, seed)
        if not colon:
            return data
        X, y = drawn_table(kind, data.X[~data.y].astype(np.float64), int(data.y.sum()), seed)
        return Dataset(name, X.astype(np.float32), y)

    return load


def batch_dependence_rows(
    directory: Path, out: Path, settings: RunSettings, config: Mapping[str, Any] | None = None
) -> Iterator[dict[str, str]]:
    """Yield how far scores change with the batch, in units of their spread, for both contexts."""
    data = load_dataset(directory, BATCH_TABLE)
    split = half_split(data.y, 0)
    train, test = data.X[split.train], data.X[split.test[:N_BATCH_ROWS]]
    head = f"largest change of a score with the batch, share of the scores' spread ({BATCH_TABLE})"
    for context in ("reference", "batch"):
        chosen = {"network.context": context, **(config or {})}
        peer = make_peer("ptad-paper", device=settings.device, config=chosen).fit(train)
        yield {"Variant": context, head: f"{batch_dependence(peer, test):.2g}"}


BATCH_DEPENDENCE = Measurement("Change of scores with the batch", batch_dependence_rows)

PAPER_EXPERIMENTS = (
    Experiment(
        "ablation",
        "Ablation of masks, association prototypes and orthogonality",
        (
            paper_variant("nothing", **_NOTHING),
            paper_variant("data mask", **_DATA_MASK),
            paper_variant("+ single mask", **_DATA_MASK | {"projection_mask": "single"}),
            paper_variant(
                "+ multiple masks, orthogonal", **_DATA_MASK | {"projection_mask": "multiple", "orthogonality": True}
            ),
            paper_variant("+ random mask", **_DATA_MASK | {"projection_mask": "random"}),
            paper_variant("+ prototypes", **_DATA_MASK | {"prototypes": True}),
            paper_variant(
                "+ multiple masks, prototypes", **_DATA_MASK | {"projection_mask": "multiple", "prototypes": True}
            ),
            paper_variant("full"),
        ),
    ),
    Experiment("backbones", "Backbones with and without masks and prototypes", tuple(_backbones())),
    Experiment(
        "counts",
        "Number of basis vectors (K) and prototypes (M)",
        (
            *(paper_variant(f"K = {k}", n_basis_vectors=k) for k in range(1, 10)),
            *(paper_variant(f"M = {m}", n_prototypes=m) for m in range(1, 10)),
        ),
        FOUR_TABLES,
    ),
    Experiment(
        "weights",
        "Weights of orthogonality and of the calibration distances",
        (
            *(paper_variant(f"orthogonality {w:g}", orthogonality_weight=w) for w in _WEIGHTS),
            *(
                paper_variant(f"kappa = alpha = {w:g}", basis_score_weight=w, prototype_score_weight=w)
                for w in _WEIGHTS
            ),
        ),
        FOUR_TABLES,
    ),
    Experiment(
        "distance",
        "Transport or MSE for basis vectors and prototypes",
        tuple(
            paper_variant(f"basis {basis}, prototypes {other}", basis_distance=basis, prototype_distance=other)
            for basis, other in product(("mse", "transport"), repeat=2)
        ),
    ),
    Experiment(
        "anomaly-types",
        "Local, global, dependency and clustered anomalies",
        tuple(Variant(name, name) for name in PEERS),
        tuple(f"cardiotocography:{kind}" for kind in ANOMALY_TYPES),
        synthetic_loader,
    ),
    Experiment(
        "context",
        "Batch context against reference context",
        tuple(paper_variant(context, context=context) for context in ("reference", "batch")),
    ),
)
