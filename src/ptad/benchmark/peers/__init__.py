"""The compared methods: one file each, one base class, one explicit registry.

>>> from ptad.benchmark.peers import make_peer
>>> make_peer("knn").fit(normal_rows).anomaly_score(rows)  # doctest: +SKIP

A new method is a file with a child of :class:`Peer` (or :class:`ptad.benchmark.peers.deep.DeepPeer`) and a line in
``PEERS``, which maps every name to a factory; any detector of PyOD is reached as ``pyod:NAME``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from ptad.benchmark.peers.base import Peer
from ptad.errors import SettingError

__all__ = ["CHEAP_PEERS", "DEEP_PEERS", "PAPER_PEERS", "PEERS", "Peer", "make_peer"]

Factory = Callable[..., Peer]


def _lazy(place: str, **fixed: Any) -> Factory:
    """Return a factory of a class of this package, which is imported when it is called; ``fixed`` are settings."""

    def make(**settings: Any) -> Peer:
        module, _, cls = place.partition(".")
        peer: Peer = getattr(import_module(f"ptad.benchmark.peers.{module}"), cls).make(**{**fixed, **settings})
        return peer

    return make


_neighbours = partial(_lazy, "neighbours.NearestNeighbours")


def _pyod(detector: str, **fixed: Any) -> Factory:
    return _lazy("pyod.PyodPeer", detector=detector, **fixed)


#: Every method by name, with the settings of the benchmark.
PEERS: dict[str, Factory] = {
    "knn": _neighbours(n_neighbors=5, summary="largest"),
    "iforest": _pyod("IForest"),
    "lof": _pyod("LOF", n_neighbors=20),
    "ocsvm": _pyod("OCSVM", max_rows=10_000),
    "gmm": _pyod("GMM", n_components=4),
    "deepsvdd": _lazy("deepsvdd.DeepSVDD"),
    "goad": _lazy("goad.Goad"),
    "neutralad": _lazy("neutralad.NeutralAD"),
    "icl": _lazy("icl.Icl"),
    "dte-c": _lazy("dte.DteC"),
    "npt-ad": _lazy("npt_ad.NptAD"),
    "mcm": _lazy("mcm.Mcm"),
    "mcm-npt": _lazy("mcm_npt.McmNpt"),
    "knn-minmax": _neighbours(n_neighbors=5, summary="largest", scaling="minmax"),
    "nn1-clipped": _neighbours(n_neighbors=1, summary="largest", scaling="minmax-clipped"),
    # PTAD's default clips at 1.0 as well, so that no difference comes from the clipping.
    "nn1-clip1": _neighbours(n_neighbors=1, summary="largest", scaling="minmax-clipped", clip=1.0),
    "nn1": _neighbours(n_neighbors=1, summary="largest"),
    "dte-np": _neighbours(n_neighbors=5, summary="mean"),
    "autoencoder": _lazy("autoencoder.Autoencoder"),
    "pca": _lazy("pca.PrincipalResidual"),
    "ecod": _pyod("ECOD"),
    "copod": _pyod("COPOD"),
    "hbos": _pyod("HBOS"),
    "inne": _pyod("INNE"),
    "pyod-pca": _pyod("PCA"),
    "ptad": _lazy("ptad.PtadPeer"),
    "ptad-paper": _lazy("ptad.PtadPeer", preset="paper"),
}

#: The thirteen methods that the paper compares with, in the order of its tables.
PAPER_PEERS: tuple[str, ...] = tuple(PEERS)[:13]

#: Methods without training, quick enough for hundreds of tables.
CHEAP_PEERS: tuple[str, ...] = (
    *("knn", "iforest", "lof", "ocsvm", "gmm", "ecod", "copod", "hbos", "inne", "pyod-pca"),
    *("nn1", "nn1-clip1", "dte-np", "ptad"),
)
DEEP_PEERS: tuple[str, ...] = (
    *("mcm", "dte-c", "npt-ad", "icl", "neutralad", "goad", "deepsvdd", "mcm-npt", "ptad-paper"),
)


def make_peer(name: str, random_state: int = 0, device: str = "cpu", **settings: Any) -> Peer:
    """Return an unfitted method by its registered name, or ``pyod:NAME`` for any detector of PyOD.

    The registered settings are those of the benchmark. Methods that know only the CPU ignore the device.
    """
    if name.startswith("pyod:"):
        return _pyod(name.removeprefix("pyod:"))(random_state=random_state, device=device, **settings)
    if name not in PEERS:
        raise SettingError(
            f"There is no method {name!r}. Choose from: {', '.join(PEERS)}, or pyod:NAME for a detector of PyOD."
        )
    try:
        return PEERS[name](name=name, random_state=random_state, device=device, **settings)
    except TypeError as error:
        raise SettingError(f"The method {name!r} does not take these settings: {error}.") from error
