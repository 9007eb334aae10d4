"""A model bundle: a folder with ``manifest.json`` and ``tensors.safetensors``; nothing in it is ever executed.

The manifest names the format, carries settings and schema in readable JSON, and the checksums of both files. A bundle
is written beside its final place and changes places with what is there: a reader finds the old bundle or the new one.
Checksums find accidents, not intent. What a bundle may hold is declared (:mod:`ptad.layout`) and checked before memory
is taken for it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import safetensors.numpy
from numpy.random import RandomState
from numpy.typing import NDArray

from ptad._version import __version__
from ptad.errors import BundleError
from ptad.files import NotPlainError, open_plain, read_exactly, refused, write_synced
from ptad.folders import left_overs, new_folder, recover
from ptad.layout import ArrayLayout, check_arrays, check_shapes, shown

FORMAT = "ptad-bundle"
FORMAT_VERSION = 3
MANIFEST, TENSORS = "manifest.json", "tensors.safetensors"
MOST_BYTES = 32 * 2**20  # of a manifest
MOST_ENTRIES = 2_000_000  # of a manifest: brackets, commas and colons, each of which may cost memory
MOST_HEADER = 2**20  # bytes that name the arrays
DTYPES = {"F64": "float64", "F32": "float32", "I64": "int64", "I32": "int32"}  # what a model is made of
_ATTEMPTS = 1000  # a reader that meets a saver looks again


@dataclass(frozen=True)
class Bundle:
    """A bundle that is open for reading: its manifest, and its arrays once it is known what they have to be."""

    content: dict[str, Any]  # the manifest, whose format, version and checksum are right
    digest: str  # SHA-256 of the manifest, which names the checksum of the arrays: it tells bundles apart
    _tensors: int  # the open file

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every array; nothing else is read."""
        return {name: shape for name, (_, shape) in self._header()[0].items()}

    def arrays(self, layouts: Mapping[str, ArrayLayout]) -> dict[str, NDArray[Any]]:
        """Return the arrays; none is read before all are declared with the right types and shapes."""
        found, start = self._header()
        check_shapes(layouts, found)
        size = start + sum(dtype.itemsize * math.prod(shape) for dtype, shape in found.values())
        if os.fstat(self._tensors).st_size != size:
            raise _truncated()
        os.lseek(self._tensors, 0, os.SEEK_SET)
        blob = read_exactly(self._tensors, size)
        if hashlib.sha256(blob).hexdigest() != self.content["tensors_sha256"]:
            raise _truncated()
        try:
            arrays: dict[str, NDArray[Any]] = safetensors.numpy.load(blob)
        except Exception as error:  # whatever the parser finds, it is the file's fault
            raise _truncated() from error
        check_arrays(layouts, arrays)
        return arrays

    def _header(self) -> tuple[dict[str, tuple[np.dtype[Any], tuple[int, ...]]], int]:
        """Return type and shape of every array, and where the first one begins."""
        os.lseek(self._tensors, 0, os.SEEK_SET)
        length = int.from_bytes(read_exactly(self._tensors, 8), "little")
        if length > MOST_HEADER:
            raise _truncated()
        try:
            entries = json.loads(read_exactly(self._tensors, length))
            entries.pop("__metadata__", None)
            found = {
                name: (np.dtype(DTYPES[entry["dtype"]]), _shape(entry["shape"])) for name, entry in entries.items()
            }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _truncated() from error
        return found, 8 + length


@contextmanager
def open_bundle(folder: str | os.PathLike[str], label: str | None = None) -> Iterator[Bundle]:
    """Open a bundle; the message of a refusal says what is wrong with it, and calls it ``label`` or by its path."""
    source = Path(folder)
    named = label or str(source)
    recover(source)
    manifest, tensors = _open_files(source, named)
    try:
        content, digest = _read_manifest(manifest, named)
        yield Bundle(content, digest, tensors)
    except OSError as error:
        raise BundleError(f"The model '{named}' cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise BundleError(f"The model '{named}' cannot be read: it takes more memory than there is.") from error
    finally:
        os.close(manifest)
        os.close(tensors)


def write_bundle(folder: str | os.PathLike[str], content: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a bundle; an older bundle at the same place is replaced, anything else there is refused."""
    named = Path(folder)
    target = named.resolve()  # a link to a model stays a link
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

    def refuse_foreign() -> None:
        if (target.exists() or target.is_symlink()) and not _is_bundle(target):
            raise BundleError(f"'{named}' exists and is not a ptad model: it is left alone. Name another folder.")

    with refused(named, BundleError), new_folder(target, refuse_foreign) as staging:
        write_synced(staging / TENSORS, blob)
        write_synced(staging / MANIFEST, text)


def plain(value: Any) -> Any:
    """Return a parameter as JSON has it; a random generator is 0, since it has moved on and no fit could repeat it."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, RandomState):
        return 0
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


# reading --------------------------------------------------------------------------------------------------------------


def _open_files(source: Path, named: str) -> tuple[int, int]:
    """Open both files of one and the same folder, although a saver may put another one in its place meanwhile."""
    for _ in range(_ATTEMPTS):
        try:
            place = _open_folder(source)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and left_overs(source.resolve()):
                recover(source)  # a saver is between two steps, or was killed there
                continue
            what = f"There is no model folder at '{named}'"
            if isinstance(error, PermissionError):
                raise BundleError(f"{what}: {error.strerror}.") from error
            if source.exists():
                what = f"'{named}' is a file, not a model folder"
            raise BundleError(f"{what}. Name a folder that a model was saved to.") from error
        opened: list[int] = []
        try:
            for name in (MANIFEST, TENSORS):
                opened.append(open_plain(source / name if place is None else name, place))
            return opened[0], opened[1]
        except OSError as error:
            for handle in opened:
                os.close(handle)
            with suppress(FileNotFoundError):
                if place is None or os.path.samestat(os.fstat(place), source.stat()):
                    raise _not_a_model(named, name, error) from error
        finally:
            if place is not None:
                os.close(place)
    raise BundleError(f"The model '{named}' is being replaced all the time. Try again.")


def _open_folder(source: Path) -> int | None:
    """Return the open folder, which stays the same when another one takes its name; None where there is no such way."""
    if os.open in os.supports_dir_fd:
        return os.open(source, os.O_RDONLY | os.O_DIRECTORY)
    if not source.is_dir():
        raise FileNotFoundError(source)
    return None


def _not_a_model(named: str, name: str, error: OSError) -> BundleError:
    if isinstance(error, NotPlainError):
        return BundleError(f"'{named}' is not a ptad model: its '{name}' is a link, a folder, a pipe or a device.")
    if isinstance(error, FileNotFoundError):
        return BundleError(
            f"'{named}' is not a ptad model: it has no file '{name}'. Name a folder that a model was saved to."
        )
    return BundleError(f"The model '{named}' cannot be read: {error.strerror or error}.")


def _read_manifest(handle: int, named: str) -> tuple[dict[str, Any], str]:
    blob = read_exactly(handle, MOST_BYTES + 1)
    if _too_large(blob):
        raise BundleError(f"'{named}' is not a ptad model: its manifest is larger than any that ptad writes.")
    try:
        manifest = json.loads(blob, parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"'{named}/{MANIFEST}' is not valid JSON ({error}): the model is damaged.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"'{named}' is not a ptad model: its manifest does not say format '{FORMAT}'.")
    version, writer = manifest.get("format_version"), shown(str(manifest.get("ptad_version")))
    if type(version) is int and 0 < version < FORMAT_VERSION:
        raise BundleError(f"'{named}' was written by ptad {writer}, a format of the past. Fit again.")
    if type(version) is not int or version != FORMAT_VERSION:
        raise BundleError(
            f"'{named}' has format version {shown(str(version))}, written by ptad {writer}; this is ptad "
            f"{__version__}, which reads version {FORMAT_VERSION}. Upgrade ptad to read it."
        )
    expected = manifest.pop("manifest_sha256", None)
    if expected != _digest(manifest):
        raise BundleError(f"'{named}/{MANIFEST}' was edited or damaged: its checksum does not match. Save it again.")
    return manifest, hashlib.sha256(blob).hexdigest()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a name that stands in it twice is refused, since readers differ in which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


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
    except (UnicodeEncodeError, RecursionError) as error:  # half a character: JSON can spell it, no file can hold it
        raise BundleError("The manifest of the model holds text that cannot be written. Rename the columns.") from error


def _is_bundle(folder: Path) -> bool:
    try:
        handle = open_plain(folder / MANIFEST)
    except OSError:
        return False
    try:
        manifest = json.loads(read_exactly(handle, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    finally:
        os.close(handle)
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT
