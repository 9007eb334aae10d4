"""The same scores as the library, one by one, together, and from files."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from ptad.service.batching import Batcher
from stopping import HANG
from workbooks import write_xlsx

SCORE, EXPLAIN = "/v1/models/tiny-model/score", "/v1/models/tiny-model/explain"


def post_rows(service, rows, url=SCORE):
    return service.http.post(url, json={"rows": rows})


def test_scores_are_those_of_the_library(service, model, rows, json_rows):
    answer = post_rows(service, json_rows).json()
    known = rows.drop_columns(["state"])
    assert [r["score"] for r in answer["results"]] == model.anomaly_score(known).tolist()
    assert [r["p_value"] for r in answer["results"]] == model.p_value(known).tolist()
    assert [r["anomaly"] for r in answer["results"]] == (model.predict(known) == -1).tolist()
    assert answer["threshold"] == -model.offset_
    assert answer["ignored"] == []  # 'state' was there in training, and dropped


def test_concurrent_single_rows_have_identical_results(service, model, rows, json_rows):
    expected = model.anomaly_score(rows.drop_columns(["state"])).tolist()

    def one(i):
        with httpx.Client(base_url=service.url, timeout=HANG) as client:
            mine = range(i, 200, 16)
            return [(j, client.post(SCORE, json={"rows": [json_rows[j]]}).json()["results"][0]["score"]) for j in mine]

    with ThreadPoolExecutor(16) as pool:
        scores = dict(pair for part in pool.map(one, range(16)) for pair in part)
    assert [scores[j] for j in range(200)] == expected
    text = service.http.get("/metrics").text
    calls = float(text.split("ptad_batch_calls_sum ")[1].split()[0])
    batches = float(text.split("ptad_batch_calls_count ")[1].split()[0])
    assert calls >= 200 and batches <= calls


def test_calls_that_wait_are_scored_together(model, json_rows):
    expected = model.anomaly_score(pa.Table.from_pylist(json_rows).drop_columns(["state"])).tolist()
    batches = []
    metrics = SimpleNamespace(batch=lambda calls, rows, seconds: batches.append((calls, rows)))

    async def ask():
        batcher, begun, go_on = Batcher(1000, metrics), threading.Event(), threading.Event()
        busy = asyncio.create_task(batcher.run(lambda: (begun.set(), go_on.wait())))
        await asyncio.to_thread(begun.wait)  # the batcher has something to do until all calls wait
        calls = [asyncio.create_task(batcher.score(model, [row])) for row in json_rows[:20]]
        await asyncio.sleep(0)  # every task has begun, and stands at its answer
        go_on.set()
        await busy
        scores = [float((await call).scores[0]) for call in calls]
        batcher.close()
        return scores

    assert asyncio.run(ask()) == expected[:20]
    assert batches == [(20, 20)]


def test_a_bad_row_hurts_only_its_own_call(service, json_rows):
    bad = {**json_rows[1], "a": 1e999}

    def one(i):
        with httpx.Client(base_url=service.url, timeout=HANG) as client:
            body = json.dumps({"rows": [json_rows[0], bad if i % 2 else json_rows[0]]}).replace("Infinity", "1e999")
            answer = client.post(SCORE, content=body, headers={"Content-Type": "application/json"})
            return answer.status_code, answer.json().get("detail", "")

    with ThreadPoolExecutor(8) as pool:
        for i, (status, detail) in enumerate(pool.map(one, range(24))):
            assert status == (400 if i % 2 else 200)
            if i % 2:
                assert "infinity or a value too large: column 'a', row 1 (counted from 0)" in detail


def test_rows_of_mixed_types_score_as_alone(service, json_rows):
    variants = [
        {**json_rows[0], "a": 1},
        {**json_rows[0], "a": 1.5},
        {**json_rows[0], "a": "1.5"},
        {**json_rows[0], "a": None},
        {**json_rows[0], "a": 10**30},
        {**json_rows[0], "n": 2**60 + 1},
        {**json_rows[0], "colour": 3},
        {**json_rows[0], "colour": True},
    ]
    together = [r["score"] for r in post_rows(service, variants).json()["results"]]
    alone = [post_rows(service, [v]).json()["results"][0]["score"] for v in variants]
    assert together == alone
    assert together[1] == together[2]


def test_many_json_rows(service, json_rows):
    few = [r["score"] for r in post_rows(service, json_rows).json()["results"]]
    many = [r["score"] for r in post_rows(service, json_rows * 3).json()["results"]]
    assert many == few * 3


@pytest.mark.parametrize("sent", ["csv", "gzip", "parquet", "arrow", "ndjson", "xlsx"])
def test_files_give_the_same_scores(service, model, rows, csv_bytes, sent, tmp_path):
    expected = model.anomaly_score(rows.drop_columns(["state"]))
    sink = io.BytesIO()
    if sent == "parquet":
        pq.write_table(rows, sink)
    elif sent == "arrow":
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
    elif sent == "ndjson":
        sink.write("".join(json.dumps(row) + "\n" for row in rows.to_pylist()).encode())
    elif sent == "xlsx":
        cells = [rows.column_names, *zip(*rows.to_pydict().values(), strict=True)]
        sink.write(write_xlsx(tmp_path / "t.xlsx", {"rows": cells}).read_bytes())
    else:
        sink.write(csv_bytes if sent == "csv" else gzip.compress(csv_bytes))
    kind = {
        "csv": "text/csv",
        "gzip": "application/gzip",
        "parquet": "application/vnd.apache.parquet",
        "arrow": "application/vnd.apache.arrow.stream",
        "ndjson": "application/x-ndjson",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }[sent]
    answer = service.http.post(SCORE, content=sink.getvalue(), headers={"Content-Type": kind, "Accept": "*/*"})
    assert answer.status_code == 200, answer.text
    got = answer.headers["content-type"].split(";")[0]
    assert got == ("text/csv" if sent in ("gzip", "xlsx") else kind)
    body = io.BytesIO(answer.content)
    if sent == "parquet":
        scored = pq.read_table(body)
    elif sent == "arrow":
        scored = pa.ipc.open_stream(body).read_all()
    elif sent == "ndjson":
        scored = pa.Table.from_pylist([json.loads(line) for line in answer.text.splitlines()])
    else:
        scored = pcsv.read_csv(body)
    assert scored.column_names == ["score", "p_value", "anomaly"]
    assert np.array_equal(scored["score"].to_numpy(), expected)


def test_own_columns_and_reasons_come_along_and_formulas_are_harmless(service, csv_bytes):
    answer = service.http.post(
        SCORE,
        params={"append": True, "explain": 1},
        content=csv_bytes + b'0,0,1,"@SUM(A1)",ok\n1,2,3,"-5",ok\n',
        headers={"Content-Type": "text/csv"},
    )
    lines = answer.text.splitlines()
    assert lines[0].startswith('"a","b","n","colour","state","score","p_value","anomaly","why_1","why_1_reason"')
    assert "'=1+1" in answer.text and ',"=1+1"' not in answer.text
    assert '"\'@SUM(A1)"' in lines[-2]
    assert '"-5"' in lines[-1]  # a number written as text stays


def test_a_wrong_value_in_a_file_is_named_before_anything_is_answered(service, csv_bytes):
    answer = service.http.post(
        SCORE,
        params={"name": "mine.csv", "strict": True},
        content=csv_bytes + b"x,1,2,red,ok\n",
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 400
    assert "'a', row 202 (the header is row 1): 'x' is not a number" in answer.json()["detail"]
    assert str(service.store) not in answer.text


def test_explanations_are_those_of_the_library(service, model, json_rows):
    odd = {**json_rows[0], "b": 50.0}
    unseen = {**json_rows[0], "colour": "violet"}
    answer = post_rows(service, [json_rows[1], odd, unseen], EXPLAIN + "?columns=4").json()["results"]
    assert [entry["row"] for entry in answer] == [0, 1, 2]
    first = answer[1]["columns"][0]
    assert first["column"] == "b" and first["observed"] == 50.0 and first["expected"] < 10
    assert first["reason"].startswith("unusual")
    expected = model.explain(pa.Table.from_pylist([{k: v for k, v in odd.items() if k != "state"}]))
    assert first["contribution"] == pytest.approx(expected.contribution_values[0].max())
    assert answer[1]["score"] == expected.score[0]
    for entry in answer:
        assert sum(column["contribution"] for column in entry["columns"]) == pytest.approx(entry["score"], rel=1e-5)
        assert sum(column["percentage"] for column in entry["columns"]) == pytest.approx(100.0)
    first = answer[2]["columns"][0]
    assert (first["column"], first["reason"], first["observed"]) == ("colour", "unseen category", "violet")
