"""Files from strangers: refused in words or shown harmless, and the service stays up."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import io
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ptad.errors import DataError
from ptad.service import sandbox_tasks
from ptad.service.formats import CSV, Encoder
from ptad.service.sandbox import FAST_SECONDS, SMALL_SECONDS, Sandbox
from ptad.service.settings import Limits
from ptad.service.store import Store
from ptad.service.uploads import Uploads, display_name
from workbooks import write_xlsx


def uploads(store: Store, limits: Limits) -> Uploads:
    return Uploads(store, limits, Sandbox(limits))


def zip_bomb() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", b"a,b\n" + b"0,0\n" * 1_000_000)
    return sink.getvalue()


def dictionary_bomb() -> bytes:
    """A few hundred kilobytes of Parquet that stand for 200 GB of text."""
    text = pa.array(["x" * 200_000])
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), text)
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": column, "b": range(1_000_000)}), sink, compression="zstd")
    return sink.getvalue()


HOSTILE = {
    "zip": (zip_bomb, "archive"),
    "one line": (lambda: b"x" * (20 * 2**20), "first line"),
    "wide header": (lambda: b",".join(b"c%d" % i for i in range(200_000)) + b"\n1\n", "more than 5,000 columns"),
    "dictionary": (dictionary_bomb, "memory"),
    "nothing": (lambda: b"", "empty"),
    "header only": (lambda: b"a,b\n", "no rows"),
    "ragged": (lambda: b"a,b\n1,2\n3\n", "line 3"),
    "not text": (lambda: bytes(range(256)) * 50, "evil.csv"),
    "broken parquet": (lambda: b"PAR1" + b"\x00" * 100 + b"PAR1", "evil.csv"),
    "broken gzip": (lambda: gzip.compress(b"a,b\n1,2\n" * 1000)[:-10], "evil.csv"),
    "twice gzip": (lambda: gzip.compress(gzip.compress(b"a,b\n1,2\n")), "twice"),
    "same name twice": (lambda: b"a,a\n1,2\n", "duplicate"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_refused_in_words(service, name):
    make, says = HOSTILE[name]
    answer = service.upload(make(), "../../evil.csv")
    assert answer.status_code == 400, answer.text
    assert says in answer.json()["detail"]
    assert "/" not in answer.json()["detail"].replace("N/A", "").split("evil.csv")[0]  # no path of this machine
    assert service.http.get("/ready").status_code == 200
    assert list((service.store / "tmp").iterdir()) == []


def test_a_small_file_that_takes_long_makes_way_for_the_others(tmp_path, monkeypatch):
    """A workbook of half a megabyte can keep a process busy for minutes: it is read again among the large files."""
    store, limits = Store(tmp_path / "store"), Limits()
    sandbox = Sandbox(limits)
    seconds = {}
    run_in = sandbox._run_in

    async def too_long_for_the_first(threads, task, arguments, limit):
        seconds[threads] = limit
        return None if threads is sandbox._small else await run_in(threads, task, arguments, limit)

    monkeypatch.setattr(sandbox, "_run_in", too_long_for_the_first)

    async def body():
        yield write_xlsx(tmp_path / "t.xlsx", {"s": [["a", "b"], [1, 2], [3, 4]]}).read_bytes()

    table = asyncio.run(Uploads(store, limits, sandbox).add("t.xlsx", body()))
    sandbox.close()
    store.close()
    assert table["rows"] == 2 and seconds == {sandbox._small: FAST_SECONDS, sandbox._large: SMALL_SECONDS}


def test_a_decompression_bomb_is_stopped_at_the_limit(tmp_path):
    bomb = gzip.compress(b"a,b\n" + b"0,0\n" * 4_000_000)  # 16 MB out of a few kilobytes
    store = Store(tmp_path / "store")

    async def body():
        yield bomb

    with pytest.raises(DataError, match=r"bomb\.csv grows beyond 4,194,304 bytes when it is unpacked"):
        asyncio.run(uploads(store, Limits(table_bytes=2**22)).add("bomb.csv", body()))
    assert list(store.tmp.iterdir()) == list(store.tables.iterdir()) == []
    store.close()


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path):
    store = Store(tmp_path / "store")

    async def body():
        yield write_xlsx(tmp_path / "t.xlsx", {"s": [["a"], *[[0]] * 100_000]}).read_bytes()

    with pytest.raises(DataError, match=r"bomb\.xlsx grows beyond 1,048,576 bytes when it is unpacked"):
        asyncio.run(uploads(store, Limits(table_bytes=2**20)).add("bomb.xlsx", body()))
    assert list(store.tmp.iterdir()) == list(store.tables.iterdir()) == []
    store.close()


@pytest.mark.parametrize(
    ("piece", "says"),
    [(b"name," * 2**18, "endless.csv has more than 5,000 columns"), (b"x" * 2**20, "longer than 16,777,216 bytes")],
)
def test_an_endless_header_is_refused_while_it_arrives(tmp_path, piece, says):
    store = Store(tmp_path / "store")
    sent = 0

    async def body():
        nonlocal sent
        while sent < 2**30:
            sent += len(piece)
            yield piece

    with pytest.raises(DataError, match=says):
        asyncio.run(uploads(store, Limits()).add("endless.csv", body()))
    assert sent <= 18 * 2**20
    assert list(store.tmp.iterdir()) == list(store.tables.iterdir()) == []
    store.close()


def test_markup_and_formulas_are_only_text(service):
    rows = b"".join(b"%d,<script>alert(1)</script>,=cmd|calc\n" % i for i in range(30))
    about = service.upload(b"n,<b>bold</b>,f\n" + rows, "<img src=x>.csv").json()
    assert about["name"] == "<img src=x>.csv"  # JSON: text, which the page shows as text
    assert about["columns"][1]["examples"] == ["<script>alert(1)</script>"]
    assert service.http.delete(f"/v1/tables/{about['id']}").status_code == 204


def test_columns_are_described(service, csv_bytes):
    about = service.upload(csv_bytes, "C:\\files\\rows.csv").json()
    assert (about["name"], about["rows"], about["format"]) == ("rows.csv", 200, "csv")
    types = {column["name"]: column["type"] for column in about["columns"]}
    assert types == {"a": "numeric", "b": "numeric", "n": "numeric", "colour": "categorical", "state": "categorical"}
    assert about["columns"][4]["values"] == [["ok", 180], ["bad", 20]]
    assert service.http.get(f"/v1/tables/{about['id']}").json() == about
    assert service.http.delete(f"/v1/tables/{about['id']}").status_code == 204
    assert service.http.get(f"/v1/tables/{about['id']}").status_code == 404


def test_a_workbook_is_read_once_and_kept_as_a_plain_table(service, tmp_path):
    days = [dt.date(2014, 1, 1) + dt.timedelta(days=i) for i in range(40)]
    body = [["day", "price", "n"], *([d, f"{i},5", i % 7] for i, d in enumerate(days))]
    content = write_xlsx(tmp_path / "t.xlsx", {"one": [["a"], [1], [2]], "two": body}).read_bytes()
    sent = {"Content-Type": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
    about = service.http.post("/v1/tables", params={"name": "t.xlsx", "sheet": "two"}, content=content, headers=sent)
    about = about.json()
    assert (about["format"], about["rows"]) == ("excel", 40)
    types = {column["name"]: column["type"] for column in about["columns"]}
    assert types == {"day": "date", "price": "numeric", "n": "numeric"}
    assert len(about["notes"]) == 1 and "decimal comma" in about["notes"][0]
    refused = service.http.post("/v1/tables", params={"name": "t.xlsx", "sheet": "3"}, content=content, headers=sent)
    assert refused.status_code == 400 and "t.xlsx has no sheet '3'" in refused.json()["detail"]
    job = service.http.post("/v1/fits", json={"table": about["id"], "types": {"day": "date:%d/%m/%Y"}}).json()
    done = service.wait(job["id"])
    assert done["state"] == "done", done
    assert done["summary"]["columns_by_type"] == {"numeric": 2, "date": 1}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\\b.csv", "b.csv"),
        ("\x00\x07", "table"),
        ("x" * 300, "x" * 100),
        ("\ud800a", "a"),
    ],
)
def test_names_are_for_showing_only(given, shown):
    assert display_name(given) == shown


def test_csv_neutralises_names_and_cells():
    table = pa.table({"=a": ["+1", "+x", "-", None, "ok"], "n": [-1, 2, 3, 4, 5]})
    encoder = Encoder(CSV, table.schema)
    text = (b"".join(encoder.write(batch) for batch in table.to_batches()) + encoder.close()).decode()
    assert text.splitlines() == ['"\'=a","n"', '"+1",-1', '"\'+x",2', '"\'-",3', ",4", '"ok",5']


def test_an_endless_line_is_refused_while_it_is_unpacked(tmp_path):
    path = tmp_path / "upload"
    path.write_bytes(gzip.compress(b"x" * 2**26, compresslevel=1))
    with pytest.raises(DataError, match=r"the table: the first line is longer than 16,777,216 bytes"):
        sandbox_tasks._prepare(Limits(), path, "the table", None)
    assert (tmp_path / "plain").stat().st_size <= 2**24 + 2**20
