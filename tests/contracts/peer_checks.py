"""Checks that every compared method has to pass, few and cheap.

Each check takes a factory ``(random_state) -> Peer`` and raises :class:`ContractError` with the value that broke it. A
method that was never trained, or that returns a constant, fails them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ptad.arrays import Matrix
from ptad.benchmark.peers.base import Peer, batch_dependence

PeerFactory = Callable[[int], Peer]
#: The score of a row may move by this share of the scores' spread and still count as independent of the batch.
BATCH_TOLERANCE = 1e-4


class ContractError(AssertionError):
    """A method failed a check."""


def planted_anomalies(
    n_train: int = 200, n_test: int = 120, n_features: int = 6, seed: int = 0
) -> tuple[Matrix, Matrix, npt.NDArray[np.bool_]]:
    """Easy data: normal rows near a plane, anomalies far off it and spread out; (train, test, is_anomaly)."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0][:2]

    def normal(n: int) -> Matrix:
        return np.asarray(rng.normal(size=(n, 2)) @ directions + 0.15 * rng.normal(size=(n, n_features)))

    labels = np.zeros(n_test, dtype=bool)
    labels[: n_test // 4] = True
    test = normal(n_test)
    test[labels] = 3.0 * rng.normal(size=(int(labels.sum()), n_features))
    train = normal(n_train)
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return (train - mean) / deviation, (test - mean) / deviation, labels


def recombined_anomalies(seed: int = 0) -> tuple[Matrix, Matrix, npt.NDArray[np.bool_]]:
    """The same normal rows; anomalies hold half of one normal row and half of another.

    Each of their cells is ordinary, so distance from the centre, all that a random net sees, does not give them away.
    """
    train, test, labels = planted_anomalies(seed=seed)
    rng = np.random.default_rng([seed, 1])
    first, second = (train[rng.integers(len(train), size=int(labels.sum()))] for _ in range(2))
    n_features = train.shape[1]
    half = rng.permuted(np.tile(np.arange(n_features) < n_features // 2, (len(first), 1)), axis=1)
    test[labels] = np.where(half, first, second)
    return train, test, labels


def check_scores_usable(make: PeerFactory) -> None:
    """Finite, one per row, not constant."""
    train, test, _ = planted_anomalies()
    scores = make(0).fit(train).anomaly_score(test)
    _require(scores.shape == (len(test),), f"scores have shape {scores.shape} for {len(test)} rows")
    _require(scores.dtype == np.float64, f"scores are {scores.dtype}, not float64")
    _require(bool(np.isfinite(scores).all()), f"{int((~np.isfinite(scores)).sum())} scores are not finite")
    _require(len(np.unique(scores)) > len(test) // 2, f"only {len(np.unique(scores))} different scores")


def check_finds_planted(make: PeerFactory, at_least: float = 0.8) -> None:
    """AUC-ROC above 0.8 on easy planted anomalies."""
    auc = _auc(make(0), *planted_anomalies())
    _require(auc > at_least, f"AUC-ROC {auc:.3f} on easy planted anomalies, at least {at_least} is expected")


def check_loss_fell(make: PeerFactory, trained: bool = False) -> None:
    """The training loss went down; a method without losses passes, unless it is said to be ``trained``."""
    train, _, _ = planted_anomalies()
    history = [entry["loss"] for entry in make(0).fit(train).history_]
    _require(len(history) != 1, "one entry in the history: nothing to compare it with")
    _require(bool(history) or not trained, "a trained method keeps its losses in history_, and there are none")
    if history:
        _require(history[-1] < history[0], f"the training loss went from {history[0]:.4g} to {history[-1]:.4g}")


def check_better_than_start(make: PeerFactory, make_untrained: PeerFactory) -> None:
    """Better than the same method at its random start, mean over three seeds; on rows that a random net cannot tell."""
    trained, untrained = (
        float(np.mean([_auc(factory(seed), *recombined_anomalies()) for seed in range(3)]))
        for factory in (make, make_untrained)
    )
    _require(trained > untrained, f"AUC-ROC {trained:.3f} after training, {untrained:.3f} at the random start")


def check_same_seed_same_scores(make: PeerFactory) -> None:
    """The same seed gives the same scores, and the global generators stay where they were."""
    import torch

    train, test, _ = planted_anomalies()
    before = (_numpy_state(), torch.get_rng_state())
    first = make(3).fit(train).anomaly_score(test)
    after = (_numpy_state(), torch.get_rng_state())
    _require(before[0] == after[0], "numpy's global generator was moved")
    _require(bool(torch.equal(before[1], after[1])), "torch's global generator was moved")
    second = make(3).fit(train).anomaly_score(test)
    _require(bool(np.array_equal(first, second)), f"scores differ by up to {np.abs(first - second).max():.3g}")


def check_input_untouched(make: PeerFactory) -> None:
    """Neither fit nor scoring writes into the caller's rows."""
    train, test, _ = planted_anomalies()
    train_copy, test_copy = train.copy(), test.copy()
    make(0).fit(train).anomaly_score(test)
    _require(np.array_equal(train, train_copy), "fit changed the training rows")
    _require(np.array_equal(test, test_copy), "scoring changed the rows")


def check_batch_dependence_declared(make: PeerFactory) -> None:
    """Whether a score depends on the rows beside it is measured and must be what the method declares."""
    train, test, _ = planted_anomalies()
    peer = make(0).fit(train)
    moved = batch_dependence(peer, test)
    measured = moved > BATCH_TOLERANCE
    _require(
        measured == peer.batch_dependent,
        f"scores move by {moved:.3g} of their spread with the batch, but batch_dependent is {peer.batch_dependent}",
    )


#: Checks that need only the method itself, by name.
CHECKS: dict[str, Callable[[PeerFactory], None]] = {
    check.__name__.removeprefix("check_"): check
    for check in (
        *(check_scores_usable, check_finds_planted, check_loss_fell),
        *(check_same_seed_same_scores, check_input_untouched, check_batch_dependence_declared),
    )
}


def _numpy_state() -> str:
    return repr(np.random.get_state(legacy=False))  # noqa: NPY002 - that it stays put is what is checked


def _auc(peer: Peer, train: Matrix, test: Matrix, labels: npt.NDArray[np.bool_]) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, peer.fit(train).anomaly_score(test)))


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ContractError(message)
