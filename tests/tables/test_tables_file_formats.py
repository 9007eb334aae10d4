"""File formats: each is declared once, and everything else follows from its declaration."""

import re
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pytest

from ptad.errors import DataError
from ptad.tables import TableWriter, read_table, scan_table
from ptad.tables.file_formats import BY_SUFFIX, FORMATS, FileFormat
from ptad.tables.source import TableFile
from ptad.tables.sources import COMPRESSIONS

ROOT = Path(__file__).parents[2]


def open_squares(source, options):
    """Read a file that holds one number per line, and add its square."""
    with source.open() as stream:
        numbers = [int(line) for line in bytes(stream.read()).split()]
    batch = pa.record_batch({"x": numbers, "square": [x * x for x in numbers]})
    options.types.add(batch.schema)
    return TableFile(batch.schema.names, len(numbers), lambda: iter([batch]))


def test_a_declaration_is_all_that_a_format_needs(tmp_path, monkeypatch):
    monkeypatch.setitem(BY_SUFFIX, ".squares", FileFormat("squares", "squares", open_squares, is_text=True))
    (tmp_path / "t.squares").write_text("1\n2\n3\n")
    assert read_table(tmp_path / "t.squares").to_pydict() == {"x": [1, 2, 3], "square": [1, 4, 9]}
    assert read_table(tmp_path).num_rows == 3  # a folder is searched for all suffixes
    assert str(scan_table(tmp_path / "t.squares").places.of(1)) == "row 2"
    with pytest.raises(DataError, match="no format that can be written"):
        TableWriter(tmp_path / "out.squares", pa.schema([("x", pa.int64())]))


@pytest.mark.parametrize("key", ["name", "title", "suffixes", "media_types", "starts"])
def test_formats_are_told_apart(key):
    values = [getattr(file_format, key) for file_format in FORMATS]
    single = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
    assert len(single) == len(set(single))


def test_page_and_guide_name_every_suffix():
    page = (files("ptad.service") / "page" / "upload.js").read_text()
    offered = re.findall(r"\.\w+(?=[,'])", page[page.index("const ACCEPT") : page.index("function Sending")])
    assert offered == [*BY_SUFFIX, *COMPRESSIONS]
    guide = (ROOT / "docs/guide/files.md").read_text()
    assert [suffix for suffix in offered if suffix not in guide] == []
