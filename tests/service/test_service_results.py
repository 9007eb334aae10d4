"""What can be asked of finished scorings and of models: timelines, comparisons, reports, new versions."""

from __future__ import annotations

import io
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from service_tables import csv_of, make_rows

from messy_table import MARKERS, messy_table
from ptad.jobs.score import added_schema
from ptad.service import results
from ptad.service.jobs.table_scores import N_REASONS

pytestmark = pytest.mark.slow


def table_of(service: Any, rows: pa.Table, name: str = "rows.csv") -> str:
    identifier: str = service.upload(csv_of(rows), name).json()["id"]
    return identifier


def done(service: Any, path: str, **wanted: Any) -> dict[str, Any]:
    answer = service.http.post(path, json=wanted)
    assert answer.status_code == 202, answer.text
    job = service.wait(answer.json()["id"])
    assert job["state"] == "done", job["error"]
    return job


@pytest.fixture(scope="module")
def table(service) -> str:
    days = pa.array([f"2024-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(200)])
    return table_of(service, make_rows(200, 0).append_column("day", days))


@pytest.fixture(scope="module")
def fitted(service, table) -> dict[str, Any]:
    """A fit that also scores its table, as one job."""
    return done(service, "/v1/fits", table=table, name="mine", label="state", normal=["ok"], drop=["day"], score=True)


def refused(answer: httpx.Response, status: int, says: str) -> None:
    assert answer.status_code == status and says in answer.json()["detail"], answer.text
    assert "--" not in answer.json()["detail"]


def test_a_fit_scores_its_table_in_the_same_job_with_held_out_scores(service, fitted):
    assert fitted["kind"] == "fit" and fitted["summary"]["training_rows"] == 180
    assert fitted["scores"]["rows"] == 200 and fitted["scores"]["held_out"] and fitted["scores"]["training_table"]
    report = service.http.get(f"/v1/jobs/{fitted['id']}/report").json()
    assert report["training_table"] and report["held_out"] and report["model"] == "mine"
    jobs = [job for job in service.http.get("/v1/jobs").json() if job["model"] == fitted["model"]]
    assert [job["id"] for job in jobs] == [fitted["id"]]
    # a later scoring of the same table has the same scores
    again = done(service, "/v1/scorings", table=fitted["table"], model=fitted["model"], label="state", normal=["ok"])
    files = [service.http.get(f"/v1/jobs/{job}/scores?format=parquet").content for job in (fitted["id"], again["id"])]
    first, second = (pq.read_table(io.BytesIO(file)) for file in files)
    assert first["score"].to_pylist() == second["score"].to_pylist()


def test_a_table_that_is_sent_again_is_the_same_table(service, fitted):
    rows = make_rows(200, 0)
    days = pa.array([f"2024-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(200)])
    again = table_of(service, rows.append_column("day", days), "again.csv")
    assert again != fitted["table"]
    job = done(service, "/v1/scorings", table=again, model=fitted["model"])
    assert job["scores"]["held_out"] and job["scores"]["training_table"]
    comparison = service.http.get(f"/v1/jobs/{fitted['id']}/comparison", params={"other": job["id"]}).json()
    assert comparison["same_table"] and comparison["changed"] == []
    wanted = {"table": again, "model": fitted["model"]}
    refused(service.http.post("/v1/recalibrations", json=wanted), 400, "fitted on this table")
    assert "digest" not in service.http.get(f"/v1/tables/{again}").json()


def test_a_fit_that_was_killed_after_the_model_does_not_fit_again(service, table):
    stop = service.stops.add("*/.scored.parquet.partial/*.arrow", 1)
    wanted = {"table": table, "name": "killed", "drop": ["day", "state"], "score": True}
    job = service.http.post("/v1/fits", json=wanted).json()["id"]
    ended = service.wait(job)
    assert stop.pid is not None
    assert (ended["state"], ended["attempts"]) == ("done", 2) and ended["scores"]["rows"] == 200
    assert service.http.get(f"/v1/models/{ended['model']}").status_code == 200
    left = {path.name for path in (service.store / "jobs" / job).iterdir()}
    assert "fitted.json" not in left and "model" not in left


def test_a_fit_alone_has_no_scores(service, table):
    job = done(service, "/v1/fits", table=table, name="alone", drop=["day"])
    assert job["scores"] is None
    for part in ("report", "report.html", "scores", "timeline", f"comparison?other={job['id']}"):
        refused(service.http.get(f"/v1/jobs/{job['id']}/{part}"), 409, "Only a finished scoring")


def test_update_and_recalibration_make_new_versions_and_keep_the_old_one(service, fitted):
    before = service.http.get(f"/v1/models/{fitted['model']}").json()
    new = table_of(service, make_rows(400, 5), "later.csv")
    updated = done(service, "/v1/updates", table=new, model=fitted["model"], label="state", normal=["ok"])
    assert updated["kind"] == "update" and updated["parent"] == fitted["model"] != updated["model"]
    second = service.http.get(f"/v1/models/{updated['model']}").json()
    assert (second["version"], second["parent"], second["made_by"]) == (2, fitted["model"], "update")
    assert second["name"] == "mine" and second["table"] == "later.csv" and second["new_rows"] == 360
    assert second["reference_rows"] > before["reference_rows"] and second["training_rows"] is None
    third = done(service, "/v1/recalibrations", table=new, model=fitted["model"], label="state", normal=["ok"])
    third = service.http.get(f"/v1/models/{third['model']}").json()
    assert (third["version"], third["made_by"], third["calibration_rows"]) == (3, "recalibrate", 360)
    assert third["reference_rows"] == before["reference_rows"]
    assert service.http.get(f"/v1/models/{fitted['model']}").json() == before

    # rows that an update took in are not held out, and the result says so
    scored = done(service, "/v1/scorings", table=new, model=updated["model"])["scores"]
    assert scored["training_table"] and not scored["held_out"]
    scored = done(service, "/v1/scorings", table=new, model=third["id"])["scores"]
    assert not scored["training_table"]

    comparison = service.http.get(f"/v1/models/{fitted['model']}/comparison", params={"other": updated["model"]}).json()
    assert (comparison["first"]["version"], comparison["second"]["version"]) == (1, 2)
    assert comparison["second"]["calibration_rows"] == 180 and len(comparison["first"]["quantiles"]) == len(
        comparison["levels"]
    )
    assert comparison["columns"] == {"first_only": [], "second_only": [], "types": []} and comparison["settings"] == []
    uploads = service.http.get(f"/v1/models/{updated['model']}/scorings", params={"versions": True}).json()
    assert {job["model"] for job in uploads} == {fitted["model"], updated["model"], third["id"]}
    assert uploads == sorted(uploads, key=lambda job: job["created"])
    only = service.http.get(f"/v1/models/{updated['model']}/scorings").json()
    assert {job["model"] for job in only} == {updated["model"]} and only[0]["scores"]["quantiles"]


def test_wrong_updates_are_refused_or_end_in_words(service, fitted, table):
    few = table_of(service, make_rows(30, 6), "few.csv")
    other = table_of(service, pa.table({"x": range(30), "state": ["ok"] * 30}), "other.csv")
    for path in ("/v1/updates", "/v1/recalibrations"):
        wanted = {"table": few, "model": fitted["model"]}
        refused(service.http.post(path, json={**wanted, "table": "t-none"}), 404, "no table")
        refused(service.http.post(path, json={**wanted, "model": "m-none"}), 404, "no model")
        refused(
            service.http.post(path, json={**wanted, "table": other}),
            400,
            "other.csv has no columns 'a', 'b', 'n', 'colour', which the model",
        )
        refused(service.http.post(path, json={**wanted, "label": "state"}), 400, "belong together")
        refused(service.http.post(path, json={**wanted, "label": "zzz", "normal": ["ok"]}), 400, "no column 'zzz'")
        refused(service.http.post(path, json={**wanted, "false_alarm_rate": 2}), 422, "false_alarm_rate")
        failed = service.wait(service.http.post(path, json=wanted).json()["id"])
        assert failed["state"] == "failed" and "needs" in failed["error"] and "_rate_" not in failed["error"]
        assert service.http.get(f"/v1/models/{failed['model']}").status_code == 404
    refused(
        service.http.post("/v1/recalibrations", json={"table": table, "model": fitted["model"]}), 400, "fitted on this"
    )


def test_a_model_that_an_update_needs_is_not_deleted(service, fitted, csv_bytes):
    held = service.stops.add("*/jobs/*/model/bundle", how="hold")
    table = table_of(service, make_rows(400, 7))
    job = service.http.post("/v1/updates", json={"table": table, "model": fitted["model"]}).json()
    held.wait(service.log.read_text)
    refused(service.http.delete(f"/v1/models/{fitted['model']}"), 409, "needs this model")
    held.release()
    assert service.wait(job["id"])["state"] == "done"


def test_a_timeline_quotes_no_cell_in_a_warning(tmp_path):
    """The warnings of the library get into the log of the service."""
    days = [f"2024-01-{day:02d}" for day in range(1, 31)]
    added = {field.name: pa.nulls(31, field.type) for field in added_schema(N_REASONS)} | {"score": [0.0] * 31}
    pq.write_table(pa.table({"day": [*days, "x"], **added}), tmp_path / "scored.parquet")
    content = {"scores": {"threshold": 1.0, "scale": [0.0, 1.0]}, "over_time": None}
    found = results.timeline(results.ScoredFile.open(tmp_path / "scored.parquet"), content, None)
    assert found["columns"] == ["day"] and found["without"] == 1


def test_a_timeline_counts_every_row_once(service, fitted):
    address = f"/v1/jobs/{fitted['id']}/timeline"
    timeline = service.http.get(address).json()
    assert timeline["column"] == "day" and timeline["columns"] == ["day"] and timeline["period"] == "month"
    assert sum(period["rows"] for period in timeline["buckets"]) == 200 and timeline["without"] == 0
    assert sum(period["flagged"] for period in timeline["buckets"]) == fitted["scores"]["flagged"]
    assert service.http.get(address, params={"column": "day"}).json() == timeline
    refused(service.http.get(address, params={"column": "a"}), 400, "no date column 'a'. Its date columns are: 'day'")
    refused(service.http.get("/v1/jobs/j-none/timeline"), 404, "no job")


def test_dates_that_cannot_be_read_are_in_no_period_of_a_timeline(service):
    table = messy_table(300, n_bad=6).text.encode()
    identifier = service.upload(table, "messy.csv").json()["id"]
    job = done(service, "/v1/fits", table=identifier, score=True, missing=list(MARKERS))
    timeline = service.http.get(f"/v1/jobs/{job['id']}/timeline", params={"column": "Datum"}).json()
    n_without = sum(line.split(";")[1] in ("31.02.2014", *MARKERS) for line in table.decode().splitlines())
    assert timeline["without"] == n_without > 2
    assert sum(period["rows"] for period in timeline["buckets"]) == 300 - n_without
    one = service.upload("\n".join(table.decode().splitlines()[:2]).encode(), "one.csv").json()["id"]
    alone = done(service, "/v1/scorings", table=one, model=job["model"])
    assert service.http.get(f"/v1/jobs/{alone['id']}/timeline").json()["buckets"] == []
    address = f"/v1/jobs/{job['id']}"  # the page shows the column of the report
    over_time = service.http.get(f"{address}/report").json()["over_time"]
    assert service.http.get(f"{address}/timeline").json()["column"] == over_time["column"] == "Erfasst"


def test_a_table_without_dates_has_an_empty_timeline(service, csv_bytes):
    table = service.upload(csv_bytes).json()["id"]
    job = done(service, "/v1/scorings", table=table, model="tiny-model")
    assert service.http.get(f"/v1/jobs/{job['id']}/timeline").json()["buckets"] == []
    other = service.http.get(f"/v1/jobs/{job['id']}/timeline", params={"column": "day"})
    refused(other, 400, "It has no date column")


def test_two_scorings_of_a_table_are_compared_row_by_row(service, fitted):
    other = done(service, "/v1/fits", table=fitted["table"], name="b", drop=["a", "day", "state"], score=True)
    address = f"/v1/jobs/{fitted['id']}/comparison"
    comparison = service.http.get(address, params={"other": other["id"]}).json()
    flags = comparison["flags"]
    assert comparison["same_table"] and sum(flags.values()) == 200
    assert flags["both"] + flags["first_only"] == fitted["scores"]["flagged"] == comparison["first"]["flagged"]
    assert len(comparison["changed"]) == flags["first_only"] + flags["second_only"]
    assert all(row["first"]["flagged"] != row["second"]["flagged"] for row in comparison["changed"])
    first = comparison["counting"]["first"]
    assert all(row["number"] == row["row"] + first for row in comparison["changed"])
    assert len(comparison["points"]) == 200 and -1 <= comparison["rank_correlation"] <= 1
    itself = service.http.get(address, params={"other": fitted["id"]}).json()
    assert itself["changed"] == [] and itself["rank_correlation"] == pytest.approx(1)

    new = done(service, "/v1/scorings", table=table_of(service, make_rows(50, 9)), model=fitted["model"])
    apart = service.http.get(address, params={"other": new["id"]}).json()
    assert not apart["same_table"] and "changed" not in apart and apart["second"]["rows"] == 50
    refused(service.http.get(address, params={"other": "j-none"}), 404, "no job")
    refused(service.http.get(address), 422, "other")
    refused(service.http.get("/v1/models/tiny-model/comparison?other=m-none"), 404, "no model")
    refused(service.http.get("/v1/models/m-none/scorings"), 404, "no model")


def test_the_report_is_one_file_and_the_csv_has_reasons(service, fitted):
    answer = service.http.get(f"/v1/jobs/{fitted['id']}/report.html")
    assert (
        answer.headers["content-type"].startswith("text/html") and "attachment" in answer.headers["content-disposition"]
    )
    assert "<script" in answer.text and '"training_table":true' in answer.text
    csv = pcsv.read_csv(io.BytesIO(service.http.get(f"/v1/jobs/{fitted['id']}/scores").content))
    flagged = csv.filter(csv["anomaly"])
    assert flagged.num_rows == fitted["scores"]["flagged"] > 0
    assert all(flagged["why_1"].to_pylist()) and "why_3_percentage" in csv.column_names


def test_no_problem_speaks_of_the_command_line(service, table):
    refused(service.upload("a,b\ncaf\xe9,2\nx,3\n".encode("latin-1")), 400, "Save it as UTF-8.")
    wanted = {"table": table, "model": "tiny-model", "label": "state"}
    failed = service.wait(service.http.post("/v1/scorings", json=wanted).json()["id"])
    assert failed["state"] == "failed" and "Say which one is normal" in failed["error"]


def test_markers_of_missing_values_change_what_a_column_is(service):
    table = service.upload(b"a,b\n1,x\n?,y\n3,x\n-9,y\n", "marked.csv").json()["id"]

    def column(**query: Any) -> tuple[str, float]:
        description = service.http.get(f"/v1/tables/{table}", params=query).json()["columns"][0]
        return description["type"], description["missing"]

    assert column() == ("categorical", 0.0)
    assert column(missing=["?", "-9"]) == ("numeric", 0.5)
    assert column() == ("categorical", 0.0)  # nothing is kept of the question
    refused(service.http.get("/v1/tables/t-none", params={"missing": "?"}), 404, "no table")
    refused(service.http.get(f"/v1/tables/{table}", params={"missing": "x" * 2000}), 422, "missing")
