"""A model bundle: a folder with ``manifest.json`` and ``tensors.safetensors``; nothing in it is ever executed.

The manifest names the format, carries settings and schema in readable JSON, and the checksums of both files. A bundle
is replaced atomically (:mod:`ptad.folders`). Checksums find accidents, not intent. What a bundle may hold is declared
(:mod:`ptad.layout`) and checked before memory is taken for it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import safetensors.numpy
from numpy.random import RandomState
from numpy.typing import NDArray

from ptad._version import __version__
from ptad.errors import BundleError
from ptad.files import NotRegularFileError, open_regular, write_errors, write_synced
from ptad.folders import recover, replaced_folder, staging_folders
from ptad.layout import ArrayLayout, check_arrays, check_shapes, printable

FORMAT = "ptad-bundle"
FORMAT_VERSION = 3
MANIFEST, TENSORS = "manifest.json", "tensors.safetensors"
MOST_BYTES = 32 * 2**20  # of a manifest
MOST_ENTRIES = 2_000_000  # of a manifest: brackets, commas and colons, each of which may cost memory
MOST_HEADER = 2**20  # bytes that name the arrays
DTYPES = {"F64": "float64", "F32": "float32", "I64": "int64", "I32": "int32"}  # what a model is made of
_ATTEMPTS = 1000  # to open a folder that other processes replace meanwhile


@dataclass(frozen=True)
class Bundle:
    """A bundle that is open for reading."""

    content: dict[str, Any]  # the manifest, whose format, version and checksum are right
    digest: str  # SHA-256 of the manifest, which holds the checksum of the arrays: it identifies the bundle
    _tensors: BinaryIO

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array by name; only the header is read."""
        return {name: shape for name, (_, shape) in self._header()[0].items()}

    def arrays(self, layouts: Mapping[str, ArrayLayout]) -> dict[str, NDArray[Any]]:
        """Return the arrays; none is read before the types and shapes of all have been checked."""
        header, start = self._header()
        check_shapes(layouts, header)
        size = start + sum(dtype.itemsize * math.prod(shape) for dtype, shape in header.values())
        if os.fstat(self._tensors.fileno()).st_size != size:
            raise _truncated()
        self._tensors.seek(0)
        blob = self._tensors.read(size)
        if hashlib.sha256(blob).hexdigest() != self.content["tensors_sha256"]:
            raise _truncated()
        try:
            arrays: dict[str, NDArray[Any]] = safetensors.numpy.load(blob)
        except Exception as error:  # whatever the parser raises, the file is damaged
            raise _truncated() from error
        check_arrays(layouts, arrays)
        return arrays

    def _header(self) -> tuple[dict[str, tuple[np.dtype[Any], tuple[int, ...]]], int]:
        """Return type and shape of every array, and the offset of the first one."""
        self._tensors.seek(0)
        length = int.from_bytes(self._tensors.read(8), "little")
        if length > MOST_HEADER:
            raise _truncated()
        try:
            entries = json.loads(self._tensors.read(length), object_pairs_hook=_unique_names)
            entries.pop("__metadata__", None)
            header = {name: (np.dtype(DTYPES[e["dtype"]]), _shape(e["shape"])) for name, e in entries.items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _truncated() from error
        return header, 8 + length


@contextmanager
def open_bundle(folder: str | os.PathLike[str], label: str | None = None) -> Iterator[Bundle]:
    """Open a bundle; messages of errors call it ``label``, or by its path."""
    source = Path(folder)
    label = label or str(source)
    recover(source)
    manifest, tensors = _open_files(source, label)
    with manifest, tensors:
        try:
            yield Bundle(*_read_manifest(manifest, label), tensors)
        except OSError as error:
            raise BundleError(f"The model '{label}' cannot be read: {error.strerror or error}.") from error
        except MemoryError as error:
            raise BundleError(f"The model '{label}' cannot be read: it takes more memory than there is.") from error


def write_bundle(folder: str | os.PathLike[str], content: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a bundle; an older bundle at the same place is replaced, anything else there is an error."""
    label = Path(folder)
    target = Path(os.path.realpath(label))  # a link to a model stays a link
    blob = safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "ptad_version": __version__,
        "tensors_sha256": hashlib.sha256(blob).hexdigest(),
        **content,
    }
    manifest["manifest_sha256"] = _digest(manifest)
    text = json.dumps(manifest, indent=1, ensure_ascii=False).encode()
    if _too_large(text):
        raise BundleError(
            "The model cannot be saved: its columns have too many categories or texts. Exclude the columns with most."
        )

    def check_replaceable() -> None:
        if (target.exists() or target.is_symlink()) and not _is_bundle(target):
            raise BundleError(f"'{label}' exists, but is not a ptad model and is not replaced. Name another folder.")

    with write_errors(label, BundleError), replaced_folder(target, check_replaceable) as staging:
        write_synced(staging / TENSORS, blob)
        write_synced(staging / MANIFEST, text)


def to_plain_types(value: Any) -> Any:
    """Return a parameter as JSON types; a random generator becomes 0, since no fit could repeat its state."""
    if isinstance(value, Mapping):
        return {str(key): to_plain_types(item) for key, item in value.items()}
    if isinstance(value, RandomState):
        return 0
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [to_plain_types(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _open_files(source: Path, label: str) -> tuple[BinaryIO, BinaryIO]:
    """Open the manifest and the tensors of the same folder, although other processes may replace it meanwhile."""
    for _ in range(_ATTEMPTS):
        try:
            folder = source.stat()
        except OSError as error:
            if isinstance(error, FileNotFoundError) and staging_folders(Path(os.path.realpath(source))):
                recover(source)  # a saver is between two renames, or was killed there
                continue
            problem = f"There is no model folder at '{label}'"
            if isinstance(error, PermissionError):
                raise BundleError(f"{problem}: {error.strerror}.") from error
            raise BundleError(f"{problem}. Name a folder that a model was saved to.") from error
        if not stat.S_ISDIR(folder.st_mode):
            raise BundleError(f"'{label}' is a file, not a model folder. Name a folder that a model was saved to.")
        with ExitStack() as stack, suppress(FileNotFoundError):
            files: list[BinaryIO] = []
            try:
                for name in (MANIFEST, TENSORS):
                    files.append(stack.enter_context(open_regular(source / name)))
            except OSError as error:
                if os.path.samestat(folder, source.stat()):
                    raise _not_a_model(label, name, error) from error
                continue
            if os.path.samestat(folder, source.stat()):  # otherwise the files may be of different bundles
                stack.pop_all()
                return files[0], files[1]
    raise BundleError(f"The model '{label}' is being replaced all the time. Try again.")


def _not_a_model(label: str, name: str, error: OSError) -> BundleError:
    if isinstance(error, NotRegularFileError):
        return BundleError(f"'{label}' is not a ptad model: its '{name}' is a link, a folder, a pipe or a device.")
    if isinstance(error, FileNotFoundError):
        return BundleError(
            f"'{label}' is not a ptad model: it has no file '{name}'. Name a folder that a model was saved to."
        )
    return BundleError(f"The model '{label}' cannot be read: {error.strerror or error}.")


def _read_manifest(file: BinaryIO, label: str) -> tuple[dict[str, Any], str]:
    """Return the manifest, and its digest."""
    blob = file.read(MOST_BYTES + 1)
    if _too_large(blob):
        raise BundleError(f"'{label}' is not a ptad model: its manifest is larger than any that ptad writes.")
    try:
        manifest = json.loads(blob, parse_constant=_refuse_constant, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"'{label}/{MANIFEST}' is not valid JSON ({error}): the model is damaged.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"'{label}' is not a ptad model: its manifest does not say format '{FORMAT}'.")
    version, writer = manifest.get("format_version"), printable(str(manifest.get("ptad_version")))
    if type(version) is int and 0 < version < FORMAT_VERSION:
        raise BundleError(f"'{label}' was written by ptad {writer}, in an older format. Fit again.")
    if type(version) is not int or version != FORMAT_VERSION:
        raise BundleError(
            f"'{label}' has format version {printable(str(version))}, written by ptad {writer}; this is ptad "
            f"{__version__}, which reads version {FORMAT_VERSION}. Upgrade ptad to read it."
        )
    if manifest.pop("manifest_sha256", None) != _digest(manifest):
        raise BundleError(f"'{label}/{MANIFEST}' was edited or damaged: its checksum does not match. Save it again.")
    return manifest, hashlib.sha256(blob).hexdigest()


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a name that occurs twice is an error, since parsers differ in which one counts."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name occurs twice")
    return entries


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _too_large(blob: bytes) -> bool:
    return len(blob) > MOST_BYTES or sum(map(blob.count, (b"[", b"{", b",", b":"))) > MOST_ENTRIES


def _truncated() -> BundleError:
    return BundleError(
        f"The model is damaged: its '{TENSORS}' is truncated or damaged, or does not belong to the manifest. Restore "
        "it or fit again."
    )


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(length) is not int or length < 0 for length in value):
        raise TypeError("a shape is a list of whole numbers")
    return tuple(value)


def _digest(manifest: dict[str, Any]) -> str:
    try:
        text = json.dumps(manifest, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()
    except (UnicodeEncodeError, RecursionError) as error:  # a lone surrogate: JSON can spell it, UTF-8 cannot
        raise BundleError("The manifest of the model holds text that cannot be written. Rename the columns.") from error


def _is_bundle(folder: Path) -> bool:
    try:
        with open_regular(folder / MANIFEST) as file:
            manifest = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT
