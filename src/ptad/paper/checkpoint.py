"""Checkpoints of a training run: one safetensors file, replaced atomically, never pickled.

A file holds the tensors of the run and, as JSON metadata, the fingerprint of the fit. A run that is killed leaves
either the previous file or the new one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from ptad.errors import SettingError
from ptad.files import write_atomic, write_errors


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint file of one training run."""

    path: Path
    fingerprint: str

    def save(self, tensors: dict[str, Tensor], info: dict[str, Any]) -> None:
        """Replace the file and wait until it is on the disk."""
        metadata = {"fingerprint": self.fingerprint, "info": json.dumps(info)}
        blob = safetensors.torch.save({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, metadata)
        with write_errors(self.path, SettingError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self.path, blob)

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the tensors and the information, or None if there is no file yet."""
        if not self.path.exists():
            return None
        try:
            with safetensors.safe_open(self.path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except Exception as error:
            raise SettingError(
                f"The checkpoint '{self.path}' cannot be read ({error}). Delete it and fit again."
            ) from error
        if metadata.get("fingerprint") != self.fingerprint:
            raise SettingError(
                f"The checkpoint '{self.path}' belongs to another fit (other rows, settings or seed). "
                "Delete it or name another path."
            )
        return tensors, json.loads(metadata["info"])
