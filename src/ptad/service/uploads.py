"""Tables that callers send: kept under names made here, read in a :mod:`~ptad.service.sandbox` before anything else."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import IO, Any

from ptad.files import read_json, write_json
from ptad.service import bodies
from ptad.service.problems import Problem
from ptad.service.sandbox import Sandbox
from ptad.service.settings import Limits
from ptad.service.store import Store, check_room, new_id, remove
from ptad.tables.sources import LONGEST_LINE

ABOUT, DATA = "table.json", "data"
PIECE = 2**20  # bytes that are written at a time


class Uploads:
    """The tables of the store."""

    def __init__(self, store: Store, limits: Limits, sandbox: Sandbox) -> None:
        self.store, self.limits, self.sandbox = store, limits, sandbox
        self.entries: dict[str, dict[str, Any]] = {}
        self._small = Slots("small uploads", limits.small_uploads_running)
        self._large = Slots("uploads", limits.uploads_running)
        for folder in sorted(store.tables.iterdir()):
            about = read_json(folder / ABOUT)
            if isinstance(about, dict) and (folder / DATA).is_file():
                self.entries[folder.name] = about
            else:
                store.discard(folder)

    def get(self, identifier: str) -> dict[str, Any]:
        """What is known of a table, or a problem."""
        if identifier not in self.entries:
            raise Problem(404, "There is no table of that name. Upload it with POST /v1/tables.")
        return self.entries[identifier]

    def data(self, identifier: str) -> Path:
        """The file itself."""
        self.get(identifier)
        return self.store.tables / identifier / DATA

    def same(self, first: str, second: str) -> bool:
        """Whether two names are of one table: the same upload, or the same bytes sent again."""
        digests = [self.entries.get(identifier, {}).get("digest") for identifier in (first, second)]
        return first == second or (digests[0] is not None and digests[0] == digests[1])

    async def add(self, name: str, body: AsyncIterator[bytes], sheet: str | None = None) -> dict[str, Any]:
        """Keep a table, of a workbook the sheet; it appears once it was read from end to end."""
        self._check_room()
        name = shown_name(name)
        async with self.spooled(body, name) as path:
            found = await self.sandbox.run(bodies.profile, path=path, name=name, sheet=sheet, missing=())
            identifier = new_id("t")
            digest = await asyncio.to_thread(_digest, path)
            about = {"id": identifier, "name": name, "created": time.time(), "digest": digest, **found}
            await asyncio.to_thread(write_json, path.parent / ABOUT, about)
            self._check_room()  # others may have come meanwhile
            path.parent.rename(self.store.tables / identifier)
        self.entries[identifier] = about
        return about

    async def described(self, identifier: str, missing: Sequence[str]) -> dict[str, Any]:
        """What the columns of a table are when these markers stand for missing values."""
        about, data = self.get(identifier), self.data(identifier)
        check_room(self.store.root, self.limits.disk_reserve)
        folder = self.store.scratch()
        with self._small if about["bytes"] <= self.limits.small_upload_bytes else self._large:
            try:
                folder.mkdir()
                path = folder / DATA
                path.hardlink_to(data)
                wish = {"name": about["name"], "sheet": None, "missing": missing}
                return {**about, **await self.sandbox.run(bodies.profile, path=path, **wish)}
            finally:
                await asyncio.to_thread(remove, folder)

    def _check_room(self) -> None:
        if len(self.entries) >= self.limits.tables:
            raise Problem(429, f"This service keeps {self.limits.tables} tables. Delete one first.")

    async def delete(self, identifier: str) -> None:
        """Forget a table."""
        self.get(identifier)
        del self.entries[identifier]
        await asyncio.to_thread(self.store.discard, self.store.tables / identifier)

    @contextlib.asynccontextmanager
    async def spooled(self, body: AsyncIterator[bytes], name: str, *, is_table: bool = True) -> AsyncIterator[Path]:
        """The body as a file in a folder of its own, which is gone afterwards unless it was renamed.

        It has a place among the uploads only once it is small and has arrived, or is known to be large: whoever sends a
        byte now and then keeps nobody out. An endless header of a table is refused as soon as it is known to be one.
        """
        check_room(self.store.root, self.limits.disk_reserve)
        start, whole = await beginning(body, self.limits.small_upload_bytes)
        if not start:
            raise Problem(400, f"{name} is empty. Send a table with a header and rows.")
        folder = self.store.scratch()
        path = folder / DATA
        with self._small if whole else self._large:
            try:
                folder.mkdir()
                size = 0
                with path.open("wb") as file:
                    async for block in continued(start, body):
                        await asyncio.to_thread(self._write, file, block)
                        if is_table and size < LONGEST_LINE <= size + len(block):
                            file.flush()
                            await asyncio.to_thread(bodies.check_header, path, name, self.limits.columns)
                        size += len(block)
                yield path
            finally:
                await asyncio.to_thread(remove, folder)

    def _write(self, file: IO[bytes], block: bytes) -> None:
        check_room(self.store.root, self.limits.disk_reserve)
        file.write(block)


class Slots:
    """So many at a time; a context that refuses to be entered when all are taken."""

    def __init__(self, what: str, most: int) -> None:
        self.what, self.most, self.taken = what, most, 0

    def __enter__(self) -> None:
        if self.taken >= self.most:
            raise Problem(
                503, f"{self.taken} {self.what} are under way. Try again in a moment.", headers={"Retry-After": "5"}
            )
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self.taken -= 1


async def beginning(body: AsyncIterator[bytes], most: int) -> tuple[bytes, bool]:
    """The beginning of a body, and whether that is all of it."""
    start = bytearray()
    async for block in body:
        start += block
        if len(start) > most:
            return bytes(start), False
    return bytes(start), True


async def continued(start: bytes, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The whole of a body whose beginning was taken, in larger pieces."""
    held = bytearray(start)
    async for block in body:
        held += block
        if len(held) >= PIECE:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def shown_name(name: str) -> str:
    """A caller's file name as far as it can be shown: its last part, printable, of bounded length."""
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(c for c in last if c.isprintable()).strip()[:100]
    try:
        json.dumps(printable, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        printable = printable.encode("ascii", "ignore").decode()
    return printable or "table"
