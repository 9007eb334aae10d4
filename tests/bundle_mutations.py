"""Bundles as somebody would write them who wants a reader to stumble: mutations with recomputed checksums."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.numpy

from ptad import PTAD, BundleError, UserError

Place = tuple[Any, ...]
DEEP = "[" * 100_000 + "]" * 100_000
VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 3, 7, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.5, 1e-320, 1e30, 1e308),
    *(
        float("nan"),
        float("inf"),
        float("-inf"),
        "",
        "x",
        "auto",
        "\ud800",
        "numeric",
        "boolean",
        "text",
        "categorical",
        "date",
        "time",
    ),
    *(".", ",", " ", "'", "%", "%d/%m/%Y", "%Y%m%d %H:%M %z", "%d.%m.%Y %I:%M %p", "%d/%m/%Q", "%d%d%m%Y", "%m" * 999),
    *(["%d/%m/%Y"], ["%d/%m/%Y", "%d/%m/%Y %z"], ["%d/%m/%Y %z"], ["%d/%m/%Y"] * 2, ["%Y"], ["\x00%d%m%Y"]),
    *("x" * 1000, [], [1], ["a", "a"], [[]], [None], {}, {"a": 1}, {"": None}, [[[[[[1]]]]]]),
]
DTYPES = ["float64", "float32", "float16", "int64", "int32", "uint8", "bool"]
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1e9, 1e300, -1e300, 5e-324, 2.0**53, 2.0**62]


def sealed(manifest: dict[str, Any], blob: bytes, raw: bytes | None = None) -> tuple[bytes, bytes]:
    """Return both files with checksums that fit."""
    manifest = {**manifest, "tensors_sha256": hashlib.sha256(blob).hexdigest()}
    manifest.pop("manifest_sha256", None)
    text = json.dumps(manifest, sort_keys=True, ensure_ascii=False)
    manifest["manifest_sha256"] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return json.dumps(manifest).encode(), blob


class Mutations:
    """An endless, repeatable series of crafted bundles, made from one that is sound.

    With ``under``, only what the manifest holds below that place is changed.
    """

    def __init__(self, folder: Path, seed: int, under: Place = ()) -> None:
        self.manifest = json.loads((folder / "manifest.json").read_bytes())
        self.blob = (folder / "tensors.safetensors").read_bytes()
        self.arrays = safetensors.numpy.load(self.blob)
        self._rng = np.random.default_rng(seed)
        self._under = under
        self._places = [place for place in _places(self.manifest) if place and place[: len(under)] == under]

    def __iter__(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what was done, the manifest and the tensors."""
        kinds = (self._json, self._json, self._json, self._array, self._array, self._header, self._bytes)
        kinds = (self._json,) if self._under else kinds
        while True:
            name, manifest, blob = kinds[self._rng.integers(len(kinds))]()
            yield (name, *((manifest, blob) if isinstance(manifest, bytes) else sealed(manifest, blob)))

    def _one(self, items: list[Any]) -> Any:
        return items[int(self._rng.integers(len(items)))]

    def _json(self) -> tuple[str, Any, bytes]:
        """Change one entry of the manifest, or two."""
        manifest, said = copy.deepcopy(self.manifest), []
        for _ in range(1 + int(self._rng.integers(2))):
            place = self._one(self._places)
            try:
                said.append(self._change(manifest, place))
            except (KeyError, IndexError, TypeError):  # the first change took the place of the second away
                continue
        return f"manifest: {said}", manifest, self.blob

    def _change(self, manifest: Any, place: Place) -> str:
        *path, last = place
        parent = manifest
        for key in path:
            parent = parent[key]
        how = self._one(["value", "value", "value", "value", "delete", "add", "move", "rename", "repeat"])
        if how == "value":
            parent[last] = copy.deepcopy(self._one(VALUES))
            return f"{place} = {str(parent[last])[:60]!r}"
        if how == "delete":
            del parent[last]
        elif how == "move":
            found = self.manifest
            for key in self._one(self._places):
                found = found[key]
            parent[last] = copy.deepcopy(found)
        elif how == "repeat" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        elif isinstance(parent, dict):
            parent["magic" if how == "add" else f"{last} "] = parent[last] if how == "add" else parent.pop(last)
        return f"{place} {how}"

    def _array(self) -> tuple[str, Any, bytes]:
        """Change the type, shape or values of an array."""
        arrays = dict(self.arrays)
        name = self._one(sorted(arrays))
        array = arrays[name].copy()
        how = self._one(["value", "value", "value", "type", "shape", "delete", "add", "longer", "shorter", "all"])
        value = self._one(NUMBERS)
        with np.errstate(all="ignore"):
            if how == "value" and array.size:
                array.ravel()[int(self._rng.integers(array.size))] = np.array(value).astype(array.dtype)
            elif how == "all":
                array = np.full_like(array, np.array(value).astype(array.dtype))
            elif how == "type":
                array = array.astype(self._one(DTYPES))
            elif how == "shape":
                array = self._one([array.T, array.ravel(), array[None], array[..., None], array[:0], array.reshape(-1)])
            elif how == "longer" and array.ndim:
                array = np.concatenate([array, array])
            elif how == "shorter" and array.ndim:
                array = array[: max(len(array) - 1, 0)]
        arrays[name] = array
        if how == "delete":
            del arrays[name]
        elif how == "add":
            arrays[f"{name}.more"] = array
        blob = safetensors.numpy.save({key: np.ascontiguousarray(value) for key, value in arrays.items()})
        return f"array {name}: {how} {value}", self.manifest, blob

    def _header(self) -> tuple[str, Any, bytes]:
        """Change the header of the tensors."""
        length = int.from_bytes(self.blob[:8], "little")
        header, data = json.loads(self.blob[8 : 8 + length]), self.blob[8 + length :]
        name, key = self._one(sorted(header)), self._one(["dtype", "shape", "data_offsets"])
        value = self._one([*VALUES, "F64", "BF16", "U8", [2**60], [2**62, 4], [-1], [0, 2**63], [1] * 50, [5, 1]])
        if self._rng.integers(4):
            header[name][key] = value
        else:
            header[name] = value
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        size = self._one([len(text), len(text), len(text), 0, 2**40, 2**63, len(text) + 8])
        return (
            f"header {name}.{key} = {str(value)[:60]!r}, {size}",
            self.manifest,
            size.to_bytes(8, "little") + text + data,
        )

    def _bytes(self) -> tuple[str, Any, bytes]:
        """Change bytes of either file."""
        how = self._one(["cut", "more", "flip", "cut manifest", "deep", "constant", "flip manifest", "empty", "other"])
        manifest, blob = sealed(self.manifest, self.blob)
        place = int(self._rng.integers(len(blob)))
        if how in ("cut", "more", "flip", "empty"):
            flipped = blob[:place] + bytes([blob[place] ^ 255]) + blob[place + 1 :]
            changed = {"cut": blob[:place], "more": blob + blob[:place], "flip": flipped, "empty": b""}[how]
            return f"bytes {how} {place}", self.manifest, changed
        place = int(self._rng.integers(len(manifest)))
        flipped = (
            manifest[:place] + bytes([manifest[place] ^ (1 << int(self._rng.integers(8)))]) + manifest[place + 1 :]
        )
        changed = {
            "cut manifest": manifest[:place],
            "deep": manifest[:-1] + f', "history": {DEEP}}}'.encode(),
            "constant": manifest.replace(b'"n_rows": ', b'"n_rows": NaN, "m": ', 1),
            "flip manifest": flipped,
            "other": self._one([b"null", b"[]", b"{}", b"\xff\xfe", b"1" * 10_000, b'"' + b"x" * 1000]),
        }[how]
        return f"bytes {how} {place}", changed, blob


def _places(value: Any, at: Place = ()) -> Iterator[Place]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*at, key))


def judge(folder: Path, table: pd.DataFrame) -> str:
    """Load a bundle and use it; anything but a model that works or the one error is raised."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = PTAD.load(folder, device="cpu")
        except BundleError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000
            return "refused"
        try:
            rows = table.head(3)
            assert np.isfinite(model.anomaly_score(rows)).all()
            assert np.isfinite(model.explain(rows).contribution_values).all()
        except UserError:  # a model that works, of another table
            return "other table"
    return "works"


def fuzz(mutations: Mutations, table: pd.DataFrame, scratch: Path, n: int) -> dict[str, int]:
    """Judge so many crafted bundles, and count the verdicts."""
    scratch.mkdir()
    verdicts: dict[str, int] = {}
    for name, manifest, blob in islice(mutations, n):
        (scratch / "manifest.json").write_bytes(manifest)
        (scratch / "tensors.safetensors").write_bytes(blob)
        try:
            verdict = judge(scratch, table)
        except Exception as error:
            raise AssertionError(f"{name}: {error!r}") from error
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
    return verdicts


def change_manifest(folder: Path, *place: Any, value: Any) -> None:
    """Change one entry of a manifest."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    parent = manifest
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    write(folder, manifest, (folder / "tensors.safetensors").read_bytes())


def write(folder: Path, manifest: dict[str, Any], blob: bytes) -> None:
    """Write both files with checksums that fit."""
    for name, content in zip(("manifest.json", "tensors.safetensors"), sealed(manifest, blob), strict=True):
        (folder / name).write_bytes(content)
