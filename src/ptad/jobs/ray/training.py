"""Training on a cluster with Ray Train: torch data parallelism, one model.

Every worker holds all training rows and draws its share of each batch from them, which is its own context for the
attention between rows. Gradients are averaged, so the parameters agree in all workers; basis vectors and prototypes are
among them. Reference rows, units and calibration follow from parameters, rows and seed; the first worker's are saved. A
worker that dies brings all back to the last checkpoint, as often as it happens, as long as there is progress between.
"""

from __future__ import annotations

import itertools
import json
import logging
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ptad import errors
from ptad.errors import Message
from ptad.estimator import PTAD
from ptad.jobs.fit import Learn
from ptad.jobs.ray.connection import connected, worker_share
from ptad.tables import read_table, write_table

if TYPE_CHECKING:
    import torch

logger = logging.getLogger("ptad")

#: Losses of a worker or a machine between two checkpoints after which training counts as failed.
MOST_LOSSES = 10


def cluster_learner(out: Path, address: str | None = None, workers: int | None = None) -> Learn:
    """Return what :func:`ptad.jobs.fit.fit_table` learns with, for a cluster.

    Rows, checkpoints and the model pass through a hidden folder beside ``out``, which all machines see.
    """
    return partial(_learn, out.resolve(), address, workers)


def _learn(
    out: Path, address: str | None, workers: int | None, detector: PTAD, rows: pa.Table, checkpoint: Path | None
) -> PTAD:
    home = out.with_name(f".{out.name}.ray")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    try:
        write_table(rows, home / "rows.parquet")
        job = {
            "home": str(home),
            "parameters": {**detector.get_params(deep=False), "verbose": 0},
            "checkpoint": str(home / "checkpoint" if checkpoint is None else checkpoint.resolve()),
        }
        with connected(address, workers) as ray:
            n_workers, gpus = worker_share(ray, workers, detector.device)
            logger.info("training with %d workers", n_workers)
            _run(ray, job, home, n_workers, use_gpu=gpus > 0)
        _raise_mistake(home)
        fitted = PTAD.load(home / "model", device=detector.device)
        fitted.set_params(**{n: v for n, v in detector.get_params(deep=False).items() if n != "config"})
        return fitted
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(ray: Any, job: dict[str, Any], home: Path, workers: int, *, use_gpu: bool) -> None:
    from ray.train import FailureConfig, RunConfig, ScalingConfig, WorkerGroupError
    from ray.train.torch import TorchConfig, TorchTrainer

    held, lost = _placement_groups(ray), 0
    for attempt in itertools.count():
        before = _reached(job)
        trainer = TorchTrainer(
            _work,
            train_loop_config=job,
            torch_config=TorchConfig(backend="nccl" if use_gpu else "gloo"),
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=use_gpu),
            run_config=RunConfig(
                name=f"fit-{attempt}",
                storage_path=str(home / "ray"),
                failure_config=FailureConfig(max_failures=MOST_LOSSES - 1),
            ),
        )
        try:
            trainer.fit()
            return
        except Exception as error:
            # a mistake of the user in one worker leaves the others alone, who then fail for want of it
            _raise_mistake(home)
            # a worker that dies while it is handed its work ends the run at once, any other one only after all tries
            lost = lost + (MOST_LOSSES if isinstance(error, WorkerGroupError) else 1) if _reached(job) == before else 0
            if lost >= MOST_LOSSES:
                reason = str(error).splitlines()[0]
                raise errors.TrainingError(f"Training on the cluster failed: {reason}") from error
            logger.info("training lost its workers and goes on from its checkpoint")
        for group in _placement_groups(ray) - held:  # such a run leaves its processors reserved
            _remove_placement_group(group)


def _reached(job: dict[str, Any]) -> list[tuple[str, int]]:
    """What changes with every checkpoint."""
    return sorted((path.name, path.stat().st_mtime_ns) for path in Path(job["checkpoint"]).rglob("*.safetensors"))


def _placement_groups(ray: Any) -> set[str]:
    """The reservations of this program in the cluster; their names end in the number of the job that made them."""
    own = ray.get_runtime_context().get_job_id()
    known = ray.util.placement_group_table()
    return {name for name, entry in known.items() if name.endswith(own) and entry["state"] != "REMOVED"}


def _remove_placement_group(name: str) -> None:
    from ray import PlacementGroupID
    from ray.util.placement_group import PlacementGroup, remove_placement_group

    remove_placement_group(PlacementGroup(PlacementGroupID(bytes.fromhex(name))))


class TorchGroup:
    """The workers of torch's default process group."""

    def __init__(self) -> None:
        import torch

        self.rank = torch.distributed.get_rank()
        self.size = torch.distributed.get_world_size()

    def average(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace the tensors by their mean over all workers, in one message."""
        import torch

        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        torch.distributed.all_reduce(flat)
        flat /= self.size
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))


def _work(job: dict[str, Any]) -> None:
    """The life of one worker."""
    import torch

    from ptad.paper.parallel import data_parallel

    home = Path(job["home"])
    torch.set_num_threads(1)
    group = TorchGroup()
    try:
        with data_parallel(group):
            detector = PTAD(**job["parameters"])
            detector.fit(read_table(home / "rows.parquet"), checkpoint=job["checkpoint"])
        if group.rank == 0:
            detector.save(home / "model")
    except errors.PtadError as error:
        # told to the driver in words: trying again would not help
        kind = "UserError" if isinstance(error, errors.UserError) else "TrainingError"
        (home / f"mistake-{group.rank}.json").write_text(json.dumps([kind, error.message.to_json()]))


def _raise_mistake(home: Path) -> None:
    for path in sorted(home.glob("mistake-*.json")):
        kind, content = json.loads(path.read_text())
        message = Message.from_json(content)
        raise getattr(errors, kind)(message.problem, message.remedy, message.options, message.otherwise)
