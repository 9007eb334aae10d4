"""The models that can be asked: those of the store, and those named at the start, which are never changed."""

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
from ptad.service.problems import Problem
from ptad.service.reasons import in_words_of_http, over_http
from ptad.service.settings import ServiceSettings
from ptad.service.store import BUNDLE, Store
from ptad.storage import MANIFEST

ABOUT = "about.json"


@dataclass
class ServedModel:
    """A model that can be asked.

    Attributes
    ----------
    id : str
        What callers name it by.
    bundle : Path
        The model folder.
    about : dict
        ``name``, ``created``, ``false_alarm_rate`` (None: as it was saved), and what its fit said.
    fixed : bool
        Whether it was named at the start and does not belong to the store.
    """

    id: str
    bundle: Path
    about: dict[str, Any]
    fixed: bool


class Models:
    """Lists models, loads them on demand and keeps the recently used ones in memory."""

    def __init__(self, store: Store, settings: ServiceSettings) -> None:
        self.store, self.settings = store, settings
        self.entries: dict[str, ServedModel] = {}
        self._loaded: OrderedDict[str, PTAD] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}
        self._described: dict[str, dict[str, Any]] = {}
        for folder in sorted(store.models.iterdir()):
            about = read_json(folder / ABOUT)
            if isinstance(about, dict) and (folder / BUNDLE / MANIFEST).is_file():
                self.entries[folder.name] = ServedModel(folder.name, folder / BUNDLE, about, fixed=False)
        for path in settings.models:
            self._add_fixed(path)

    def _add_fixed(self, path: Path) -> None:
        model = _loaded(path, self.settings.device)  # a damaged model stops the start, not a caller
        plain = re.sub(r"[^a-z0-9]+", "-", path.resolve().name.lower()).strip("-")[:40] or "model"
        identifier = next(
            name for i in range(10_000) if (name := plain if not i else f"{plain}-{i}") not in self.entries
        )
        created = (path / MANIFEST).stat().st_mtime
        about = {"name": path.resolve().name, "created": created, "false_alarm_rate": None}
        self.entries[identifier] = ServedModel(identifier, path, about, fixed=True)
        self._keep(identifier, model)

    def get(self, identifier: str) -> ServedModel:
        """The entry of that name, or a problem."""
        entry = self.entries.get(identifier)
        if entry is None:
            raise Problem(404, "There is no model of that name. GET /v1/models lists those there are.")
        return entry

    async def load(self, identifier: str) -> PTAD:
        """The model itself, from memory or from disk."""
        entry = self.get(identifier)
        if (model := self._loaded.get(identifier)) is not None:
            self._loaded.move_to_end(identifier)
            return model
        async with self._locks.setdefault(identifier, asyncio.Lock()):
            if (model := self._loaded.get(identifier)) is None:
                try:
                    model = await asyncio.to_thread(self._read, entry)
                except BundleError as error:
                    reason = error.message.phrase(over_http)
                    raise Problem(409, f"The model {identifier} cannot be read. {reason}") from error
                self._keep(identifier, model)
        return model

    def _read(self, entry: ServedModel) -> PTAD:
        model = _loaded(entry.bundle, self.settings.device, str(entry.about["name"]))
        rate = entry.about.get("false_alarm_rate")
        return model if rate is None else model.set_false_alarm_rate(rate)

    def _keep(self, identifier: str, model: PTAD) -> None:
        self._loaded[identifier] = model
        self._loaded.move_to_end(identifier)
        while len(self._loaded) > self.settings.limits.models_loaded:
            self._loaded.popitem(last=False)

    async def set_rate(self, identifier: str, rate: float | str) -> None:
        """Change the target false-alarm rate; calls under way end with the old one."""
        entry = self.get(identifier)
        model = copy.copy(await self.load(identifier)).set_false_alarm_rate(rate)
        self._change(entry, false_alarm_rate=rate)
        self._keep(identifier, model)

    def rename(self, identifier: str, name: str) -> None:
        """Change the name that people see."""
        self._change(self.get(identifier), name=name)

    def _change(self, entry: ServedModel, **values: Any) -> None:
        about = {**entry.about, **values}
        if not entry.fixed:
            write_json(entry.bundle.parent / ABOUT, about)
        entry.about = about

    async def delete(self, identifier: str) -> None:
        """Remove a model of the store."""
        entry = self.get(identifier)
        if entry.fixed:
            raise Problem(409, "This model was named when the service was started. Stop serving it there.")
        del self.entries[identifier]
        self._loaded.pop(identifier, None)
        self._described.pop(identifier, None)
        self._locks.pop(identifier, None)
        await asyncio.to_thread(self.store.discard, entry.bundle.parent)

    def publish(self, folder: Path, about: dict[str, Any], identifier: str) -> ServedModel:
        """Take a folder with a finished model into the store, by one rename: a kill leaves it there or here."""
        target = self.store.models / identifier
        if not target.exists():
            write_json(folder / ABOUT, about)
            folder.rename(target)
        entry = ServedModel(identifier, target / BUNDLE, read_json(target / ABOUT) or about, fixed=False)
        self.entries[identifier] = entry
        return entry

    def next_version(self, identifier: str, made_by: str, table_id: str, **more: Any) -> dict[str, Any]:
        """What is kept beside a model that was updated or recalibrated with a table; its parent may be gone by now."""
        about = self.entries[identifier].about if identifier in self.entries else {"name": "model"}
        root = about.get("root", identifier)
        versions = [e.about.get("version", 1) for e in self.entries.values() if root in (e.id, e.about.get("root"))]
        fitted_on, tables = about.get("fitted_on"), list(about.get("training_tables", ()))
        if made_by == "update":  # its rows are in the model; no detector was fitted without one of the older rows
            fitted_on, tables = None, [*tables, table_id]
        return new_about(
            about["name"],
            made_by=made_by,
            parent=identifier,
            root=root,
            version=1 + max(versions, default=1),
            fitted_on=fitted_on,
            training_tables=tables,
            **more,
        )

    async def describe(self, identifier: str) -> dict[str, Any]:
        """Everything about a model, without a path of this machine."""
        entry = self.get(identifier)
        model = await self.load(identifier)
        found = self._described.get(identifier)
        if found is None:
            found = in_words_of_http(await asyncio.to_thread(describe_model, entry.bundle))
            self._described[identifier] = found
        if model.detector_.calibration is not None:  # the rate may have been changed since
            found = found | {"false_alarm_rate": float(model.false_alarm_rate_), "threshold": -float(model.offset_)}
        if entry.about.get("made_by") == "update":  # the model folder counts the new rows only
            found = found | {"training_rows": None}
        return {**self.summary(entry), **found}

    def summary(self, entry: ServedModel) -> dict[str, Any]:
        """A line of the list."""
        about = entry.about
        shown = ("training_rows", "columns_used", "table", "parent", "made_by", "new_rows")
        return {
            "id": entry.id,
            "name": about["name"],
            "created": about["created"],
            "fixed": entry.fixed,
            "version": about.get("version", 1),
            **{name: about.get(name) for name in shown},
        }


def _loaded(bundle: Path, device: str, label: str | None = None) -> PTAD:
    model = PTAD.load(bundle, device=device, label=label)  # callers know a model by its name, not by its folder
    if "torch" in sys.modules:  # one thread scores, one serves: more of torch's would only fight over the processors
        import torch

        torch.set_num_threads(max(1, min(torch.get_num_threads(), n_processors() - 1)))
    return model


def version_name(about: dict[str, Any]) -> str:
    """A model as people tell it from its other versions."""
    version = about.get("version", 1)
    return f"{about['name']}, version {version}" if version > 1 else str(about["name"])


def new_about(name: str, **more: Any) -> dict[str, Any]:
    """What is kept beside a new model."""
    return {"name": name, "created": time.time(), "false_alarm_rate": None, **more}
