"""A scored table survives a kill: finished batches are not scored again, and what comes out is the same."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest
from service_tables import csv_of

from ptad.errors import DataError
from ptad.files import read_json
from ptad.report.survey import Survey
from ptad.service.jobs import table_scores
from ptad.service.jobs.table_scores import BAD_CELLS, CONTENT, SCORED, score_upload
from ptad.tables import write_table


class Killed(BaseException):
    """Ends a run as a kill does: nothing catches it."""


@pytest.fixture
def task(model_folder, rows, tmp_path):
    write_table(rows, tmp_path / "data.csv")
    return {
        "bundle": str(model_folder),
        "device": "cpu",
        "false_alarm_rate": 0.1,
        "top": 20,
        "label": "state",
        "normal": ["ok"],
        "source": str(tmp_path / "data.csv"),
        "source_name": "data.csv",
        "model_name": "tiny",
        "fitted_on": None,
        "training_table": False,
    }


@pytest.fixture
def scored_batches(monkeypatch):
    """The numbers of rows of every batch that the model was asked about; batches have 30 rows."""
    sizes: list[int] = []
    score = Survey.score

    def counted(self, batch, start):
        sizes.append(batch.num_rows)
        return score(self, batch, start)

    monkeypatch.setattr(table_scores, "MOST_ROWS", 30)
    monkeypatch.setattr(Survey, "score", counted)
    return sizes


def run(folder, task, kill_after=None):
    folder.mkdir(exist_ok=True)
    notes = []

    class Told:
        note = notes.append

        def stage(self, name, done, total, unit):
            assert (name, total, unit) == ("scoring", 200, "rows")
            if done == kill_after:
                raise Killed

    return score_upload(folder, task, Told()), notes


def result(folder):
    content = read_json(folder / CONTENT)
    content.pop("made")
    return content, pq.read_table(folder / SCORED)


def test_a_killed_scoring_goes_on_where_it_stood(task, scored_batches, tmp_path):
    whole, notes = run(tmp_path / "whole", task)
    assert scored_batches == [30] * 6 + [20] and notes == []
    scored_batches.clear()
    with pytest.raises(Killed):
        run(tmp_path / "job", task, kill_after=120)
    assert scored_batches == [30] * 4
    assert not (tmp_path / "job" / SCORED).exists()
    scored_batches.clear()
    resumed, notes = run(tmp_path / "job", task)
    assert scored_batches == [30, 30, 20]
    assert notes == ["Scoring resumes after 120 rows."]
    assert resumed == whole and result(tmp_path / "job") == result(tmp_path / "whole")
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == [BAD_CELLS, CONTENT, SCORED]

    scored_batches.clear()  # killed after all was done, before the service heard of it
    assert run(tmp_path / "job", task) == (whole, []) and scored_batches == []


@pytest.mark.parametrize("change", [{"false_alarm_rate": 0.2}, {"label": None, "normal": []}])
def test_parts_of_another_wish_are_not_used(task, scored_batches, tmp_path, change):
    with pytest.raises(Killed):
        run(tmp_path / "job", task, kill_after=120)
    scored_batches.clear()
    _, notes = run(tmp_path / "job", task | change)
    assert len(scored_batches) == 7 and notes == []


def test_a_mistake_leaves_nothing(task, tmp_path):
    with pytest.raises(DataError, match="No row is normal"):
        run(tmp_path / "job", task | {"normal": ["fine"]})
    assert list((tmp_path / "job").iterdir()) == []


def test_missing_values_and_unseen_categories_are_in_the_summary(task, tmp_path):
    lines = (tmp_path / "data.csv").read_text().splitlines()
    lines[3] = "0.1,,3,violet,ok"
    lines[4] = "0.1,0.2,,red,ok"
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    summary, _ = run(tmp_path / "job", task)
    assert (summary["rows_with_missing_values"], summary["rows_with_unseen_categories"]) == (2, 1)
    content, _ = result(tmp_path / "job")
    assert content["missing"]["columns"] == [["b", 1], ["n", 1]]
    assert content["unseen"]["columns"] == [["colour", 1]]


def test_the_table_that_a_model_was_fitted_on_is_scored_without_its_own_rows(task, rows, model, tmp_path):
    plain, _ = run(tmp_path / "plain", task)
    own = {"table": "t", "label": None, "normal": []}
    held_out, _ = run(tmp_path / "held-out", task | {"fitted_on": own})
    known = rows.drop_columns(["state"])
    content, scored = result(tmp_path / "plain")
    assert scored["score"].to_pylist() == model.anomaly_score(known).tolist() and not content["held_out"]
    content, again = result(tmp_path / "held-out")
    assert content["held_out"]
    assert sum(again["score"].to_pylist()) > sum(scored["score"].to_pylist())  # no row finds itself
    assert plain["flagged"] < held_out["flagged"] < 0.25 * 200  # at a rate of 0.1
    assert [row["score"] for row in content["top"]["rows"]] == pytest.approx(
        sorted(again["score"].to_pylist(), reverse=True)[:20]
    )


def test_flagged_rows_carry_their_reasons_and_no_others(task, rows, model, tmp_path):
    b = [9.0 if i < 5 else value for i, value in enumerate(rows["b"].to_pylist())]
    rows = rows.set_column(1, "b", [b])
    write_table(rows, tmp_path / "data.csv")
    summary, _ = run(tmp_path / "job", task)
    _, scored = result(tmp_path / "job")
    flagged = scored.filter(scored["anomaly"])
    assert flagged.num_rows == summary["flagged"] > 0
    assert flagged["why_1"].null_count == 0 and flagged["why_1_reason"].null_count == 0
    assert scored["why_1"].null_count == 200 - flagged.num_rows
    wanted = model.explain(rows.drop_columns(["state"]).filter(scored["anomaly"]))
    assert flagged["why_1"].to_pylist() == [names[0] for names in wanted.top(1)]
    assert summary["quantiles"]["0.5"] == pytest.approx(sorted(scored["score"].to_pylist())[100], rel=0.1)


@pytest.mark.slow
def test_a_killed_worker_does_not_score_again(service, rows, model, tmp_path):
    write_table(rows.take([i % 200 for i in range(12_000)]), tmp_path / "long.parquet")
    table = service.upload((tmp_path / "long.parquet").read_bytes(), "long.parquet").json()["id"]
    stop = service.stops.add(f"*/.{SCORED}.partial/*.arrow", 3)  # two batches are kept
    job = service.http.post("/v1/scorings", json={"table": table, "model": "tiny-model"}).json()["id"]
    folder = service.store / "jobs" / job
    done = service.wait(job)
    assert stop.pid is not None
    assert (done["state"], done["attempts"]) == ("done", 2)
    assert f'"Scoring resumes after {2 * table_scores.MOST_ROWS:,} rows' in (folder / "progress.jsonl").read_text()
    blob = service.http.get(f"/v1/jobs/{job}/scores", params={"format": "parquet"}).content
    assert pq.read_table(io.BytesIO(blob))["score"].to_pylist() == model.anomaly_score(rows).tolist() * 60
    assert not list(service.store.glob("jobs/*/.*"))


def test_columns_that_have_the_names_of_added_ones_are_named(service, rows):
    taken = rows.append_column("score", rows["a"]).append_column("ptad_anomaly", rows["a"])
    content = csv_of(taken)
    table = service.upload(content, "taken.csv").json()["id"]
    job = service.wait(service.http.post("/v1/scorings", json={"table": table, "model": "tiny-model"}).json()["id"])
    assert job["error"] == "taken.csv already has a column 'ptad_anomaly'. Rename it."
    for append, status in ((True, 400), (False, 200)):
        answer = service.http.post(
            "/v1/models/tiny-model/score",
            params={"append": append, "name": "taken.csv"},
            content=content,
            headers={"Content-Type": "text/csv"},
        )
        assert answer.status_code == status
        if append:
            says = "taken.csv already has a column 'score'. Send the request without 'append', or rename it."
            assert answer.json()["detail"] == says
