"""Training of one network: the rows that stop it, half the batch after every out-of-memory, the checkpoint."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ptad.errors import TrainingError
from ptad.paper.checkpoint import Checkpoint
from ptad.paper.network import Network, context_rows
from ptad.paper.settings import NetworkSettings
from ptad.paper.trainer import Data, Trainer
from ptad.terms.base import History, Progress

logger = logging.getLogger("ptad")

VALIDATION_SHARE, MAX_VALIDATION_ROWS = 0.1, 512
SMALLEST_BATCH = 8
FILE = "network.safetensors"


def train_network(
    x: Tensor,
    settings: NetworkSettings,
    seed: int,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    start: Network | None = None,
) -> tuple[Network, History]:
    """Train a network on encoded rows; the same seed gives the same network on the same machine.

    Parameters
    ----------
    x : Tensor
        (n_rows, n_encoded) on the device to train on, NaN = missing.
    settings : NetworkSettings
        What to train and how.
    seed : int
        Of the start, the batches, the noise and the rows that stop training.
    progress : callable, optional
        Told at every interval.
    checkpoint : Path, optional
        A folder that an interrupted training on the same rows resumes from.
    start : Network, optional
        A network to go on from; it is left as it is.
    """
    data = split(x, settings, seed)
    kept = None if checkpoint is None else Checkpoint(checkpoint / FILE, fingerprint(x, settings, seed, start))
    batch_size = context_rows(settings.batch_size, x.shape[1])
    if kept is not None and (found := kept.load()) is not None:
        batch_size = found[1]["batch_size"]
    while True:
        if start is None:
            network = Network(torch.Generator().manual_seed(seed), x.shape[1], settings).to(x.device)
        else:
            network = copy.deepcopy(start).float().requires_grad_(True)
            network.settings = settings
        generator = torch.Generator(device=x.device).manual_seed(seed)
        try:
            trainer = Trainer(network, data, settings, generator, batch_size, must_improve=start is None)
            return network, trainer.run(progress, kept)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if isinstance(error, TrainingError) or not _is_out_of_memory(error):
                raise
            if batch_size <= SMALLEST_BATCH:
                raise TrainingError(f"Out of memory even with batches of {batch_size} rows: {error}") from error
        batch_size //= 2
        if kept is not None:
            kept.path.unlink(missing_ok=True)  # it was written with the larger batch
        logger.warning("out of memory: training again with batches of %d rows", batch_size)
        if x.device.type == "cuda":
            torch.cuda.empty_cache()


def split(x: Tensor, settings: NetworkSettings, seed: int) -> Data:
    """Return the rows in random order; some are set apart to stop training by, if it is to be stopped."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(x))).to(x.device)
    if settings.patience is None or len(x) < 2:
        return Data(x, order)
    n_validation = min(max(1, int(VALIDATION_SHARE * len(x))), MAX_VALIDATION_ROWS)
    return Data(x, order[n_validation:], order[:n_validation])


def fingerprint(x: Tensor, settings: NetworkSettings, seed: int, start: Network | None) -> str:
    """Return what tells one training from another: settings, seed, kind of device, rows and start."""
    digest = hashlib.sha256(json.dumps([settings.to_json(), seed, x.device.type, list(x.shape)]).encode())
    digest.update(np.ascontiguousarray(x.cpu().numpy()).data)
    for tensor in () if start is None else start.state_dict().values():
        digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
    return digest.hexdigest()


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)
