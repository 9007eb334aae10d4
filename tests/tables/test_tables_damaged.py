"""Files that cannot be read: what is wrong, where, and what to do."""

import json
import os
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from small_tables import CSV, put

from ptad.errors import DataError
from ptad.tables import TableSource, read_table, scan_table, write_table


@pytest.mark.parametrize("content", ["a,b\n1,K\xf6ln\n", "\xf6,b\n1,2\n"])
def test_bytes_that_are_not_utf8(tmp_path, content):
    path = put(tmp_path, "t.csv", content.encode("latin-1"))
    with pytest.raises(DataError, match=r"t.csv is not utf-8 text \(byte 0xf6\).*encoding='latin-1'"):
        read_table(path)
    with pytest.raises(DataError, match=r"t.jsonl is not utf-8.*encoding='latin-1'"):
        read_table(put(tmp_path, "t.jsonl", '{"a": "ö"}'.encode("latin-1")))
    with pytest.raises(DataError, match=r"t.csv: there is no encoding 'klingon'. Name its encoding"):
        read_table(path, encoding="klingon")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "bad.csv is empty"),
        ("a,b\n", "bad.csv has a header but no rows"),
        ("a,b", "bad.csv has"),
        ("\n\n", "bad.csv"),
        ('a,b\n1,2\n"x\ny",3\n1,2,3\n4,5\n', r"bad.csv, line 5: 3 cells where the header has 2"),
        ("a,b\n1,2\n1\n", r"bad.csv, line 3: 1 cell where the header has 2"),
        ("a,,c\n1,2,3\n", "bad.csv: the header has no name for the column at position 2"),
        ("sep=;\na;b\n1;2\n", "bad.csv: the first line, 'sep=...', is a note to Excel. Remove it"),
        ("a,b\n1,2\n".encode("utf-16"), "bad.csv is not utf-8 text .* encoding='utf-16'"),
        (b"\x89PNG\r\n\x1a\n\0\0", "bad.csv is not a table, but a binary file"),
        ("a,b,a\n1,2,3\n", "bad.csv: duplicate column names 'a'"),
        (42 * ("x" * 100_000 + ",") + "a\n1\n", "bad.csv: a line is longer than 4,194,304 bytes"),
        (",".join(map(str, range(50_001))) + "\n", "bad.csv has more than 50,000 columns"),
    ],
)
def test_bad_csv(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_table(put(tmp_path, "bad.csv", content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": \n', "bad.jsonl, line 2: not a JSON object"),
        ('{"a": 1}\n3\n', "bad.jsonl, line 2: int in place"),
        ('[{"a": 1}]', "one JSON array"),
        # deep enough to end a process that reads it by recursion
        ('{"a": 1}\n' + '{"a":' * 50_000 + "1" + "}" * 50_000, "bad.jsonl, line 2: more than 32 objects or lists"),
        ('{"a": ' + "[" * 500_000 + "]" * 500_000 + "}\n", "bad.jsonl, line 1: more than 32 objects or lists"),
        ('{"a": ' + "[\n" * 200_000 + "]\n" * 200_000 + "}\n", "bad.jsonl, line 32: more than 32 objects or lists"),
        ("\n" * 400_000 + '{"a": ' + "[" * 200_000 + "]" * 200_000 + "}\n", "line 400001: more than 32 objects or"),
    ],
)
def test_bad_json_lines(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_table(put(tmp_path, "bad.jsonl", content))


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(DataError, match=r"There is no file .*nope.csv"):
        read_table(tmp_path / "nope.csv")
    with pytest.raises(DataError, match="No file matches"):
        read_table(str(tmp_path / "*.csv"))
    with pytest.raises(DataError, match="holds no table"):
        read_table(tmp_path)
    with pytest.raises(DataError, match="No file was given"):
        read_table([])


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.feather", "t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.jsonl.gz", "t.csv.zst"]
)
def test_truncated_files(tmp_path, name):
    table = pa.table({"a": np.random.default_rng(0).normal(size=5000), "b": np.arange(5000)})
    write_table(table, tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    for part in (0.5, 0.99):
        path = put(tmp_path, "cut" + name, whole[: int(part * len(whole))])
        with pytest.raises(DataError, match=rf"cut{name} is damaged, truncated"):
            read_table(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b""),
        ("t.csv", b"a,b\n"),
        ("t.csv", b"a,b\n1\n"),
        ("t.csv", b"\xf6,b\n1,2\n"),
        ("t.csv.gz", b"\x1f\x8b nothing"),
        ("t.parquet", b"PAR1 nothing"),
        ("t.feather", b"ARROW1 nothing"),
        ("t.jsonl", b"[1]"),
        ("t.xlsx", b"PK\x03\x04 nothing"),
        ("absent.csv", None),
    ],
)
def test_label_replaces_the_path_in_messages(tmp_path, name, content):
    path = tmp_path / name if content is None else put(tmp_path, name, content)
    with pytest.raises(DataError, match=r"^(There is no file )?sales of May") as caught:
        read_table(TableSource(path, label="sales of May"))
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(DataError, match=r"^(There is no file )?sales of May: ") as caught:
        read_table(TableSource([path], label="sales of May"))
    assert str(tmp_path) not in str(caught.value)


def test_wrong_content_for_the_suffix(tmp_path):
    with pytest.raises(DataError, match=r"t.parquet is damaged, truncated or not Parquet"):
        read_table(put(tmp_path, "t.parquet", CSV))
    with pytest.raises(DataError, match=r"t.csv.gz is damaged"):
        read_table(put(tmp_path, "t.csv.gz", CSV))


def test_zip_archives_are_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "packed.csv", "w") as archive:
        archive.writestr("t.csv", CSV)
    for content, message in ((None, "is a zip archive. Unpack it"), (b"PK\x03\x04" + bytes(100), "is a zip archive")):
        path = tmp_path / "packed.csv" if content is None else put(tmp_path, "broken.csv", content)
        with pytest.raises(DataError, match=message):
            read_table(path)
    for name, content in (("book.xlsx", b"PK\x03\x04" + bytes(100)), ("text.xlsx", CSV.encode())):
        with pytest.raises(DataError, match=f"{name} is damaged, truncated or not a workbook"):
            read_table(put(tmp_path, name, content))


def test_duplicate_names_in_parquet(tmp_path):
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="duplicate column names 'a'"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl"])
def test_input_that_changes_while_it_is_read(tmp_path, name):
    path = tmp_path / name
    write_table(pa.table({"a": list(range(1000))}), path)
    scan = scan_table(path, batch_rows=10)
    next(scan)
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    with pytest.raises(DataError, match=f"{name} changed while it was read"):
        list(scan)


def test_brackets_in_text_are_not_nested(tmp_path):
    words = ["[" * 100, '"{' * 50, "\\" + "[" * 40, '{"a":' * 200_000]
    lines = "".join(f"{json.dumps({'a': word})}\n" for word in words)
    assert read_table(put(tmp_path, "t.jsonl", lines))["a"].to_pylist() == words


def test_arrow_file_with_wrong_lengths_of_texts(tmp_path):
    """Arrow uses these bytes as they are: followed, they lead out of the file's memory."""
    path = tmp_path / "t.feather"
    pa.feather.write_feather(pa.table({"a": ["x", "yy", "zzz"]}), path, compression="uncompressed")
    lengths = np.array([0, 1, 3, 6], dtype=np.int32)
    content = path.read_bytes()
    assert content.count(lengths.tobytes()) == 1
    lengths[2] = -(2**30)
    path.write_bytes(content.replace(np.array([0, 1, 3, 6], dtype=np.int32).tobytes(), lengths.tobytes()))
    with pytest.raises(DataError, match=r"t.feather is damaged"):
        read_table(path)
