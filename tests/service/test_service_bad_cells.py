"""Cells that cannot be read: they count as missing, and every answer says so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from ptad.tables import read_table
from stopping import HANG
from workbooks import write_xlsx

SCORE, EXPLAIN = "/v1/models/tiny-model/score", "/v1/models/tiny-model/explain"


def post(service, rows, address=SCORE, **params):
    answer = service.http.post(address, params=params, json={"rows": rows})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_json_rows_count_them_as_missing_and_list_them(service, json_rows):
    bad, missing = {**json_rows[1], "a": "many"}, {**json_rows[1], "a": None}
    answer = post(service, [json_rows[0], bad, missing])
    assert answer["bad_cells"] == 1
    assert answer["bad_cell_list"] == [{"row": 1, "column": "a", "reason": "not a number: 'many'"}]
    assert answer["results"][1] == answer["results"][2] != answer["results"][0]
    assert post(service, [missing])["bad_cells"] == 0
    explained = post(service, [json_rows[0], bad], EXPLAIN)
    assert explained["bad_cell_list"] == answer["bad_cell_list"]
    strongest = explained["results"][1]["columns"][0]
    assert (strongest["column"], strongest["reason"], strongest["observed"]) == ("a", "not a number: 'many'", None)


def test_every_caller_hears_of_its_own_cells_only(service, json_rows):
    def one(i):
        with httpx.Client(base_url=service.url, timeout=HANG) as client:
            rows = [json_rows[0]] * (i % 3) + ([{**json_rows[0], "b": f"x{i}"}] if i % 2 else [json_rows[0]])
            return client.post(SCORE, json={"rows": rows}).json()["bad_cell_list"]

    with ThreadPoolExecutor(8) as pool:
        for i, bad_cells in enumerate(pool.map(one, range(24))):
            expected = [{"row": i % 3, "column": "b", "reason": f"not a number: 'x{i}'"}]
            assert bad_cells == (expected if i % 2 else [])


def test_many_json_rows_too(service, json_rows):
    rows = json_rows * 3
    rows[500] = {**rows[500], "n": "?"}
    assert post(service, rows)["bad_cell_list"] == [{"row": 500, "column": "n", "reason": "not a number: '?'"}]


def test_many_of_them_are_counted_and_the_first_are_listed(service, json_rows):
    """Also in bodies that are read beside the event loop, and beside others in one batch."""
    for n in (200, 2000):
        rows = [{**json_rows[i % 200], "a": f"x{i}", "b": "y" * 50, "n": "z"} for i in range(n)]
        answer = post(service, rows)
        assert answer["bad_cells"] == 3 * n and len(answer["bad_cell_list"]) == 100
        first = [(cell["row"], cell["column"]) for cell in answer["bad_cell_list"]]
        assert first == [(i // 3, "abn"[i % 3]) for i in range(100)]
        assert answer["bad_cell_list"][3]["reason"] == "not a number: 'x1'"
        strict = service.http.post(SCORE, params={"strict": True}, json={"rows": rows})
        assert strict.status_code == 400 and "Column 'a', row 0 (counted from 0): 'x0'" in strict.json()["detail"]
        gaps = [{**row, "a": None} for row in rows]
        marked = post(service, gaps, missing=["z", "y" * 50])
        assert marked["bad_cells"] == 0
        assert marked["results"] == post(service, [{**row, "b": None, "n": None} for row in gaps])["results"]


def test_markers_named_in_the_call_are_missing_and_not_bad(service, json_rows):
    row, gap = {**json_rows[0], "a": " ? "}, {**json_rows[0], "a": None}
    for address in (SCORE, EXPLAIN):
        answer = post(service, [row, gap], address, missing="?")
        assert answer["bad_cells"] == 0 and answer["results"][0]["score"] == answer["results"][1]["score"]


def test_files_say_how_many_in_a_header(service, model, rows, csv_bytes):
    content = csv_bytes + b"x,1,2,red,ok\n,1,2,red,ok\n?,1,2,red,ok\n"
    answer = service.http.post(SCORE, content=content, headers={"Content-Type": "text/csv"}, params={"missing": "?"})
    assert answer.status_code == 200 and answer.headers["Ptad-Bad-Cells"] == "1"
    scores = pcsv.read_csv(pa.BufferReader(answer.content))["score"].to_numpy()
    assert np.array_equal(scores[:200], model.anomaly_score(rows.drop_columns(["state"])))
    assert scores[200] == scores[201] == scores[202] > scores[:200].mean()


def test_jobs_count_and_list_them(service, csv_bytes, tmp_path):
    content = csv_bytes + b'x,1,2,red,ok\n1,"=1+2",2,red,ok\n'
    table = service.upload(content).json()["id"]
    body = {"table": table, "model": "tiny-model", "label": "state", "normal": ["ok"]}
    job = service.wait(service.http.post("/v1/scorings", json=body).json()["id"])
    assert job["state"] == "done", job["error"]
    assert job["summary"]["bad_cells"] == 2 and job["summary"]["columns_with_bad_cells"] == {"a": 1, "b": 1}
    report = service.http.get(f"/v1/jobs/{job['id']}/report").json()
    assert report["bad"] == {"cells": 2, "columns": [["a", 1], ["b", 1]]}
    reasons = [cell["reason"] for row in report["top"]["rows"] for cell in row["cells"]]
    assert "not a number: 'x'" in reasons
    listed = service.http.get(f"/v1/jobs/{job['id']}/bad-cells")
    (tmp_path / "bad.csv").write_bytes(listed.content)
    listed = read_table(tmp_path / "bad.csv").to_pydict()
    assert listed["row"] == [202, 203] and listed["column"] == ["a", "b"]
    assert listed["value"] == ["x", "'=1+2"]  # harmless in a spreadsheet
    fit = {"table": table, "label": "state", "normal": ["ok"]}
    fitted = service.wait(service.http.post("/v1/fits", json=fit).json()["id"])
    assert fitted["state"] == "done" and fitted["summary"]["bad_cells"] == 2
    strict = service.wait(service.http.post("/v1/scorings", json={**body, "strict": True}).json()["id"])
    assert strict["state"] == "failed" and "'a', row 202 (the header is row 1): 'x' is not" in strict["error"]


@pytest.mark.parametrize("kind", ["updates", "recalibrations"])
def test_updates_and_recalibrations_list_them_too(service, kind):
    lines = [f"{i % 7},{(i * i) % 11},{i % 5},{'red' if i % 2 else 'blue'},ok" for i in range(200)]
    content = "\n".join(["a,b,n,colour,state", *lines, "x,1,2,red,ok"]).encode()
    table = service.upload(content).json()["id"]
    body = {"table": table, "model": "tiny-model"}
    job = service.wait(service.http.post(f"/v1/{kind}", json=body).json()["id"])
    assert job["state"] == "done" and job["summary"]["bad_cells"] == 1
    assert service.http.get(f"/v1/jobs/{job['id']}/bad-cells").text.splitlines()[1].startswith('"202","a","x"')


def test_a_job_that_failed_has_no_such_list(service, csv_bytes):
    table = service.upload(csv_bytes + b"x,1,2,red,ok\n").json()["id"]
    body = {"table": table, "model": "tiny-model", "strict": True}
    job = service.wait(service.http.post("/v1/scorings", json=body).json()["id"])
    listed = service.http.get(f"/v1/jobs/{job['id']}/bad-cells")
    assert job["state"] == "failed" and listed.status_code == 409
    assert listed.json()["detail"].startswith("This job has no list of unreadable cells.")


def test_rows_of_a_workbook_are_numbered_as_in_its_sheet(service, json_rows, tmp_path):
    pytest.importorskip("python_calamine")
    names = list(json_rows[0])
    rows = [[row[name] for name in names] for row in json_rows[:30]]
    rows[4][names.index("a")] = "x"
    content = write_xlsx(tmp_path / "t.xlsx", {"s": [names, *rows]}).read_bytes()
    table = service.upload(content, "t.xlsx").json()["id"]
    job = service.wait(service.http.post("/v1/scorings", json={"table": table, "model": "tiny-model"}).json()["id"])
    assert service.http.get(f"/v1/jobs/{job['id']}/bad-cells").text.splitlines()[1].startswith('"6","a","x"')
    top = service.http.get(f"/v1/jobs/{job['id']}/report").json()["top"]
    assert top["counting"]["first"] == 2 and top["rows"][0]["number"] == top["rows"][0]["row"] + 2


def test_names_that_were_probably_meant(service, csv_bytes):
    table = service.upload(csv_bytes.replace(b"colour", b"Colour ", 1)).json()["id"]
    answers = [
        service.http.post("/v1/scorings", json={"table": table, "model": "tiny-model"}),
        service.http.post("/v1/scorings", json={"table": table, "model": "tiny-model", "label": "stale"}),
        service.http.post("/v1/fits", json={"table": table, "drop": ["colour"]}),
    ]
    for answer, meant in zip(answers, ("Colour ", "state", "Colour "), strict=True):
        assert answer.status_code == 400 and f"Did you mean {meant!r}?" in answer.json()["detail"]
