"""The models that are served: those of the store, and folders named at the start, which are never changed."""

from __future__ import annotations

import asyncio
import copy
import re
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptad.errors import BundleError
from ptad.estimator import PTAD
from ptad.files import read_json, write_json
from ptad.jobs.info import describe_model
from ptad.parallel import n_processors
from ptad.service.error_messages import spell_for_http, summary_for_http
from ptad.service.problems import Problem
from ptad.service.settings import ServiceSettings
from ptad.service.store import BUNDLE, Store
from ptad.storage import MANIFEST

METADATA = "about.json"


@dataclass
class ServedModel:
    """A model that is served."""

    id: str  # in requests
    bundle: Path  # the model folder
    metadata: dict[str, Any]  # name, created, false_alarm_rate (None: as it was saved), and the origin of the model
    fixed: bool  # whether it was named at the start and does not belong to the store

    @property
    def display_name(self) -> str:
        """The name with the version, if there is more than one."""
        name, version = str(self.metadata["name"]), self.metadata.get("version", 1)
        return f"{name}, version {version}" if version > 1 else name

    @property
    def root(self) -> str:
        """The identifier of the first version of the model."""
        return str(self.metadata.get("root", self.id))

    def summary(self) -> dict[str, Any]:
        """Return the entry in the list of models."""
        names = ("training_rows", "columns_used", "table", "parent", "made_by", "new_rows")
        return {
            "id": self.id,
            "name": self.metadata["name"],
            "created": self.metadata["created"],
            "fixed": self.fixed,
            "version": self.metadata.get("version", 1),
            **{name: self.metadata.get(name) for name in names},
        }


class Models:
    """Lists models, loads them on demand and keeps the recently used ones in memory."""

    def __init__(self, store: Store, settings: ServiceSettings) -> None:
        self.store, self.settings = store, settings
        self.entries: dict[str, ServedModel] = {}
        self._loaded: OrderedDict[str, PTAD] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}
        self._descriptions: dict[str, dict[str, Any]] = {}
        for folder in sorted(store.models.iterdir()):
            metadata = read_json(folder / METADATA)
            if isinstance(metadata, dict) and (folder / BUNDLE / MANIFEST).is_file():
                self.entries[folder.name] = ServedModel(folder.name, folder / BUNDLE, metadata, fixed=False)
        for path in settings.models:
            self._add_fixed(path)

    def _add_fixed(self, path: Path) -> None:
        model = _load(path, self.settings.device)  # a damaged model is an error at the start, not in a request
        name = path.resolve().name
        base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "model"
        candidates = (base if not i else f"{base}-{i}" for i in range(10_000))
        identifier = next(candidate for candidate in candidates if candidate not in self.entries)
        metadata = {"name": name, "created": (path / MANIFEST).stat().st_mtime, "false_alarm_rate": None}
        self.entries[identifier] = ServedModel(identifier, path, metadata, fixed=True)
        self._cache(identifier, model)

    def get(self, identifier: str) -> ServedModel:
        """Return the entry of a model; raise a problem if there is none."""
        entry = self.entries.get(identifier)
        if entry is None:
            raise Problem(404, "There is no model with this identifier. GET /v1/models lists all models.")
        return entry

    async def load(self, identifier: str) -> PTAD:
        """Return the model itself, from memory or from the disk."""
        entry = self.get(identifier)
        if (model := self._loaded.get(identifier)) is not None:
            self._loaded.move_to_end(identifier)
            return model
        async with self._locks.setdefault(identifier, asyncio.Lock()):
            if (model := self._loaded.get(identifier)) is None:
                try:
                    model = await asyncio.to_thread(self._read, entry)
                except BundleError as error:
                    reason = error.message.phrase(spell_for_http)
                    raise Problem(409, f"The model {identifier} cannot be read. {reason}") from error
                self._cache(identifier, model)
        return model

    def _read(self, entry: ServedModel) -> PTAD:
        model = _load(entry.bundle, self.settings.device, str(entry.metadata["name"]))
        rate = entry.metadata.get("false_alarm_rate")
        return model if rate is None else model.set_false_alarm_rate(rate)

    def _cache(self, identifier: str, model: PTAD) -> None:
        self._loaded[identifier] = model
        self._loaded.move_to_end(identifier)
        while len(self._loaded) > self.settings.limits.models_loaded:
            self._loaded.popitem(last=False)

    async def set_rate(self, identifier: str, rate: float | str) -> None:
        """Change the target false-alarm rate; calls under way keep the old one."""
        entry = self.get(identifier)
        model = copy.copy(await self.load(identifier)).set_false_alarm_rate(rate)
        self._update(entry, false_alarm_rate=rate)
        self._cache(identifier, model)

    def rename(self, identifier: str, name: str) -> None:
        """Change the displayed name."""
        self._update(self.get(identifier), name=name)

    def _update(self, entry: ServedModel, **values: Any) -> None:
        metadata = {**entry.metadata, **values}
        if not entry.fixed:
            write_json(entry.bundle.parent / METADATA, metadata)
        entry.metadata = metadata

    async def delete(self, identifier: str) -> None:
        """Delete a model of the store."""
        entry = self.get(identifier)
        if entry.fixed:
            raise Problem(
                409, "This model was given at start-up and cannot be deleted. Restart the service without it."
            )
        del self.entries[identifier]
        self._loaded.pop(identifier, None)
        self._descriptions.pop(identifier, None)
        self._locks.pop(identifier, None)
        await asyncio.to_thread(self.store.discard, entry.bundle.parent)

    def publish(self, folder: Path, metadata: dict[str, Any], identifier: str) -> None:
        """Move the folder of a finished model into the store, by one rename: a kill leaves it here or there."""
        target = self.store.models / identifier
        if not target.exists():
            write_json(folder / METADATA, metadata)
            folder.rename(target)
        metadata = read_json(target / METADATA) or metadata
        self.entries[identifier] = ServedModel(identifier, target / BUNDLE, metadata, fixed=False)

    def next_version(self, parent: str, made_by: str, table_id: str, **values: Any) -> dict[str, Any]:
        """Return metadata of a model made from its parent and a table; the parent may have been deleted meanwhile."""
        entry = self.entries.get(parent) or ServedModel(parent, Path(), {"name": "model"}, fixed=False)
        versions = [other.metadata.get("version", 1) for other in self.entries.values() if other.root == entry.root]
        fitted_on, tables = entry.metadata.get("fitted_on"), list(entry.metadata.get("training_tables", ()))
        if made_by == "update":  # its rows are now reference rows, and no detector was fitted without an older row
            fitted_on, tables = None, [*tables, table_id]
        return new_metadata(
            entry.metadata["name"],
            made_by=made_by,
            parent=parent,
            root=entry.root,
            version=1 + max(versions, default=1),
            fitted_on=fitted_on,
            training_tables=tables,
            **values,
        )

    async def describe(self, identifier: str) -> dict[str, Any]:
        """Return all that callers may know of a model; no path of this machine."""
        entry = self.get(identifier)
        model = await self.load(identifier)
        description = self._descriptions.get(identifier)
        if description is None:
            description = summary_for_http(await asyncio.to_thread(describe_model, entry.bundle))
            self._descriptions[identifier] = description
        current: dict[str, Any] = {}
        if model.detector_.calibration is not None:  # the rate may have been changed since
            current = {"false_alarm_rate": float(model.false_alarm_rate_), "threshold": -float(model.offset_)}
        if entry.metadata.get("made_by") == "update":  # the model folder counts the new rows only
            current["training_rows"] = None
        return entry.summary() | description | current


def _load(bundle: Path, device: str, label: str | None = None) -> PTAD:
    model = PTAD.load(bundle, device=device, label=label)  # errors name the model by its label, not by its folder
    if "torch" in sys.modules:  # one thread scores, one serves: more threads of torch would only compete with them
        import torch

        torch.set_num_threads(max(1, min(torch.get_num_threads(), n_processors() - 1)))
    return model


def new_metadata(name: str, **values: Any) -> dict[str, Any]:
    """Return what the store keeps beside a new model."""
    return {"name": name, "created": time.time(), "false_alarm_rate": None, **values}
