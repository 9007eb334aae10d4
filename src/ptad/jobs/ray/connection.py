"""A connection to a Ray cluster, or a cluster on this machine for the duration of a job."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ptad.errors import Option, SettingError, needs_extra

_TRIES = 3  # to start a cluster on this machine


@contextmanager
def connected(address: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Yield the module ``ray``, connected; a connection that was made here is closed at the end.

    ``address`` is the head of a running cluster, such as ``10.0.0.1:6379``, or ``auto``. Without it, and without the
    variable ``RAY_ADDRESS``, a cluster is started on this machine, with ``workers`` processors or all.
    """
    if workers is not None and workers < 1:
        raise SettingError(
            f"The number of workers must be at least 1. Got {workers}.", "Give {workers} a larger number."
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    with needs_extra("ray", "The engine 'ray'", "ray"):
        import ray
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS")
    _check_reachable(address)
    arguments: dict[str, Any] = {"address": address}
    if address is None:  # "local": otherwise Ray waits for minutes for a cluster that ran here before
        arguments = {"address": "local", "num_cpus": workers, "include_dashboard": False}
    for tries_left in reversed(range(_TRIES if address is None else 1)):
        try:
            ray.init(**arguments, log_to_driver=False, logging_level=logging.ERROR)
            break
        except Exception as error:  # of any class: a busy machine may not start a cluster within Ray's time limit
            ray.shutdown()
            if not tries_left:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise _no_answer(address, reason) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Raise at once if nothing listens there; Ray itself would wait for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise _no_answer(address, error) from error


def _no_answer(address: str | None, reason: object) -> SettingError:
    if address is None:
        return SettingError(
            f"No Ray cluster could be started on this machine: {reason}.",
            "Try again when it has less to do, or name a running cluster with {address}.",
        )
    return SettingError(
        f"No Ray cluster answers at {address}: {reason}.", "Check that it runs, or give {address} another one."
    )


def worker_share(ray: Any, workers: int | None, device: str) -> tuple[int, float]:
    """Return (number of workers, GPUs for each): one per processor, or one per GPU where GPUs are used."""
    resources = ray.cluster_resources()
    gpus = int(resources.get("GPU", 0))
    if device.startswith("cuda") and not gpus:
        raise SettingError(
            f"The cluster has no GPU for the device {device!r}.",
            "Use {device}, or add a machine with one.",
            options=(Option("device", "cpu"),),
        )
    if gpus and device != "cpu":
        return workers or gpus, 1.0
    return workers or max(1, int(resources.get("CPU", 1))), 0.0
