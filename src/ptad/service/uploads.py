"""Tables that callers send: kept under names made here, read by :mod:`ptad.service.sandbox` before anything else."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import IO, Any

from ptad.errors import DataError
from ptad.service import audit
from ptad.service.disk import EXIT_FULL, FULL, check_room
from ptad.service.problems import Problem
from ptad.service.sandbox import check_header
from ptad.service.settings import Limits
from ptad.service.store import Store, new_id, read_json, remove, write_json
from ptad.tables import Schema
from ptad.tables.sources import LONGEST_LINE

ABOUT, DATA = "table.json", "data"
READERS = 2  # processes that read uploads at a time


class Uploads:
    """The tables of the store."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.store, self.limits = store, limits
        self.entries: dict[str, dict[str, Any]] = {}
        self._readers = asyncio.Semaphore(READERS)
        self._small = Places("small uploads", limits.small_uploads_running)
        self._large = Places("uploads", limits.uploads_running)
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
            found = await self.read(path, name, sheet=sheet)
            self._check_room()  # others may have come meanwhile
            identifier = new_id("t")
            digest = await asyncio.to_thread(_digest, path)
            about = {"id": identifier, "name": name, "created": time.time(), "digest": digest, **found}
            write_json(path.parent / ABOUT, about)
            path.parent.rename(self.store.tables / identifier)
        self.entries[identifier] = about
        audit.note(table=identifier)
        return about

    async def described(self, identifier: str, missing: Sequence[str]) -> dict[str, Any]:
        """What the columns of a table are when these markers stand for missing values."""
        about, data = self.get(identifier), self.data(identifier)
        check_room(self.store.root, self.limits.disk_reserve)
        folder = self.store.scratch()
        with self._small if about["bytes"] <= self.limits.small_upload_bytes else self._large:
            try:
                folder.mkdir()
                (folder / DATA).hardlink_to(data)
                return {**about, **await self.read(folder / DATA, about["name"], missing=missing)}
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
    async def spooled(self, body: AsyncIterator[bytes], name: str) -> AsyncIterator[Path]:
        """The body as a file in a folder of its own, which is gone afterwards unless it was renamed.

        It has a place among the uploads only once it is small and has arrived, or is known to be large: whoever sends a
        byte now and then keeps nobody out. An endless header is refused as soon as it is known to be one.
        """
        check_room(self.store.root, self.limits.disk_reserve)
        start, whole = await _beginning(body, self.limits.small_upload_bytes)
        if not start:
            raise Problem(400, f"{name} is empty. Send a table with a header and rows.")
        folder = self.store.scratch()
        path = folder / DATA
        with self._small if whole else self._large:
            try:
                folder.mkdir()
                size = 0
                with path.open("wb") as file:
                    async for block in _continued(start, body):
                        await asyncio.to_thread(self._write, file, block)
                        if size < LONGEST_LINE <= size + len(block):
                            file.flush()
                            await asyncio.to_thread(self._check_header, path, name)
                        size += len(block)
                yield path
            finally:
                await asyncio.to_thread(remove, folder)

    def _write(self, file: IO[bytes], block: bytes) -> None:
        check_room(self.store.root, self.limits.disk_reserve)
        file.write(block)

    def _check_header(self, path: Path, name: str) -> None:
        try:
            check_header(path, self.limits.columns)
        except DataError as error:
            raise Problem(400, str(error).replace(str(path), name)) from None

    async def read(
        self,
        path: Path,
        name: str,
        *,
        schema: Schema | None = None,
        rows_file: Path | None = None,
        append: bool = False,
        sheet: str | None = None,
        missing: Sequence[str] = (),
        strict: bool = False,
    ) -> dict[str, Any]:
        """Let another process look at the table; with a schema, also check and convert it for scoring."""
        limits = self.limits
        folder = path.parent
        spec: dict[str, Any] = {
            "path": str(path),
            "name": name,
            "result": str(folder / "result.json"),
            "memory": limits.intake_memory,
            "seconds": limits.intake_seconds,
            "table_bytes": limits.table_bytes,
            "rows": limits.rows,
            "columns": limits.columns,
            "schema": None,
            "append": append,
            "sheet": sheet,
            "missing": list(missing),
            "strict": strict,
            "rows_file": str(rows_file),
        }
        if schema is not None:
            spec["schema"] = str(folder / "schema.json")
            await asyncio.to_thread(write_json, folder / "schema.json", schema.to_json())
        await asyncio.to_thread(write_json, folder / "spec.json", spec)
        async with self._readers:
            code = await self._run(folder / "spec.json", name)
        if code == EXIT_FULL:
            raise OSError(errno.ENOSPC, FULL)
        result = await asyncio.to_thread(read_json, folder / "result.json")
        for scrap in ("spec.json", "schema.json", "result.json", "plain"):
            remove(folder / scrap)
        if result is None:
            raise Problem(
                400, f"{name} could not be read with the memory and time that this service gives to one upload."
            )
        if "error" in result:
            raise Problem(400, result["error"])
        found: dict[str, Any] = result["ok"]
        return found

    async def _run(self, spec: Path, name: str) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ptad.service.sandbox",
            str(spec),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return await asyncio.wait_for(process.wait(), self.limits.intake_seconds)
        except TimeoutError:
            raise Problem(
                400, f"Reading {name} takes longer than {self.limits.intake_seconds:g} s. Send less."
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


class Places:
    """So many at a time; a context that refuses to be entered when all places are taken."""

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


async def _beginning(body: AsyncIterator[bytes], most: int) -> tuple[bytes, bool]:
    """The beginning of a body, and whether that is all of it."""
    start = bytearray()
    async for block in body:
        start += block
        if len(start) > most:
            return bytes(start), False
    return bytes(start), True


async def _continued(start: bytes, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield start
    async for block in body:
        yield block


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
