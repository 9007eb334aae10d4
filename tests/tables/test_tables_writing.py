"""Files appear complete or not at all."""

import errno
import io
import json
import sys

import pyarrow as pa
import pytest

from ptad.errors import DataError
from ptad.tables import TableWriter, read_table, write_table
from ptad.tables.file_formats import FORMATS
from ptad.tables.sources import COMPRESSIONS

TABLE = pa.table(
    {
        "n": [1, 2, None],
        "x": [0.1, 1e300, None],
        "t": ["=1+1", "NA", 'a "b",\n c'],
        "e": ["", None, "00501"],
        "b": [True, None, False],
    }
)
WRITABLE = [suffix for file_format in FORMATS if file_format.write for suffix in file_format.suffixes]


@pytest.mark.parametrize("suffix", [*WRITABLE, *(f".csv{c}" for c in COMPRESSIONS), ".jsonl.gz", ".tsv.zst"])
def test_values_round_trip(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    with TableWriter(path, TABLE.schema) as writer:
        for batch in TABLE.to_batches(max_chunksize=2):
            writer.write(batch)
        assert not path.exists()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert read_table(path).to_pydict() == TABLE.to_pydict()


def test_a_format_that_is_only_read_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"'.xlsx' names no format that can be written. Use one of .csv, (?!.*xlsx)"):
        TableWriter(tmp_path / "t.xlsx", TABLE.schema)


def test_json_lines_have_no_nan(tmp_path):
    write_table(pa.table({"x": [float("nan"), 1.5]}), tmp_path / "t.jsonl")
    rows = [json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert rows == [{"x": None}, {"x": 1.5}]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.xz", ".parquet", ".feather", ".jsonl"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_writer_keeps_the_old_file(tmp_path, suffix, error):
    path = tmp_path / f"t{suffix}"
    path.write_text("old")
    with pytest.raises(error), TableWriter(path, TABLE.schema) as writer:
        writer.write(TABLE.to_batches()[0])
        raise error
    assert [p.name for p in tmp_path.iterdir()] == [path.name] and path.read_text() == "old"


class FullDisk(io.FileIO):
    """Takes a few bytes, then none."""

    def write(self, data):
        if self.tell() + len(data) > 2000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.xz", ".parquet", ".feather", ".jsonl"])
def test_full_disk(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("pathlib.Path.open", lambda self, mode: FullDisk(self, mode))
    path = tmp_path / f"t{suffix}"
    table = pa.table({"x": [str(hash((i, i))) for i in range(5000)]})
    with pytest.raises(DataError, match=rf"t{suffix} cannot be written: no space left on the device"):
        write_table(table, path)
    assert list(tmp_path.iterdir()) == []


def test_paths_that_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.*t.csv cannot be written: there is no folder"):
        write_table(TABLE, tmp_path / "nowhere" / "t.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder.csv cannot be written: Is a directory"):
        write_table(TABLE, tmp_path / "folder.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.csv"]
    for name in ("t.xls", "t", "t.parquet.gz"):
        with pytest.raises(DataError, match="names no format that can be written"):
            write_table(TABLE, tmp_path / name)


def test_nested_values_cannot_go_to_csv(tmp_path):
    with pytest.raises(DataError, match=r"t.csv cannot be written"):
        write_table(pa.table({"a": [[1], [2]]}), tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_standard_output(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    write_table(pa.table({"a": [1], "b": ["x"]}), "-")
    assert out.buffer.getvalue() == b'"a","b"\n1,"x"\n'
