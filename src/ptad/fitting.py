"""From an encoded matrix to a calibrated scorer: plan the members, train them, freeze, calibrate."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ptad.config import Config
from ptad.errors import DataError, TrainingError
from ptad.model import Network
from ptad.scoring import Calibration, Retrieval, Scorer
from ptad.training import Checkpoint, Data, History, Member, Progress, Trainer, plan_members

logger = logging.getLogger("ptad")

Matrix = NDArray[np.float32]

# NOTE[PAPER-10] Cells in one batch or reference set: attention between attributes costs d^2 per row, so wide tables
# take fewer rows at a time; memory stays bounded and time grows linearly with the columns.
MAX_CELLS = 2**16


def context_rows(wanted: int, n_features: int) -> int:
    """Return how many rows may attend to each other in a table of this width."""
    return min(wanted, max(16, MAX_CELLS // n_features))


@dataclass(frozen=True)
class Columns:
    """What the network has to know about the encoded columns."""

    missing_rate: NDArray[np.float64]
    groups: NDArray[np.int64]  # original column of each encoded column

    def indicator_weight(self, config: Config) -> NDArray[np.float64]:
        """Weight of each column's missing-value indicator: one per original column, in the units of the scaling."""
        size = np.bincount(self.groups)[self.groups]
        if config.scaling == "minmax":
            return np.asarray(1.0 / size)
        variance = self.missing_rate * (1.0 - self.missing_rate)
        return np.asarray(1.0 / size / (variance + 0.01))


@dataclass
class Fitted:
    """A trained detector for encoded rows."""

    scorer: Scorer
    calibration: Calibration | None
    history: History
    held_out_scores: NDArray[np.float64]  # (n_rows,), by a network that did not learn from the row; NaN where none did


def fit_matrix(
    x: Matrix,
    columns: Columns,
    config: Config,
    *,
    seed: int,
    device: torch.device,
    false_alarm_rate: float | str = "auto",
    amp: bool = False,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Fitted:
    """Train on the rows of ``x`` and calibrate; the same seed gives the same result on the same machine."""
    if len(x) < 2:
        raise DataError(
            f"PTAD needs at least 2 rows to learn from, got n_samples = {len(x)}. Give it more normal rows."
        )
    rng = np.random.default_rng(seed)
    members = plan_members(len(x), config, rng)
    if n_calibration := sum(len(member.calibration) for member in members):
        Calibration(np.zeros(n_calibration)).rate(false_alarm_rate)  # refuse before training, not after
    seeds = [int(s) for s in rng.integers(2**31, size=len(members))]
    on_device = torch.from_numpy(x).to(device)

    history: History = []
    trained: list[tuple[Network, list[int]]] = []
    for i, batch in enumerate(_batches(members, config)):
        path = None
        if checkpoint is not None:
            path = Checkpoint(checkpoint / f"members-{i}.safetensors", _fingerprint(x, config, seed, device))
        network, entries = _train(
            on_device, [members[m] for m in batch], [seeds[m] for m in batch], config, amp, progress, path
        )
        trained.append((network, batch))
        history += [{"member": float(i), **entry} for entry in entries]

    held_out = np.full(len(x), np.nan)
    units = []
    scoring: list[tuple[Network, list[int]]] = []
    for network, batch in trained:
        for position, m in enumerate(batch):
            if len(members[m].calibration):
                scorer = _freeze(
                    take_members(network, [position]), x, [members[m]], [seeds[m]], columns, config, device
                )
                held_out[members[m].calibration] = scorer.parts(x[members[m].calibration]).score
                units.append(scorer.retrieval.units if scorer.retrieval is not None else (1.0, 1.0))
        if kept := [position for position, m in enumerate(batch) if members[m].scores]:
            scoring.append((take_members(network, kept), [batch[position] for position in kept]))

    chosen = [m for _, batch in scoring for m in batch]
    network = join_members([network for network, _ in scoring])
    # The bank of all rows is denser than the folds' that calibrate it; its own unit would be smaller than theirs, and
    # scores beyond its reach would grow past what was promised. So all share the folds' unit.
    common = tuple(float(unit) for unit in np.mean(units, axis=0)) if units else None
    scorer = _freeze(
        network, x, [members[m] for m in chosen], [seeds[m] for m in chosen], columns, config, device, common
    )
    _check_scores(scorer, x[members[chosen[0]].train[:256]])
    judged = held_out[~np.isnan(held_out)]
    return Fitted(scorer, Calibration(judged) if len(judged) else None, history, held_out)


def take_members(network: Network, positions: Sequence[int]) -> Network:
    """Return a network of some of the members; parameters and buffers all lead with the member axis."""
    taken = _blank(network, len(positions))
    taken.load_state_dict({name: tensor[list(positions)].clone() for name, tensor in network.state_dict().items()})
    return taken


def join_members(networks: Sequence[Network]) -> Network:
    """Return one network of all members."""
    joined = _blank(networks[0], sum(network.n_members for network in networks))
    states = [network.state_dict() for network in networks]
    joined.load_state_dict({name: torch.cat([state[name] for state in states]) for name in states[0]})
    return joined


def _blank(network: Network, n_members: int) -> Network:
    parameter = next(network.parameters())
    generators = [torch.Generator()] * n_members
    return Network(generators, network.n_features, network.config).to(parameter.device, parameter.dtype)


def _batches(members: list[Member], config: Config) -> Iterator[list[int]]:
    """Yield the members that are trained together.

    LAMB's trust ratio is one number per parameter tensor: trained together, members would share it. A member that
    scores alone has other training rows than the folds, hence another epoch length.
    """
    if config.optimizer == "lamb":
        yield from ([m] for m in range(len(members)))
        return
    for scores in (True, False):
        if batch := [m for m, member in enumerate(members) if member.scores is scores]:
            yield batch


def _train(
    x: torch.Tensor,
    members: list[Member],
    seeds: list[int],
    config: Config,
    amp: bool,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
) -> tuple[Network, History]:
    """Train some members at once, with half the batch after every out-of-memory."""
    validation = None
    if config.patience is not None and all(len(member.validation) for member in members):
        validation = _row_table([member.validation[:512] for member in members], x.device)
    data = Data(x=x, train=_row_table([member.train for member in members], x.device), validation=validation)
    batch_size = context_rows(config.batch_size, x.shape[1])
    if checkpoint is not None and (found := checkpoint.load()) is not None:
        batch_size = found[1]["batch_size"]
    while True:
        network = Network([torch.Generator().manual_seed(s) for s in seeds], x.shape[1], config).to(x.device)
        generator = torch.Generator(device=x.device).manual_seed(seeds[0])
        try:
            trainer = Trainer(network, data, config, generator, batch_size, amp=amp)
            return network, trainer.run(progress, checkpoint)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if isinstance(error, TrainingError) or not _is_out_of_memory(error):
                raise
            if batch_size <= 8:
                raise TrainingError(f"Out of memory even with batches of {batch_size} rows: {error}") from error
        batch_size //= 2
        if checkpoint is not None:
            checkpoint.path.unlink(missing_ok=True)  # it was written with the larger batch
        logger.warning("out of memory: training again with batches of %d rows", batch_size)
        if x.device.type == "cuda":
            torch.cuda.empty_cache()


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def _row_table(rows: list[NDArray[np.int64]], device: torch.device) -> torch.Tensor:
    """Return the members' row numbers as one table; shorter lists repeat their first rows (folds differ by one)."""
    width = max(len(r) for r in rows)
    return torch.from_numpy(np.stack([np.resize(r, width) for r in rows])).to(device)


def _freeze(
    network: Network,
    x: Matrix,
    members: list[Member],
    seeds: list[int],
    columns: Columns,
    config: Config,
    device: torch.device,
    units: tuple[float, ...] | None = None,
) -> Scorer:
    """Return a scorer whose reference rows are drawn from what each member learned from."""
    n_reference = min(context_rows(config.n_reference, x.shape[1]), max(len(member.train) for member in members))
    picks = []
    for member, seed in zip(members, seeds, strict=True):
        order = np.random.default_rng(seed).permutation(member.train)
        picks.append(x[np.resize(order, n_reference)])
    retrieval = None
    if config.n_neighbours:
        # Several members score together over the rows of all of them.
        known = np.unique(np.concatenate([member.train for member in members]))
        rows = np.random.default_rng(seeds[0]).permutation(known)[: config.n_bank]
        retrieval = make_retrieval(torch.from_numpy(x[rows]).to(device), config, units)
    return Scorer(
        network=network,
        reference_rows=torch.from_numpy(np.stack(picks)).to(device),
        missing_rate=torch.from_numpy(columns.missing_rate).to(device),
        column_weight=torch.from_numpy(columns.indicator_weight(config)).to(device),
        retrieval=retrieval,
    )


def make_retrieval(bank: torch.Tensor, config: Config, units: Sequence[float] | None = None) -> Retrieval:
    """Return the retrieval over a bank of encoded rows."""
    pair = None if units is None else (units[0], units[1])
    return Retrieval(bank, config.n_neighbours, config.neighbour_ridge, pair)


def _check_scores(scorer: Scorer, x: Matrix) -> None:
    scores = scorer.parts(x).score
    if not np.isfinite(scores).all():
        raise TrainingError("Some scores of training rows are not finite. Try a smaller learning_rate.")
    if len(np.unique(scores)) == 1 and len(np.unique(x, axis=0)) > 1:
        raise TrainingError("All training rows have the same score: the network came to nothing. Try more n_steps.")


def _fingerprint(x: Matrix, config: Config, seed: int, device: torch.device) -> str:
    digest = hashlib.sha256(json.dumps([config.to_json(), seed, device.type, x.shape]).encode())
    digest.update(np.ascontiguousarray(x).data)
    return digest.hexdigest()
