"""The device that computes: numpy on the CPU, torch on a GPU."""

from __future__ import annotations

import ctypes
import sys
from importlib.util import find_spec
from pathlib import Path

from ptad.errors import MissingExtraError, SettingError


def resolve_device(name: str) -> str:
    """Return the name of a usable device; "auto" is a GPU if there is one and torch is installed."""
    if name == "cpu" or (name == "auto" and not _has_driver()):
        return "cpu"
    if find_spec("torch") is None:
        if name == "auto":
            return "cpu"
        raise MissingExtraError("torch", "torch", f"The device {name!r}")
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise _unusable(name, "there is no such device") from error
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise _unusable(name, str(error).splitlines()[0].rstrip(".")) from error
    return name


def _unusable(name: str, reason: str) -> SettingError:
    choices = "auto, cpu, cuda, or one GPU such as cuda:1."
    return SettingError(
        f"The device {name!r} cannot be used: {reason}.", f"Set {{device}} to {choices}", otherwise=f"Choose {choices}"
    )


def _has_driver() -> bool:
    """Return whether the driver of a GPU is installed; without it torch need not be imported."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return Path("/dev/kfd").exists()  # AMD's
    return True
