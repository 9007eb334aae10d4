"""Bodies of JSON rows: read piece by piece, large ones beside the event loop, a few at a time.

A JSON parser that is given 16 MiB keeps every other thread of the process waiting until it is done. Here a body is
taken apart row by row: other threads, and above all the event loop, get their turn between two rows, and what does not
fit the limits is refused where it stands, not after all of it has become objects.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pyarrow as pa

from ptad.errors import DataError
from ptad.service.problems import Problem
from ptad.service.rows import Row
from ptad.service.settings import Limits

INLINE_BYTES = 64 * 1024  # parsed at once, in about a millisecond
LARGE_AT_A_TIME = 2  # from parsing to the answer: what rows take as objects is several times their text
RELEASE_SECONDS = 1.0  # after a large body
MOST_OF_A_ROW = 2**20  # characters
FIRST_WINDOW = 4096
_FORM = 'Send {"rows": [{"column": value, ...}, ...]}.'
_PLAIN = frozenset((str, int, float, bool, type(None)))
_SPACE = re.compile(r"[ \t\r\n]*")


class RowBodies:
    """Reads the bodies of calls that send rows."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._large = asyncio.Semaphore(LARGE_AT_A_TIME)
        self._release: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def read(self, stream: AsyncIterator[bytes], most_rows: int) -> AsyncIterator[list[Row]]:
        """The rows of a body, to be used inside the context only: then others have their turn."""
        parse = partial(parse_rows, await self._collected(stream), most_rows, self.limits.columns)
        if len(parse.args[0]) <= INLINE_BYTES:
            yield parse()
            return
        try:
            async with asyncio.timeout(self.limits.request_seconds):
                await self._large.acquire()
        except TimeoutError:
            raise Problem(503, "Too many large JSON bodies are under way. Try again later.") from None
        try:
            rows = await asyncio.to_thread(parse)
            del parse
            yield rows
        finally:
            self._large.release()
            self._release_later()

    async def _collected(self, stream: AsyncIterator[bytes]) -> bytearray:
        most, held = self.limits.json_bytes, bytearray()
        async for block in stream:
            held += block
            if len(held) > most:
                raise Problem(413, f"A JSON body may have {most:,} bytes. Send fewer rows, or a CSV or Parquet body.")
        return held

    def _release_later(self) -> None:
        """Give memory back once the objects of a large body are gone."""
        if self._release is None:
            self._release = asyncio.get_running_loop().call_later(RELEASE_SECONDS, self._release_now)

    def _release_now(self) -> None:
        self._release = None
        asyncio.get_running_loop().run_in_executor(None, release_memory)


def release_memory() -> None:
    """Give memory that is free inside the process back to the system."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def parse_rows(body: bytes | bytearray, most_rows: int, most_columns: int) -> list[Row]:
    """Read ``{"rows": [...]}``; what else the object holds is passed over."""
    try:
        rows = _Cursor(str(body, "utf-8-sig")).rows(most_rows, most_columns)
    except UnicodeDecodeError as error:
        raise _not_json("it is not UTF-8 text") from error
    except _NotANumber as error:
        raise _not_json(f"{error} is not a JSON number, send null for a missing one") from error
    except RecursionError as error:
        raise _not_json("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise _not_json(str(error)) from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise _not_json("a number is too long") from error
    if rows is None:
        raise DataError(f'The body has no list "rows". {_FORM}')
    if not rows:
        raise DataError('"rows" is empty. Send at least one row.')
    return rows


class _NotANumber(ValueError):
    pass


def _not_json(what: str) -> DataError:
    return DataError(f"The body is not JSON: {what}. {_FORM}")


def _no_constant(name: str) -> Any:
    raise _NotANumber(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


class _Cursor:
    """A place in a text of JSON that moves on value by value."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self._window = text, 0, FIRST_WINDOW
        self._skip()

    def rows(self, most_rows: int, most_columns: int) -> list[Row] | None:
        """The rows, or None if there is no list of them."""
        found = None
        if not self._took("{"):
            self._value()
        elif not self._took("}"):
            while True:
                if self.text[self.place : self.place + 1] != '"':
                    raise self._wrong("Expecting property name enclosed in double quotes")
                name = self._value()
                self._take(":")
                if name == "rows" and self._took("["):
                    found = self._list_of_rows(most_rows, most_columns)
                else:
                    self._value()
                    found = None if name == "rows" else found
                if not self._took(","):
                    break
            self._take("}")
        if self.place < len(self.text):
            raise self._wrong("Extra data")
        return found

    def _list_of_rows(self, most_rows: int, most_columns: int) -> list[Row]:
        rows: list[Row] = []
        names: dict[str, str] = {}  # one text for each name, not one per row
        if self._took("]"):
            return rows
        while True:
            row = self._value()
            if len(rows) == most_rows:
                raise DataError(
                    f'"rows" holds more than {most_rows:,} rows, the limit of one call. Send fewer, or a CSV or '
                    "Parquet body."
                )
            if type(row) is not dict:
                raise DataError(f"Row {len(rows)} (counted from 0) is not an object of column names and values.")
            row = {names.setdefault(name, name): value for name, value in row.items()}
            if len(names) > most_columns:
                raise DataError(
                    f"Row {len(rows)} (counted from 0): the rows have more than {most_columns:,} different columns, "
                    "the limit of this service. Send fewer."
                )
            if not _PLAIN.issuperset(map(type, row.values())):
                # a column that the model does not use may hold anything: that it is a list or an object is enough
                row = {name: v if type(v) in _PLAIN else type(v)() for name, v in row.items()}
            rows.append(row)
            if not self._took(","):
                break
        self._take("]")
        return rows

    def _value(self) -> Any:
        """Read one value. Only a window of the text is looked at, which grows as far as a row may be long."""
        start, size = self.place, self._window
        while True:
            piece = self.text[start : start + size]
            cut = start + size < len(self.text)
            try:
                found, end = _DECODER.raw_decode(piece)
                if not cut or end < len(piece):
                    break
            except json.JSONDecodeError as error:
                # an error at the very end of a window, or a string without an end, may come from the cut
                if not cut or (error.pos < len(piece) - 12 and not error.msg.startswith("Unterminated")):
                    raise json.JSONDecodeError(error.msg, self.text, start + error.pos) from None
            if size >= MOST_OF_A_ROW:
                raise DataError(f"A row, beginning at character {start:,}, has more than {size:,} characters.")
            size = min(size * 4, MOST_OF_A_ROW)
        self._window = max(FIRST_WINDOW, min(2 * end, MOST_OF_A_ROW))
        self.place = start + end
        self._skip()
        return found

    def _skip(self) -> None:
        self.place = _SPACE.match(self.text, self.place).end()  # type: ignore[union-attr]

    def _took(self, sign: str) -> bool:
        if not self.text.startswith(sign, self.place):
            return False
        self.place += 1
        self._skip()
        return True

    def _take(self, sign: str) -> None:
        if not self._took(sign):
            raise self._wrong(f"Expecting '{sign}' delimiter")

    def _wrong(self, what: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(what, self.text, self.place)
