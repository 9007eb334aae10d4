"""Training on a cluster with Ray Train: torch data parallelism, one model.

Every worker holds all training rows and draws its share of each batch from them, which is its own context for the
attention between rows. Gradients are averaged, so the parameters agree in all workers; basis vectors and prototypes are
among them. Reference rows, units and calibration follow from parameters, rows and seed; the first worker's are saved.
When a worker dies, all resume from the last checkpoint, as often as needed while new checkpoints are made.
"""

from __future__ import annotations

import itertools
import json
import logging
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ptad import errors
from ptad.errors import Message
from ptad.estimator import PTAD
from ptad.files import write_json
from ptad.jobs.fit import FitFunction
from ptad.jobs.ray.connection import connected, worker_share
from ptad.tables import read_table, write_table

if TYPE_CHECKING:
    import torch

logger = logging.getLogger("ptad")

MAX_FAILURES = 10  # of a worker or a machine between two checkpoints, after which training has failed


def cluster_fit(out: Path, address: str | None = None, workers: int | None = None) -> FitFunction:
    """Return the argument ``fit_function`` of :func:`ptad.jobs.fit.fit_table` for training on a cluster.

    Rows, checkpoints and the model are exchanged in a hidden folder beside ``out``, which all machines see.
    """
    return partial(_fit, out.resolve(), address, workers)


def _fit(
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
        _raise_error_of_worker(home)
        fitted = PTAD.load(home / "model", device=detector.device)
        fitted.set_params(**{n: v for n, v in detector.get_params(deep=False).items() if n != "config"})
        return fitted
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(ray: Any, job: dict[str, Any], home: Path, workers: int, *, use_gpu: bool) -> None:
    from ray import PlacementGroupID
    from ray.train import FailureConfig, RunConfig, ScalingConfig, WorkerGroupError
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.placement_group import PlacementGroup, remove_placement_group

    groups, failures = _placement_groups(ray), 0
    for attempt in itertools.count():
        before = _checkpoint_state(job)
        trainer = TorchTrainer(
            _train_in_worker,
            train_loop_config=job,
            torch_config=TorchConfig(backend="nccl" if use_gpu else "gloo"),
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=use_gpu),
            run_config=RunConfig(
                name=f"fit-{attempt}",
                storage_path=str(home / "ray"),
                failure_config=FailureConfig(max_failures=MAX_FAILURES - 1),
            ),
        )
        try:
            with _signals_kept():
                trainer.fit()
            return
        except Exception as error:
            # after a user error in one worker the others fail too
            _raise_error_of_worker(home)
            if _checkpoint_state(job) != before:
                failures = 0
            else:  # Ray itself has tried again after a WorkerGroupError, not after a death while a worker starts
                failures += MAX_FAILURES if isinstance(error, WorkerGroupError) else 1
            if failures >= MAX_FAILURES:
                reason = str(error).splitlines()[0]
                raise errors.TrainingError(f"Training on the cluster failed: {reason}") from error
            logger.info("the training workers died; training resumes from its checkpoint")
        for name in _placement_groups(ray) - groups:  # a failed run leaves its processors reserved
            remove_placement_group(PlacementGroup(PlacementGroupID(bytes.fromhex(name))))


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which Ray's trainer replaces for good."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def _checkpoint_state(job: dict[str, Any]) -> list[tuple[str, int]]:
    """Return names and times of the files of the checkpoint, which change with every one."""
    return sorted((path.name, path.stat().st_mtime_ns) for path in Path(job["checkpoint"]).rglob("*.safetensors"))


def _placement_groups(ray: Any) -> set[str]:
    """Return the placement groups of this program in the cluster; their names end in the id of its job."""
    job = ray.get_runtime_context().get_job_id()
    table = ray.util.placement_group_table()
    return {name for name, entry in table.items() if name.endswith(job) and entry["state"] != "REMOVED"}


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


def _train_in_worker(job: dict[str, Any]) -> None:
    """Train in one worker."""
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
        # for the driver: a second try would fail too
        kind = "UserError" if isinstance(error, errors.UserError) else "TrainingError"
        write_json(home / f"error-{group.rank}.json", [kind, error.message.to_json()])


def _raise_error_of_worker(home: Path) -> None:
    for path in sorted(home.glob("error-*.json")):
        kind, content = json.loads(path.read_text())
        message = Message.from_json(content)
        raise getattr(errors, kind)(*vars(message).values())
