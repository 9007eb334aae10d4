"""From an encoded matrix to a calibrated scorer: plan the members, train them, freeze, calibrate."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ptad.config import Config
from ptad.errors import DataError, TrainingError
from ptad.model import Network
from ptad.scoring import Calibration, Retrieval, Scorer, Space, column_weights
from ptad.training import Checkpoint, Data, History, Member, Progress, Trainer, plan_members

logger = logging.getLogger("ptad")

Matrix = NDArray[np.float32]

# NOTE[PAPER-10] Cells in one batch or reference set: attention between attributes costs d^2 per row, so wide tables
# take fewer rows at a time; memory stays bounded and time grows linearly with the columns.
MAX_CELLS = 2**16
N_PROBES = 512  # rows from which the unit of the network's score is taken


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
    retrieval = None
    if config.n_neighbours:
        rows = np.random.default_rng(seeds[0]).permutation(len(x))[: config.n_bank]
        retrieval = make_retrieval(torch.from_numpy(x[rows]).to(device), config)
    space = make_space(x, columns, config, device, seeds)
    groups = torch.from_numpy(columns.groups).to(device)
    on_device = space(torch.from_numpy(x).to(device))

    history: History = []
    trained: list[tuple[Network, list[int]]] = []
    for i, batch in enumerate(_batches(members, config)):
        path = None
        if checkpoint is not None:
            path = Checkpoint(checkpoint / f"members-{i}.safetensors", _fingerprint(x, config, seed, device))
        network, entries = train_members(
            on_device, groups, [members[m] for m in batch], [seeds[m] for m in batch], config, amp, progress, path
        )
        trained.append((network, batch))
        history += [{"member": float(i), **entry} for entry in entries]

    freeze = partial(freeze_members, x=x, columns=columns, config=config, device=device)
    singles = {
        m: freeze(take_members(network, [position]), [members[m]], [seeds[m]], space.of([m]))
        for network, batch in trained
        for position, m in enumerate(batch)
    }
    factor = 1.0 if retrieval is None else network_factor(x, members, singles, config)
    held_out = np.full(len(x), np.nan)
    for m, member in enumerate(members):
        if len(member.calibration):
            # A calibration row may lie in the bank: retrieval passes over its copy, and judges it as if it were new.
            judge = replace(singles[m], retrieval=retrieval, network_factor=factor)
            held_out[member.calibration] = judge.parts(x[member.calibration]).score

    chosen = [m for _, batch in trained for m in batch if members[m].scores]
    network = join_members([singles[m].network for m in chosen])
    scorer = freeze(network, [members[m] for m in chosen], [seeds[m] for m in chosen], space.of(chosen))
    scorer = replace(scorer, retrieval=retrieval, network_factor=factor)
    check_scores(scorer, x[members[chosen[0]].train[:256]])
    judged = held_out[~np.isnan(held_out)]
    return Fitted(scorer, Calibration(judged) if len(judged) else None, history, held_out)


def network_factor(x: Matrix, members: list[Member], singles: dict[int, Scorer], config: Config) -> float:
    """Return the factor by which the network's score stands beside the retrieved rows' with its weight.

    They are in units of a normal row's mean, and so is it then. Where the network does much better on the rows it
    learned from than on others, it has learned them by heart, and weighs less.
    """
    means = []
    for m, scorer in singles.items():
        seen, unseen = members[m].train, members[m].calibration
        inside = scorer.parts(x[seen[:N_PROBES]]).network.mean()
        means.append((inside, scorer.parts(x[unseen[:N_PROBES]]).network.mean() if len(unseen) else inside))
    inside, outside = np.mean(means, axis=0).clip(1e-12)
    return float(config.network_weight * min(1.0, inside / outside) / outside)


def make_space(
    x: Matrix,
    columns: Columns,
    config: Config,
    device: torch.device,
    seeds: Sequence[int],
) -> Space:
    """Return the network's view of the rows: as they are, or in one common unit, whole or with hidden columns."""
    n_features = x.shape[1]
    centre, unit = np.zeros(n_features), np.ones(n_features)
    if config.common_unit:
        observed = ~np.isnan(x)
        centre = x.sum(axis=0, where=observed, dtype=np.float64) / np.maximum(observed.sum(axis=0), 1)
        filled = np.where(observed, x, centre)  # a missing cell is an average one, for the spread and the weights
        weight = column_weights(torch.from_numpy(filled))[0].numpy()
        unit = weight / max(np.sqrt((filled.var(axis=0) * weight**2).mean()), 1e-9)
    pass_of = None
    if config.n_passes:
        n_columns = int(columns.groups[-1]) + 1
        n_passes = min(config.n_passes, n_columns)
        orders = [np.random.default_rng(seed).permutation(n_columns) % n_passes for seed in seeds]
        pass_of = torch.from_numpy(np.stack(orders)[:, columns.groups])
    return Space(torch.from_numpy(centre), torch.from_numpy(unit), pass_of).to(device, torch.float32)


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


def train_members(
    x: torch.Tensor,
    groups: torch.Tensor,
    members: list[Member],
    seeds: list[int],
    config: Config,
    amp: bool,
    progress: Progress | None,
    checkpoint: Checkpoint | None = None,
    start: Network | None = None,
) -> tuple[Network, History]:
    """Train some members at once, from the ``start`` if there is one; half the batch after every out-of-memory."""
    validation = None
    if config.patience is not None and all(len(member.validation) for member in members):
        validation = _row_table([member.validation[:512] for member in members], x.device)
    data = Data(
        x=x, train=_row_table([member.train for member in members], x.device), validation=validation, groups=groups
    )
    batch_size = context_rows(config.batch_size, x.shape[1])
    if checkpoint is not None and (found := checkpoint.load()) is not None:
        batch_size = found[1]["batch_size"]
    while True:
        if start is None:
            network = Network([torch.Generator().manual_seed(s) for s in seeds], x.shape[1], config).to(x.device)
        else:
            network = take_members(start, range(start.n_members)).float()
        generator = torch.Generator(device=x.device).manual_seed(seeds[0])
        try:
            trainer = Trainer(network, data, config, generator, batch_size, amp=amp, must_improve=start is None)
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


def freeze_members(
    network: Network,
    members: list[Member],
    seeds: list[int],
    space: Space,
    *,
    x: Matrix,
    columns: Columns,
    config: Config,
    device: torch.device,
) -> Scorer:
    """Return a scorer whose reference rows are drawn from what each member learned from."""
    n_reference = min(context_rows(config.n_reference, x.shape[1]), max(len(member.train) for member in members))
    picks = []
    for member, seed in zip(members, seeds, strict=True):
        order = np.random.default_rng(seed).permutation(member.train)
        picks.append(x[np.resize(order, n_reference)])
    return Scorer(
        network=network,
        reference_rows=torch.from_numpy(np.stack(picks)).to(device),
        missing_rate=torch.from_numpy(columns.missing_rate).to(device),
        column_weight=torch.from_numpy(columns.indicator_weight(config)).to(device),
        space=space,
    )


def make_retrieval(bank: torch.Tensor, config: Config, units: Sequence[float] | None = None) -> Retrieval:
    """Return the retrieval over a bank of encoded rows."""
    pair = None if units is None else (units[0], units[1])
    return Retrieval(bank, config.n_neighbours, config.neighbour_ridge, pair)


def check_scores(scorer: Scorer, x: Matrix) -> None:
    scores = scorer.parts(x).score
    if not np.isfinite(scores).all():
        raise TrainingError("Some scores of training rows are not finite. Try a smaller learning_rate.")
    if len(np.unique(scores)) == 1 and len(np.unique(x, axis=0)) > 1:
        raise TrainingError("All training rows have the same score: the network came to nothing. Try more n_steps.")


def _fingerprint(x: Matrix, config: Config, seed: int, device: torch.device) -> str:
    digest = hashlib.sha256(json.dumps([config.to_json(), seed, device.type, x.shape]).encode())
    digest.update(np.ascontiguousarray(x).data)
    return digest.hexdigest()
