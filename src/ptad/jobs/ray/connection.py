"""A connection to a Ray cluster, or a cluster on this machine for the time of a job."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ptad.errors import MissingExtraError, SettingError


@contextmanager
def connected(address: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Yield the module ``ray``, connected; what was not connected before is disconnected at the end.

    Parameters
    ----------
    address : str, optional
        The head of a running cluster, such as ``10.0.0.1:6379``, or ``auto``. Without it, and without the variable
        ``RAY_ADDRESS``, a cluster is started on this machine.
    workers : int, optional
        How many processors that cluster has; all of them without it.
    """
    if workers is not None and workers < 1:
        raise SettingError(f"--workers must be at least 1. Got {workers} instead.")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "The engine 'ray'") from error
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS")
    _check_reachable(address)
    own = {"num_cpus": workers, "include_dashboard": False} if address is None else {"address": address}
    try:
        ray.init(**own, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SettingError(
            f"--address {address}: no Ray cluster answers there: {reason}. Check that it runs."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Raise at once if nobody listens there; Ray itself would wait for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise SettingError(
            f"--address {address}: no Ray cluster answers there: {error}. Check that it runs."
        ) from error


def worker_share(ray: Any, workers: int | None, device: str) -> tuple[int, float]:
    """Return (number of workers, GPUs for each): one per processor, or one per GPU where GPUs are used."""
    resources = ray.cluster_resources()
    gpus = int(resources.get("GPU", 0))
    if device.startswith("cuda") and not gpus:
        raise SettingError(f"--device {device}: the cluster has no GPU. Use --device cpu, or add a machine with one.")
    if gpus and device != "cpu":
        return workers or gpus, 1.0
    return workers or max(1, int(resources.get("CPU", 1))), 0.0
