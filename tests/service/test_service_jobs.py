"""Jobs: from an upload to a model and a scored table; stopped, killed and resumed."""

from __future__ import annotations

import io
import json
import os
import signal
import zipfile

import psutil
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from ptad import PTAD
from ptad.jobs.fit import fit_table
from ptad.service.jobs.attempt import made_progress
from ptad.service.jobs.progress import Events
from ptad.service.jobs.worker import FITTED
from stopping import HANG

pytestmark = pytest.mark.slow

CHECKPOINT = "*/checkpoint/*.safetensors"


def events(service, job, after=0):
    """All events of a job until it ends."""
    entries = []
    with service.http.stream("GET", f"/v1/jobs/{job}/events", headers={"Last-Event-ID": str(after)}) as stream:
        block = {}
        for line in stream.iter_lines():
            if not line:
                if "event" in block:
                    entries.append((block["event"], json.loads(block["data"])))
                block = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                block[name] = value
    return entries


def longer(tiny, n_steps):
    """The wish with so many steps in every training, none of which ends early."""
    return {**tiny, "config": {**tiny["config"], "network.n_steps": n_steps, "network.patience": None}}


@pytest.fixture(scope="module")
def table(service, csv_bytes):
    return service.upload(csv_bytes, "rows.csv").json()["id"]


def test_from_upload_to_model_to_scored_table(service, table, tiny, csv_bytes, tmp_path):
    body = {"table": table, "name": "mine", "label": "state", "normal": ["ok"], "seed": 3, **tiny}
    answer = service.http.post("/v1/fits", json=body)
    assert answer.status_code == 202
    job = answer.json()
    entries = events(service, job["id"])
    steps = [entry["step"] for kind, entry in entries if kind == "progress" and "step" in entry]
    assert steps[:4] == [5, 10, 15, 20] and all(e["loss"] > 0 for k, e in entries if k == "progress" and "step" in e)
    kind, final = entries[-1]
    assert (kind, final["state"], final["summary"]["training_rows"]) == ("state", "done", 180)
    assert len(events(service, job["id"], after=2)) < len(entries)

    # the model is the one that the command line would have made
    (tmp_path / "rows.csv").write_bytes(csv_bytes)
    parameters = {**tiny, "random_state": 3, "device": "auto", "verbose": 0}
    fit_table(tmp_path / "rows.csv", tmp_path / "model", parameters, label="state", normal=["ok"])
    blob = service.http.get(f"/v1/models/{job['model']}/download").content
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        archive.extractall(tmp_path / "got")
    rows = pcsv.read_csv(tmp_path / "rows.csv")
    ours, theirs = PTAD.load(tmp_path / "model"), PTAD.load(tmp_path / "got" / "model")
    assert ours.anomaly_score(rows).tolist() == theirs.anomaly_score(rows).tolist()

    body = {"table": table, "model": job["model"], "label": "state", "normal": ["ok"], "top": 7}
    held = service.stops.add("*/scored.parquet", how="hold")
    scoring = service.http.post("/v1/scorings", json=body).json()
    held.wait(service.log.read_text)
    assert service.http.delete(f"/v1/tables/{table}").status_code == 409  # it is needed
    assert service.http.get(f"/v1/jobs/{scoring['id']}/report").status_code == 409  # not yet
    held.release()
    assert service.wait(scoring["id"])["summary"]["rows"] == 200
    report = service.http.get(f"/v1/jobs/{scoring['id']}/report").json()
    assert report["n_rows"] == 200 and len(report["top"]["rows"]) == 7
    assert sum(report["scores"]["labelled"]["counts"]) == 20
    parquet = pq.read_table(
        io.BytesIO(service.http.get(f"/v1/jobs/{scoring['id']}/scores", params={"format": "parquet"}).content)
    )
    assert parquet["score"].to_pylist() == ours.anomaly_score(rows).tolist()
    text = service.http.get(f"/v1/jobs/{scoring['id']}/scores").text
    assert len(text.splitlines()) == 201 and "'=1+1" in text and '"=1+1"' not in text

    assert service.http.delete(f"/v1/models/{job['model']}").status_code == 204
    assert service.http.get(f"/v1/models/{job['model']}").status_code == 404
    assert service.http.delete(f"/v1/jobs/{scoring['id']}").status_code == 204
    assert not (service.store / "jobs" / scoring["id"]).exists()


def test_wrong_wishes_are_refused_at_once_or_end_in_words(service, table):
    for body, says in (
        ({"drop": ["zzz"]}, "no column 'zzz'"),
        ({"label": "state"}, "belong together"),
        ({"config": {"reference.rowz": 3}}, "rowz"),
        ({"config": {"reference.rows": -3}}, "reference.rows"),
        ({"config": {"rows": 3}}, "group and a dot"),
        ({"preset": "paper", "config": {"local_reconstruction.ridge": 3}}, "groups of this preset"),
    ):
        answer = service.http.post("/v1/fits", json={"table": table, **body})
        assert answer.status_code == 400 and says in answer.json()["detail"]
    body = {"table": table, "label": "state", "normal": ["fine"]}
    failed = service.wait(service.http.post("/v1/fits", json=body).json()["id"])
    assert failed["state"] == "failed"
    assert failed["error"].startswith("rows.csv has no normal rows") and "'ok', 'bad'" in failed["error"]


def test_cancel_leaves_nothing(service, table, tiny):
    held = service.stops.add(CHECKPOINT, 2, how="hold")
    job = service.http.post("/v1/fits", json={"table": table, **tiny}).json()
    held.wait(service.log.read_text)
    assert service.http.get(f"/v1/jobs/{job['id']}").json()["state"] == "running"
    assert service.http.post(f"/v1/jobs/{job['id']}/cancel").json()["state"] == "cancelled"
    assert service.http.post(f"/v1/jobs/{job['id']}/cancel").status_code == 409
    assert service.http.get(f"/v1/models/{job['model']}").status_code == 404
    assert not (service.store / "models" / job["model"]).exists()
    left = {path.name for path in (service.store / "jobs" / job["id"]).iterdir()}
    assert left <= {"job.json", "task.json", "progress.jsonl", "worker.log", "lock"}


def test_killed_and_stopped_services_resume_a_fit(start, csv_bytes, tiny):
    steps = longer(tiny, 100)
    service = start("--grace", 0)
    table = service.upload(csv_bytes).json()["id"]
    held = service.stops.add(CHECKPOINT, 5, how="hold")
    job = service.http.post("/v1/fits", json={"table": table, **steps}).json()["id"]
    progress = service.store / "jobs" / job / "progress.jsonl"
    held.wait(service.log.read_text)
    service.stop(signal.SIGKILL)
    held = service.stops.add(CHECKPOINT, 5, how="hold")
    service = start("--grace", 0, store=service.store)
    held.wait(service.log.read_text)
    assert b"resumes from its checkpoint" in progress.read_bytes()
    assert service.stop(signal.SIGTERM) == 0  # in the middle of the fit: stops at the checkpoint
    assert json.loads((progress.parent / "job.json").read_bytes())["state"] == "waiting"
    assert list((service.store / "models").iterdir()) == []
    service = start(store=service.store)
    done = service.wait(job)
    assert (done["state"], done["attempts"]) == ("done", 2)  # that it was asked to stop is no attempt
    assert [m["id"] for m in service.http.get("/v1/models").json()] == [done["model"]]
    assert not any(path.name.startswith(".") for path in service.store.rglob("*"))
    (service.store.parent / "rows.csv").write_bytes(csv_bytes)
    undisturbed = {**steps, "verbose": 0}
    fit_table(service.store.parent / "rows.csv", service.store.parent / "model", undisturbed)
    rows = pcsv.read_csv(io.BytesIO(csv_bytes))
    ours = PTAD.load(service.store.parent / "model").anomaly_score(rows)
    theirs = PTAD.load(service.store / "models" / done["model"] / "bundle").anomaly_score(rows)
    assert ours.tolist() == theirs.tolist()
    assert service.stop() == 0


def test_a_killed_worker_is_started_again(service, table, tiny):
    held = service.stops.add(CHECKPOINT, 2, how="hold")
    job = service.http.post("/v1/fits", json={"table": table, **tiny}).json()["id"]
    worker = psutil.Process(held.wait(service.log.read_text))
    assert worker.ppid() == service.process.pid and str(service.store / "jobs" / job) in worker.cmdline()
    worker.kill()
    done = service.wait(job)
    assert (done["state"], done["attempts"]) == ("done", 2)
    service.http.delete(f"/v1/models/{done['model']}")


def test_a_service_that_is_killed_while_it_takes_a_model_in_loses_nothing(start, csv_bytes):
    service = start()
    service.stops.add("*/store/models/*")
    job = service.http.post("/v1/fits", json={"table": service.upload(csv_bytes).json()["id"]}).json()["id"]
    service.process.wait(HANG)
    service = start(store=service.store)
    done = service.wait(job)
    assert done["state"] == "done", done["error"]
    assert service.http.get(f"/v1/models/{done['model']}").status_code == 200
    assert list((service.store / "tmp").iterdir()) == []


def test_attempts_that_get_further_are_not_counted_against_a_fit(tmp_path):
    (tmp_path / "checkpoint" / "fold-0").mkdir(parents=True)
    checkpoint = tmp_path / "checkpoint" / "fold-0" / "network.safetensors"
    checkpoint.touch()
    os.utime(checkpoint, (1, 1))
    (tmp_path / "task.json").touch()  # written when an attempt begins
    assert not made_progress(tmp_path)
    checkpoint.touch()
    os.utime(tmp_path / "task.json", (1, 1))
    assert made_progress(tmp_path)
    checkpoint.unlink()
    assert not made_progress(tmp_path)
    (tmp_path / FITTED).touch()  # what is left is the scoring of the table
    assert made_progress(tmp_path)


def test_progress_is_read_once_and_in_whole_lines(tmp_path):
    path = tmp_path / "progress.jsonl"
    events, later = Events(tmp_path), Events(tmp_path, skip=2)
    assert events.read() == []
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n{"st')
    assert events.read() == [{"step": 1}, {"step": 2}] and later.read() == []
    path.write_bytes(path.read_bytes() + b'ep": 3}\nnot json\n')
    assert events.read() == [{"step": 3}, {}] == later.read()
    assert events.read() == [] == later.read()
