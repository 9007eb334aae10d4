"""CSV and TSV: read as text, typed only after every value of the file was seen.

A streaming reader that guesses types from its first block fails on the first surprise, and turns the code 00501 into
the number 501. So the content is read twice: once to find for each column the narrowest type that holds all values, and
once to convert.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from ptad.errors import DataError
from ptad.tables.number_format import NumberSigns, NumberTally, decide_signs
from ptad.tables.sources import DAMAGE, Source, check_distinct
from ptad.tables.values import CODE_TEXT, cleaned, looks_like

# Unquoted, these mean "missing"; in quotes they are text.
NULL_WORDS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
BLOCK_BYTES = 1 << 22
DELIMITER = b"ptad.delimiter"  # where the schema of a table says what separated its cells
_WIDER = {
    None: (pa.bool_(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    pa.bool_(): (),
    pa.int64(): (pa.float64(),),
    pa.float64(): (),
    pa.date32(): (pa.timestamp("us"),),
    pa.timestamp("us"): (),
    pa.timestamp("us", "UTC"): (),
}


class TypeFinder:
    """The narrowest type per column that holds every value shown so far; text if none does.

    Numbers with a decimal comma stay text, for the schema to read. So do numbers such as 1.234 in a table whose other
    columns have decimal commas: there it is more than a thousand.
    """

    def __init__(self, as_text: Sequence[str] = (), decimal: str | None = None, thousands: str | None = None) -> None:
        self._types: dict[str, pa.DataType | None] = {}
        self._as_text, self._chosen = frozenset(as_text), (decimal, thousands)
        self._tallies: dict[str, NumberTally] = {}
        self.semicolons = False

    def look(self, batch: pa.RecordBatch) -> None:
        """Take the values of a batch of text into account."""
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            known = self._types.setdefault(name, pa.large_string() if name in self._as_text else None)
            if name in self._as_text or array.null_count == len(array):
                continue
            if known != pa.large_string():
                candidates = _WIDER[None] if known is None else (known, *_WIDER[known])
                self._types[name] = known = next((t for t in candidates if _holds(array, t)), pa.large_string())
            self._count(self._tallies.setdefault(name, NumberTally()), array, known)

    def signs(self) -> NumberSigns:
        """The decimal and thousands signs of the table, from all values shown so far."""
        return decide_signs(self._tallies, *self._chosen, semicolons=self.semicolons)

    def types(self) -> dict[str, pa.DataType]:
        """The types found; a column without any value is null."""
        signs = self.signs().columns
        return {
            name: pa.large_string() if name in signs and signs[name].decimal == "," else found or pa.null()
            for name, found in self._types.items()
        }

    def _count(self, tally: NumberTally, array: pa.Array, found: pa.DataType) -> None:
        if pa.types.is_integer(found):
            tally.add_whole(len(array) - array.null_count)
        else:
            tally.add(pc.utf8_trim_whitespace(array.drop_null()), plain=pa.types.is_floating(found))


def delimiter(source: Source, encoding: str) -> str:
    """What separates the cells of a delimited file."""
    if source.format == "tsv":
        return "\t"
    with _opened(source, encoding) as lines:
        first = next((line for line in lines if line.strip()), "")
    outside = "".join(first.split('"')[::2])  # delimiters inside quotes do not count
    return max(",;\t|", key=outside.count)  # of equal counts the comma, which comes first


def header(source: Source, encoding: str) -> list[str]:
    """Column names of a delimited file."""
    with _opened(source, encoding) as lines:
        try:
            rows = csv.reader(lines, delimiter=delimiter(source, encoding))
            names: list[str] = next((row for row in rows if row), [])
        except csv.Error as error:
            raise DataError(
                f"{source.label}: the header cannot be read ({error}). Look for a quote that is never closed, or "
                "shorten the names."
            ) from error
    if sum(map(len, names)) + len(names) > BLOCK_BYTES:  # the reader would take the file for empty
        raise _too_long(source)
    if names and names[0].lower().startswith("sep="):
        raise DataError(f"{source.label}: the first line, 'sep=...', is a note to Excel. Remove it.")
    unnamed = [i for i, name in enumerate(names, start=1) if not name.strip()]
    if unnamed or not names:
        raise DataError(
            f"{source.label}: the header has no name for the column at position {', '.join(map(str, unnamed))} "
            "(counted from 1). Write a name there."
        )
    check_distinct(source.label, names)
    return names


def text_batches(source: Source, encoding: str, missing: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches in which every column is text, with missing cells as nulls."""
    parse = pcsv.ParseOptions(delimiter=delimiter(source, encoding), newlines_in_values=True)
    read = pcsv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, encoding=encoding)
    convert = pcsv.ConvertOptions(
        column_types=dict.fromkeys(header(source, encoding), pa.large_string()),
        null_values=list(NULL_WORDS),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    with _errors(source, encoding), source.open(native=True) as stream:
        for batch in pcsv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert):
            yield cleaned(batch, missing)


def typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of text converted to the types that were found."""
    columns = [_converted(batch.column(f.name), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _holds(array: pa.Array, kind: pa.DataType) -> bool:
    if pa.types.is_boolean(kind):  # 0 and 1 are numbers here
        words = pa.array(["true", "false", "True", "False", "TRUE", "FALSE"], pa.large_string())
        return bool(pc.all(pc.is_in(array, value_set=words).filter(array.is_valid())).as_py())
    try:
        _converted(array, kind)
    except pa.ArrowInvalid:
        return False
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return True
    zeros = array.filter(pc.starts_with(array, "0"))  # a cheap sieve before the regular expression
    return len(zeros) == 0 or not pc.any(pc.match_substring_regex(zeros, CODE_TEXT)).as_py()


def _converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(array))
    if kind == array.type:
        return array
    if pa.types.is_date(kind) and not looks_like(array, r"^\d{4}-\d{2}-\d{2}$"):
        raise pa.ArrowInvalid("not a date")
    return pc.cast(pc.utf8_trim_whitespace(array), kind)


@contextmanager
def _errors(source: Source, encoding: str) -> Iterator[None]:
    """What goes wrong inside is said with the file, the line and a remedy."""
    try:
        yield
    except (UnicodeError, LookupError) as error:
        raise _wrong_encoding(source, encoding, error) from error
    except pa.ArrowInvalid as error:
        raise _explained(source, encoding, error) from error
    except DAMAGE as error:
        raise source.damaged(error) from error


@contextmanager
def _opened(source: Source, encoding: str) -> Iterator[Iterator[str]]:
    """The lines of a file, without a byte order mark; none of them fills the memory."""
    plain = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    with _errors(source, encoding), source.open() as stream, io.TextIOWrapper(stream, plain, newline="") as text:
        yield _lines(source, text)


def _lines(source: Source, text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(BLOCK_BYTES + 1):
        if len(line) > BLOCK_BYTES:
            raise _too_long(source)
        yield line


_OTHER_FILES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF-")  # pictures and documents


def _wrong_encoding(source: Source, encoding: str, error: Exception) -> DataError:
    with source.open() as stream:
        start = bytes(stream.read(4096))
    likely = "utf-16" if start.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin-1"
    if start.startswith(_OTHER_FILES) or (b"\0" in start and likely != "utf-16"):
        return DataError(
            f"{source.label} is not a table, but a binary file such as a picture or a document. Give CSV, TSV, "
            "Parquet, Feather, JSON lines or a workbook."
        )
    return source.not_text(encoding, error, likely)


def _explained(source: Source, encoding: str, error: Exception) -> DataError:
    message = str(error)
    if "UTF8" in message:
        return _wrong_encoding(source, encoding, error)
    if "Expected" in message and "columns" in message:
        line, wanted, got = _ragged_line(source, encoding)
        cells = "1 cell" if got == 1 else f"{got} cells"
        return DataError(
            f"{source.label}, line {line}: {cells} where the header has {wanted}. Correct that line; a cell that "
            "holds the delimiter needs quotes."
        )
    if "straddl" in message:
        return _too_long(source)
    if "Empty CSV" in message:
        return DataError(f"{source.label} has no rows. Give a file with a header and rows.")
    return DataError(f"{source.label} cannot be read: {message}. Correct the file.")


def _too_long(source: Source) -> DataError:
    return DataError(
        f"{source.label}: a line is longer than {BLOCK_BYTES:,} bytes. Look for a quote that is never closed, or "
        "shorten its cells; otherwise it is not a table."
    )


def _ragged_line(source: Source, encoding: str) -> tuple[int, int, int]:
    with _opened(source, encoding) as lines:
        rows = csv.reader(lines, delimiter=delimiter(source, encoding))
        wanted = len(next(rows))
        start = rows.line_num + 1
        with suppress(csv.Error):  # a cell too long for this reader
            for row in rows:
                if row and len(row) != wanted:
                    return start, wanted, len(row)
                start = rows.line_num + 1
    return start, wanted, wanted
