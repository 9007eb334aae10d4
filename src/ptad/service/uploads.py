"""Uploaded tables: received into temporary files, read in the :mod:`~ptad.service.sandbox`, then kept in the store."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from ptad.files import read_json, write_json
from ptad.service import sandbox_tasks
from ptad.service.problems import Problem
from ptad.service.sandbox import Sandbox
from ptad.service.settings import Limits
from ptad.service.store import Store, new_id, remove
from ptad.tables.source import LONGEST_LINE

METADATA, DATA = "table.json", "data"
WRITE_BYTES = 2**20  # written at a time


class Uploads:
    """The uploaded tables of the store."""

    def __init__(self, store: Store, limits: Limits, sandbox: Sandbox) -> None:
        self.store, self.limits, self.sandbox = store, limits, sandbox
        self.entries: dict[str, dict[str, Any]] = {}
        self._small = Slots("small uploads", limits.small_uploads_running)
        self._large = Slots("uploads", limits.uploads_running)
        for folder in sorted(store.tables.iterdir()):
            metadata = read_json(folder / METADATA)
            if isinstance(metadata, dict) and (folder / DATA).is_file():
                self.entries[folder.name] = metadata
            else:
                store.discard(folder)

    def get(self, identifier: str) -> dict[str, Any]:
        """Return the metadata of a table; raise a problem if there is none."""
        if identifier not in self.entries:
            raise Problem(
                404,
                "There is no table with this identifier. GET /v1/tables lists all tables; POST /v1/tables uploads one.",
            )
        return self.entries[identifier]

    def path(self, identifier: str) -> Path:
        """Return the file of a table."""
        self.get(identifier)
        return self.store.tables / identifier / DATA

    def same(self, first: str, second: str) -> bool:
        """Return whether two identifiers stand for the same upload, or for two uploads of the same bytes."""
        digests = [self.entries.get(identifier, {}).get("digest") for identifier in (first, second)]
        return first == second or (digests[0] is not None and digests[0] == digests[1])

    async def add(self, name: str, body: AsyncIterator[bytes], sheet: str | None = None) -> dict[str, Any]:
        """Keep a table, or one sheet of a workbook; it is listed once it has been read from end to end."""
        self._check_number()
        name = display_name(name)
        async with self.receive(body, name) as path:
            profile = await self.sandbox.run(sandbox_tasks.profile, path=path, name=name, sheet=sheet, missing=())
            identifier = new_id("t")
            digest = await asyncio.to_thread(_sha256, path)
            metadata = {"id": identifier, "name": name, "created": time.time(), "digest": digest, **profile}
            await asyncio.to_thread(write_json, path.parent / METADATA, metadata)
            self._check_number()  # others may have been added meanwhile
            path.parent.rename(self.store.tables / identifier)
        self.entries[identifier] = metadata
        return metadata

    async def profile(self, identifier: str, missing: Sequence[str]) -> dict[str, Any]:
        """Return the metadata of a table, its columns read anew with these markers of missing values."""
        metadata, data = self.get(identifier), self.path(identifier)
        async with self._temporary_file(is_small=metadata["bytes"] <= self.limits.small_upload_bytes) as path:
            path.hardlink_to(data)
            arguments = {"name": metadata["name"], "sheet": None, "missing": missing}
            return {**metadata, **await self.sandbox.run(sandbox_tasks.profile, path=path, **arguments)}

    async def delete(self, identifier: str) -> None:
        """Delete a table."""
        self.get(identifier)
        del self.entries[identifier]
        await asyncio.to_thread(self.store.discard, self.store.tables / identifier)

    @asynccontextmanager
    async def receive(self, body: AsyncIterator[bytes], name: str, *, is_table: bool = True) -> AsyncIterator[Path]:
        """Yield a file with the body, in a folder of its own, which is removed at the end unless it was renamed.

        A small body counts as a running upload only once all of it has arrived, a large one once it is known to be
        large: a slow sender blocks nobody. An endless header of a table is refused while it arrives.
        """
        start, is_complete = await read_start(body, self.limits.small_upload_bytes)
        if not start:
            raise Problem(400, f"{name} is empty. Send a table with a header and rows.")
        async with self._temporary_file(is_small=is_complete) as path:
            size = 0
            with path.open("wb") as file:
                async for block in rejoin(start, body):
                    await asyncio.to_thread(self._write, file, block)
                    if is_table and size < LONGEST_LINE <= size + len(block):
                        file.flush()
                        await asyncio.to_thread(sandbox_tasks.check_header, path, name, self.limits.columns)
                    size += len(block)
            yield path

    @asynccontextmanager
    async def _temporary_file(self, *, is_small: bool) -> AsyncIterator[Path]:
        """Take a slot and yield the path of a new file in a folder of its own, which is removed at the end."""
        self.store.check_space(self.limits.disk_reserve)
        folder = self.store.temporary_path()
        with self._small if is_small else self._large:
            try:
                folder.mkdir()
                yield folder / DATA
            finally:
                await asyncio.to_thread(remove, folder)

    def _check_number(self) -> None:
        if len(self.entries) >= self.limits.tables:
            raise Problem(429, f"This service keeps {self.limits.tables} tables. Delete one first.")

    def _write(self, file: IO[bytes], block: bytes) -> None:
        self.store.check_space(self.limits.disk_reserve)
        file.write(block)


class Slots:
    """A context manager that may be entered a number of times at once; further callers are refused."""

    def __init__(self, what: str, most: int) -> None:
        self.what, self.most, self.taken = what, most, 0

    def __enter__(self) -> None:
        if self.taken >= self.most:
            message = f"{self.taken} {self.what} are under way. Try again in a moment."
            raise Problem(503, message, headers={"Retry-After": "5"})
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self.taken -= 1


async def read_start(body: AsyncIterator[bytes], most: int) -> tuple[bytes, bool]:
    """Read a body until it ends or is larger than ``most``; return what was read, and whether it has ended."""
    start = bytearray()
    async for block in body:
        start += block
        if len(start) > most:
            return bytes(start), False
    return bytes(start), True


async def rejoin(start: bytes, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the start of a body that was read already, and the rest, in blocks of a useful size."""
    buffer = bytearray(start)
    async for block in body:
        buffer += block
        if len(buffer) >= WRITE_BYTES:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def display_name(name: str) -> str:
    """Return the last part of a file name that a caller gave: printable, at most 100 characters."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c for c in last if c.isprintable()).strip()[:100] or "table"
