"""A model bundle: a folder with ``manifest.json`` and ``tensors.safetensors``; nothing in it is ever executed.

The manifest names the format, carries settings and schema in readable JSON, and the checksums of both files. A bundle
is written beside its final place and renamed, so a reader finds a whole bundle or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.random import RandomState
from numpy.typing import NDArray

from ptad._version import __version__
from ptad.errors import BundleError

FORMAT = "ptad-bundle"
FORMAT_VERSION = 3
MANIFEST, TENSORS = "manifest.json", "tensors.safetensors"


def write_bundle(folder: str | os.PathLike[str], content: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a bundle; an older bundle at the same place is replaced, anything else there is refused."""
    target = Path(folder)
    if target.exists() and not _is_bundle(target):
        raise BundleError(f"'{target}' exists and is not a ptad model: it is left alone. Name another folder.")
    blob = safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "ptad_version": __version__,
        "tensors_sha256": hashlib.sha256(blob).hexdigest(),
        **content,
    }
    manifest["manifest_sha256"] = _digest(manifest)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise BundleError(f"The model cannot be written to '{target}': {error}. Name a writable folder.") from error
    try:
        _write(staging / TENSORS, blob)
        _write(staging / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())
        staging.chmod(0o755)
        if target.exists():
            previous = staging.with_name(staging.name + "-previous")
            target.rename(previous)
            try:
                staging.rename(target)
            except OSError:
                previous.rename(target)
                raise
            shutil.rmtree(previous)
        else:
            staging.rename(target)
    except OSError as error:
        raise BundleError(f"The model cannot be written to '{target}': {error}. Free some space or move it.") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def read_bundle(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read and check a bundle; the message of a refusal says what is wrong with it."""
    source = Path(folder)
    if not source.is_dir():
        what = (
            f"'{source}' is a file, not a model folder"
            if source.exists()
            else f"There is no model folder at '{source}'"
        )
        raise BundleError(f"{what}. Name a folder that 'ptad fit' or PTAD.save made.")
    try:
        manifest = json.loads((source / MANIFEST).read_bytes())
        blob = (source / TENSORS).read_bytes()
    except FileNotFoundError as error:
        missing = Path(str(error.filename)).name
        raise BundleError(f"'{source}' is not a ptad model: it has no file '{missing}'.") from error
    except ValueError as error:
        raise BundleError(f"'{source / MANIFEST}' is not valid JSON ({error}): the model is damaged.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"'{source}' is not a ptad model: its manifest does not say format '{FORMAT}'.")
    version = manifest.get("format_version")
    if isinstance(version, int) and 0 < version < FORMAT_VERSION:
        raise BundleError(
            f"'{source}' was written by ptad {manifest.get('ptad_version')}, a format of the past. Fit again."
        )
    if version != FORMAT_VERSION:
        raise BundleError(
            f"'{source}' has format version {version}, written by ptad {manifest.get('ptad_version')}; this is "
            f"ptad {__version__}, which reads version {FORMAT_VERSION}. Upgrade ptad to read it."
        )
    expected = manifest.pop("manifest_sha256", None)
    if expected != _digest(manifest):
        raise BundleError(f"'{source / MANIFEST}' was edited or damaged: its checksum does not match. Save it again.")
    if hashlib.sha256(blob).hexdigest() != manifest["tensors_sha256"]:
        raise BundleError(f"'{source / TENSORS}' is truncated or damaged: its checksum does not match the manifest.")
    return manifest, safetensors.numpy.load(blob)


def plain(value: Any) -> Any:
    """Return a parameter as JSON has it; a random generator is 0, since it has moved on and no fit could repeat it."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, RandomState):
        return 0
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _is_bundle(folder: Path) -> bool:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _write(path: Path, blob: bytes) -> None:
    with path.open("wb") as file:
        file.write(blob)
        file.flush()
        os.fsync(file.fileno())
