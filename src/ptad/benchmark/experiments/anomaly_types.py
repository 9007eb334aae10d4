"""All methods on four synthetic kinds of anomalies made from cardiotocography."""

from __future__ import annotations

from ptad.benchmark.experiments.synthetic import KINDS, synthesise
from ptad.benchmark.experiments.variants import Experiment, Variant
from ptad.benchmark.loading import Dataset
from ptad.benchmark.peers import peer_names
from ptad.benchmark.runner import Loader


def synthetic_loader(real: Loader) -> Loader:
    """Understands ``TABLE:KIND``, such as ``cardiotocography:local``; a plain name is the real table."""

    def load(name: str, seed: int) -> Dataset:
        table, colon, kind = name.partition(":")
        data = real(table, seed)
        return synthesise(data, kind, seed) if colon else data

    return load


ANOMALY_TYPES = Experiment(
    "anomaly-types",
    "Local, global, dependency and clustered anomalies",
    tuple(Variant(name, name) for name in peer_names()),
    tuple(f"cardiotocography:{kind}" for kind in KINDS),
    synthetic_loader,
)
