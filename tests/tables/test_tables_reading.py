"""Files in every format and state."""

import bz2
import gc
import gzip
import io
import json
import lzma
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from small_tables import CSV, put

from ptad.errors import DataError
from ptad.tables import TableWriter, fit_schema, read_table, scan_table, write_table

TABLE = {
    "n": [1, 2, 3],
    "x": [0.5, None, 2.5],
    "word": ["red", "blue", None],
    "ok": [True, False, None],
}


def agrees(table):
    data = table.to_pydict()
    assert {k: data[k] for k in TABLE} == TABLE
    assert [str(d)[:10] for d in data["when"]] == ["2024-01-01", "2024-01-02", "2024-01-03"]


COMPRESSED = {
    "": lambda b: b,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda b: pa.compress(b, "zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.feather", "t", "t.data"])
def test_formats_and_compressions(tmp_path, name, suffix):
    plain = put(tmp_path, "plain.csv", CSV)
    if name.endswith(("parquet", "feather")):
        write_table(read_table(plain), tmp_path / name)
        content = (tmp_path / name).read_bytes()
    elif name.endswith("jsonl"):
        rows = read_table(plain).to_pylist()
        content = "".join(json.dumps(row, default=str) + "\n" for row in rows).encode()
    else:
        content = CSV.replace(",", "\t" if name.endswith("tsv") else ",").encode()
    agrees(read_table(put(tmp_path, name + suffix, COMPRESSED[suffix](content))))


def test_lz4_and_stream_format(tmp_path):
    table = read_table(put(tmp_path, "plain.csv", CSV))
    write_table(table, tmp_path / "t.csv.lz4")
    agrees(read_table(tmp_path / "t.csv.lz4"))
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    agrees(read_table(tmp_path / "t.arrow"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "gzip", "tsv"])
def test_standard_input(tmp_path, monkeypatch, kind):
    path = put(tmp_path, "t.csv", CSV)
    if kind == "parquet":
        write_table(read_table(path), tmp_path / "t.parquet")
        content = (tmp_path / "t.parquet").read_bytes()
    elif kind == "jsonl":
        content = "".join(json.dumps(r, default=str) + "\n" for r in read_table(path).to_pylist()).encode()
    else:
        content = {"csv": CSV.encode(), "gzip": gzip.compress(CSV.encode()), "tsv": CSV.replace(",", "\t").encode()}[
            kind
        ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    agrees(read_table("-"))
    gc.collect()
    assert not list(tmp_path.glob("ptad-*"))  # no copy is left behind


def test_empty_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match="standard input is empty"):
        read_table("-")


def test_no_copy_of_a_compressed_parquet_is_left_behind(tmp_path, monkeypatch):
    write_table(read_table(put(tmp_path, "t.csv", CSV)), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    agrees(read_table(put(tmp_path, "t.parquet.gz", gzip.compress(whole))))
    with pytest.raises(DataError, match=r"cut.parquet.gz is damaged"):
        read_table(put(tmp_path, "cut.parquet.gz", gzip.compress(whole)[:-20]))
    assert not list(tmp_path.glob("ptad-*"))


def test_folder_glob_and_list_in_sorted_order(tmp_path):
    for i in (2, 0, 1):
        put(tmp_path, f"part{i}.csv", f"a,b\n{i},x\n")
    put(tmp_path, "_SUCCESS", "")
    put(tmp_path, "notes.txt", "not a table")
    expected = {"a": [0, 1, 2], "b": ["x"] * 3}
    assert read_table(tmp_path).to_pydict() == expected
    assert read_table(str(tmp_path / "part*.csv")).to_pydict() == expected
    assert read_table([tmp_path / "part2.csv", tmp_path / "part0.csv"])["a"].to_pylist() == [2, 0]
    put(tmp_path, "part3.csv", "b,a\ny,1.5\n")  # other order of columns, wider type
    assert read_table(tmp_path).to_pydict() == {"a": [0.0, 1.0, 2.0, 1.5], "b": ["x", "x", "x", "y"]}
    put(tmp_path, "part4.csv", "a,c\n1,2\n")
    with pytest.raises(DataError, match=r"part4.csv and .*part0.csv.*'b', 'c'"):
        read_table(tmp_path)


def test_types_of_several_files_are_unified(tmp_path):
    put(tmp_path, "a.csv", "a\n1\n2\n")
    write_table(pa.table({"a": [0.5]}), tmp_path / "b.parquet")
    assert read_table(tmp_path)["a"].to_pylist() == [1.0, 2.0, 0.5]
    write_table(pa.table({"a": ["x"]}), tmp_path / "c.parquet")
    assert read_table(tmp_path)["a"].to_pylist() == ["1", "2", "0.5", "x"]


def test_types_come_from_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr("ptad.tables.delimited.BLOCK_BYTES", 4096)
    lines = [f"{i},{i},{i},2024-01-01,true" for i in range(20_000)]
    lines[15_000] = "7,0.5,seven,2024-01-01T10:00,maybe"
    path = put(tmp_path, "t.csv", "whole,real,word,when,flag\n" + "\n".join(lines) + "\n")
    scan = scan_table(path, batch_rows=1000)
    assert scan.schema.types == [pa.int64(), pa.float64(), pa.large_string(), pa.timestamp("us"), pa.large_string()]
    batches = list(scan)
    assert [b.num_rows for b in batches] == [1000] * 20
    assert batches[15].to_pylist()[0] == {
        "whole": 7,
        "real": 0.5,
        "word": "seven",
        "when": pa.scalar("2024-01-01T10:00").cast(pa.timestamp("us")).as_py(),
        "flag": "maybe",
    }
    assert batches[0]["word"][5].as_py() == "5"


def test_batches_are_of_one_size_and_add_up(tmp_path):
    put(tmp_path, "a.csv", "a\n" + "\n".join(map(str, range(1000))))
    put(tmp_path, "b.csv", "a\n" + "\n".join(map(str, range(1000, 1500))))
    for batch_rows in (1, 7, 400, 10_000):
        batches = list(scan_table(tmp_path, batch_rows=batch_rows))
        assert all(b.num_rows == batch_rows for b in batches[:-1])
        assert [v for b in batches for v in b["a"].to_pylist()] == list(range(1500))


def test_codes_keep_their_zeros(tmp_path):
    path = put(tmp_path, "t.csv", "zip,n\n10001,0\n00501,10\n94105,-0.5\n")
    table = read_table(path)
    assert table.to_pydict() == {"zip": ["10001", "00501", "94105"], "n": [0.0, 10.0, -0.5]}


def test_text_columns_of_a_schema_are_read_as_text(tmp_path):
    training = read_table(put(tmp_path, "train.csv", "c,n\n" + "1.0,1\nx,2\n1.0,3\n" * 8))
    schema = fit_schema(training)
    path = put(tmp_path, "new.csv", "c,n\n1.0,1\n1.0,2\n")
    assert read_table(path)["c"].type == pa.float64()
    known = read_table(path, schema=schema)
    assert known["c"].to_pylist() == ["1.0", "1.0"]
    assert np.array_equal(schema.encode(known), schema.encode(training.slice(0, 2).set_column(0, "c", known["c"])))
    lines = put(tmp_path, "new.jsonl", '{"c": 1.0, "n": 1}\n{"c": "x", "n": 2}\n{"n": 3}\n')
    assert read_table(lines, schema=schema).to_pydict() == {"c": ["1.0", "x", None], "n": [1, 2, 3]}


def test_missing_words(tmp_path):
    path = put(tmp_path, "t.csv", 'a,b\n?,"NA"\n1,NA\n ? ,\n2,x\n')
    assert read_table(path, missing=["?"]).to_pydict() == {"a": [None, 1, None, 2], "b": ["NA", None, None, "x"]}
    written = put(tmp_path, "excel.csv", "days\n1\nn/a\n#N/A\n4\n")
    assert read_table(written).to_pydict() == {"days": [1, None, None, 4]}
    assert read_table(path)["a"].to_pylist() == ["?", "1", " ? ", "2"]
    write_table(pa.table({"a": pa.array(["?", "x", "y"]).dictionary_encode()}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", missing=["?"])["a"].to_pylist() == [None, "x", "y"]


def test_csv_dialects(tmp_path):
    assert read_table(put(tmp_path, "bom.csv", b"\xef\xbb\xbfa,b\n1,2\n")).to_pydict() == {"a": [1], "b": [2]}
    assert read_table(put(tmp_path, "semi.csv", "a;b\n1;2,5\n")).to_pydict() == {"a": [1], "b": ["2,5"]}
    units = put(tmp_path, "units.csv", "when;what;amount, EUR\n1;2;3\n")
    assert read_table(units).column_names == ["when", "what", "amount, EUR"]
    quoted = put(tmp_path, "quoted.csv", 'a,"b,c"\n"two\nlines","say ""hi"""\n')
    assert read_table(quoted).to_pydict() == {"a": ["two\nlines"], "b,c": ['say "hi"']}
    assert read_table(put(tmp_path, "crlf.csv", "a,b\r\n1,x\r\n")).to_pydict() == {"a": [1], "b": ["x"]}
    assert read_table(put(tmp_path, "last.csv", "a,b\n1,2")).to_pydict() == {"a": [1], "b": [2]}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_encodings(tmp_path, encoding):
    text = "städte,b\nKöln,1\nZürich,2\n"
    path = put(tmp_path, "t.csv", text.encode(encoding))
    assert read_table(path, encoding=encoding).to_pydict() == {"städte": ["Köln", "Zürich"], "b": [1, 2]}
    lines = put(tmp_path, "t.jsonl", '{"ö": "ü"}\n{"ö": "é"}\n'.encode(encoding))
    if encoding != "utf-16":
        assert read_table(lines, encoding=encoding).to_pydict() == {"ö": ["ü", "é"]}


def test_json_lines_of_changing_types(tmp_path, monkeypatch):
    lines = ['{"a": 1, "b": 1}', '{"a": "x", "b": 2.5}', '{"b": null, "c": true}'] * 3
    path = put(tmp_path, "t.jsonl", "\n".join(lines))
    expected = {"a": ["1", "x", None] * 3, "b": [1.0, 2.5, None] * 3, "c": [None, None, True] * 3}
    assert read_table(path).to_pydict() == expected
    monkeypatch.setattr("ptad.tables.json_lines.BLOCK_BYTES", 20)
    assert read_table(path).to_pydict() == expected


def test_no_thread_of_the_csv_reader_needs_python(tmp_path, monkeypatch):
    # one that asks for Python's lock while the process ends brings it down: a wrong exit code, now and then
    seen = []
    open_csv = pyarrow.csv.open_csv
    monkeypatch.setattr("pyarrow.csv.open_csv", lambda s, **more: (seen.append(type(s)), open_csv(s, **more))[1])
    read_table(put(tmp_path, "t.csv", CSV))
    assert set(seen) == {pa.OSFile}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl", "t.feather", "t.csv.gz"])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr("ptad.tables.delimited.BLOCK_BYTES", 1 << 13)  # Arrow reads 32 of them ahead
    monkeypatch.setattr("ptad.tables.json_lines.BLOCK_BYTES", 1 << 16)
    part = pa.record_batch(
        {"a": np.random.default_rng(0).normal(size=5000), "b": [f"word {i % 99}" for i in range(5000)]}
    )
    peaks = []
    for parts in (4, 40):
        with TableWriter(tmp_path / name, part.schema) as writer:
            for _ in range(parts):
                writer.write(part)
        before = pa.total_allocated_bytes()
        peak = rows = 0
        for batch in scan_table(tmp_path / name, batch_rows=1000):
            rows += batch.num_rows
            peak = max(peak, pa.total_allocated_bytes() - before)
            del batch
        assert rows == 5000 * parts
        peaks.append(peak)
    assert peaks[1] < max(1.5 * peaks[0], 1 << 19)  # of 5 MB


def test_typed_files_keep_their_types(tmp_path):
    schema = fit_schema(pa.table({"c": ["1", "x", "y"] * 8, "n": [0.5, 1.5, 2.5] * 8}))
    pq.write_table(pa.table({"c": [1, 2], "n": [0.5, 1.5]}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", schema=schema)["c"].type == pa.int64()
    assert schema.encode(read_table(tmp_path / "t.parquet", schema=schema)).tolist() == [[0.0, 0.5], [3.0, 1.5]]
