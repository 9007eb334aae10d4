"""CSV and TSV. Cells are read as text, and types inferred from all of them (:mod:`ptad.tables.type_inference`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from ptad.errors import DataError
from ptad.tables.places import SPREADSHEET
from ptad.tables.source import READ_ERRORS, ReadOptions, Source, TableFile, check_names

# Unquoted, these mean "missing"; in quotes they are text.
NULL_WORDS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None")
BLOCK_BYTES = 1 << 22
DELIMITER = b"ptad.delimiter"  # metadata of an Arrow table: the delimiter of its file
_BINARY_FILES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF-")


def open_delimited(source: Source, options: ReadOptions, delimiter: str | None = None) -> TableFile:
    """Infer the types of the columns, and count the rows; without a delimiter, it is found in the first line."""
    file = DelimitedFile(source, options.encoding, delimiter)
    options.types.semicolons |= file.delimiter == ";"
    options.types.add(pa.schema([(name, pa.null()) for name in file.header]))
    n_rows = 0
    for batch in file.batches():
        options.types.add_text(options.without_missing(batch))
        n_rows += batch.num_rows
    return TableFile(file.header, n_rows, file.batches, SPREADSHEET)


def csv_writer(sink: Any, schema: pa.Schema, delimiter: str = ",") -> Any:
    """Open a writer of CSV; text is always quoted, so that it is read back as text."""
    return pcsv.CSVWriter(sink, schema, write_options=pcsv.WriteOptions(delimiter=delimiter))


@dataclass(frozen=True)
class DelimitedFile:
    """A file of delimited text in some encoding."""

    source: Source
    encoding: str
    fixed_delimiter: str | None = None

    @cached_property
    def delimiter(self) -> str:
        """The delimiter of the cells; if it is not fixed, from the first line."""
        if self.fixed_delimiter is not None:
            return self.fixed_delimiter
        with self._lines() as lines:
            first = next((line for line in lines if line.strip()), "")
        unquoted = "".join(first.split('"')[::2])
        return max(",;\t|", key=unquoted.count)  # of equal counts the comma, which is the first

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns."""
        label = self.source.label
        with self._lines() as lines:
            try:
                names: list[str] = next(filter(None, csv.reader(lines, delimiter=self.delimiter)), [])
            except csv.Error as error:
                raise DataError(
                    f"{label}: the header cannot be read ({error}). Look for a quote that is never closed, or shorten "
                    "the names."
                ) from error
        if sum(map(len, names)) + len(names) > BLOCK_BYTES:  # for Arrow the file would be empty
            raise self._too_long()
        if names and names[0].lower().startswith("sep="):
            raise DataError(f"{label}: the first line, 'sep=...', is a note to Excel. Remove it.")
        unnamed = [i for i, name in enumerate(names, start=1) if not name.strip()]
        if unnamed or not names:
            raise DataError(
                f"{label}: the header has no name for the column at position {', '.join(map(str, unnamed))} (counted "
                "from 1). Write a name there."
            )
        check_names(label, names)
        return names

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches in which every column is text, with missing cells as nulls."""
        parse = pcsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        read = pcsv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, encoding=self.encoding)
        convert = pcsv.ConvertOptions(
            column_types=dict.fromkeys(self.header, pa.large_string()),
            null_values=list(NULL_WORDS),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with self._errors(), self.source.open() as stream:
            yield from pcsv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert)

    @contextmanager
    def _lines(self) -> Iterator[Iterator[str]]:
        """The lines, without a byte order mark, of limited length."""
        plain = "utf-8-sig" if self.encoding.lower() in ("utf-8", "utf8") else self.encoding

        def bounded() -> Iterator[str]:
            while line := text.readline(BLOCK_BYTES + 1):
                if len(line) > BLOCK_BYTES:
                    raise self._too_long()
                yield line

        with self._errors(), self.source.open() as stream, io.TextIOWrapper(stream, plain, newline="") as text:
            yield bounded()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors into those with the file, the line and a remedy."""
        try:
            yield
        except (UnicodeError, LookupError) as error:
            raise self._wrong_encoding(error) from error
        except pa.ArrowInvalid as error:
            raise self._parse_error(error) from error
        except READ_ERRORS as error:
            raise self.source.damaged(error) from error

    def _parse_error(self, error: Exception) -> DataError:
        label, message = self.source.label, str(error)
        if "UTF8" in message:
            return self._wrong_encoding(error)
        if "Expected" in message and "columns" in message:
            line, n_cells = self._ragged_line()
            cells = "1 cell" if n_cells == 1 else f"{n_cells} cells"
            return DataError(
                f"{label}, line {line}: {cells} where the header has {len(self.header)}. Correct that line; a cell "
                "that holds the delimiter needs quotes."
            )
        if "straddl" in message:
            return self._too_long()
        if "Empty CSV" in message:
            return DataError(f"{label} has no rows. Give a file with a header and rows.")
        return DataError(f"{label} cannot be read: {message}. Correct the file.")

    def _wrong_encoding(self, error: Exception) -> DataError:
        with self.source.open() as stream:
            start = bytes(stream.read(4096))
        likely = "utf-16" if start.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin-1"
        if start.startswith(_BINARY_FILES) or (b"\0" in start and likely != "utf-16"):
            return DataError(
                f"{self.source.label} is not a table, but a binary file such as a picture or a document. Give CSV, "
                "TSV, Parquet, Feather, JSON lines or a workbook."
            )
        return self.source.not_text(self.encoding, error, likely)

    def _too_long(self) -> DataError:
        return DataError(
            f"{self.source.label}: a line is longer than {BLOCK_BYTES:,} bytes. Look for a quote that is never closed, "
            "or shorten its cells; otherwise it is not a table."
        )

    def _ragged_line(self) -> tuple[int, int]:
        """The first line with another number of cells than the header, and that number.

        Arrow counts rows without empty lines and line breaks in quotes, so its number is not that of the line.
        """
        n_columns = len(self.header)
        with self._lines() as lines, suppress(csv.Error):  # a cell that is too long for Python's reader
            rows, line = csv.reader(lines, delimiter=self.delimiter), 1
            for row in rows:
                if row and len(row) != n_columns:
                    return line, len(row)
                line = rows.line_num + 1
        return line, n_columns
