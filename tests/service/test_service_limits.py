"""Nothing grows without bound: bodies in memory, uploads at a time, jobs that are kept; and logs quote no data."""

from __future__ import annotations

import asyncio
import sys

import pytest
from in_process import run_requests

from ptad.errors import SettingError
from ptad.files import write_json
from ptad.service.jobs import table_scores, worker
from ptad.service.settings import Limits


def test_json_bodies_share_a_bounded_memory(tmp_path, model_folder, json_rows):
    async def requests(client, context):
        few = {"rows": json_rows[:2]}
        for _ in range(3):  # one after the other, since what was held is let go
            assert (await client.post("/v1/models/tiny-model/score", json=few)).status_code == 200
            refused = await client.post("/v1/models/tiny-model/score", json={"rows": json_rows})
            assert refused.status_code == 503 and "Retry-After" in refused.headers
            assert "JSON bodies" in refused.json()["detail"]

    run_requests(tmp_path, Limits(json_held=1000), requests, (model_folder,))


KIND = {"Content-Type": "text/csv"}


def halting(content, n):
    """A body that halts after some bytes until it is told to go on: (body, begun, go_on)."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def body():
        yield content[:n]
        begun.set()
        await go_on.wait()
        yield content[n:]

    return body(), begun, go_on


def test_uploads_at_a_time_and_kept_jobs_are_bounded(tmp_path, csv_bytes):
    async def requests(client, context):
        body, begun, go_on = halting(csv_bytes, 200)
        first = asyncio.create_task(client.post("/v1/tables", content=body, headers=KIND))
        await begun.wait()
        refused = await client.post("/v1/tables", content=csv_bytes, headers=KIND)
        assert refused.status_code == 503 and "1 uploads are under way" in refused.json()["detail"]
        go_on.set()
        table = (await first).json()["id"]
        context.jobs.stopping.set()  # nothing is started here
        body = {"table": table}
        assert (await client.post("/v1/fits", json=body)).status_code == 202
        refused = await client.post("/v1/fits", json=body)
        assert refused.status_code == 429 and "keeps 1 jobs" in refused.json()["detail"]

    run_requests(tmp_path, Limits(uploads_running=1, jobs_kept=1, small_upload_bytes=100), requests)


def test_bodies_that_do_not_arrive_keep_nobody_out(tmp_path, csv_bytes):
    """Neither those that only begin, nor small tables beside a large one."""

    async def requests(client, context):
        bodies = [halting(csv_bytes, 1) for _ in range(20)]  # more than there are places
        bodies.append(halting(csv_bytes * 20, len(csv_bytes) * 2))
        waiting = [asyncio.create_task(client.post("/v1/tables", content=b, headers=KIND)) for b, _, _ in bodies]
        for _, begun, _ in bodies:
            await begun.wait()
        answer = await client.post("/v1/tables", content=csv_bytes, headers=KIND)
        assert answer.status_code == 201
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        assert context.uploads._large.taken == context.uploads._small.taken == 0
        assert list(context.store.tmp.iterdir()) == []

    limits = Limits(uploads_running=1, small_uploads_running=1, small_upload_bytes=len(csv_bytes))
    run_requests(tmp_path, limits, requests)


def test_a_slow_body_is_refused_and_time_spent_by_the_service_does_not_count(tmp_path, csv_bytes):
    async def requests(client, context):
        body, _, _ = halting(csv_bytes, 10)
        answer = await client.post("/v1/tables", content=body, headers=KIND)
        assert answer.status_code == 408 and "bytes per second" in answer.json()["detail"]
        assert answer.headers["connection"] == "close"
        rows, _, _ = halting(b'{"rows": []}', 5)
        answer = await client.post("/v1/models/x/score", content=rows, headers={"Content-Type": "application/json"})
        assert answer.status_code == 408
        assert (await client.post("/v1/tables", content=csv_bytes, headers=KIND)).status_code == 201

    run_requests(tmp_path, Limits(body_window_seconds=0.1), requests)


def test_limits_are_bounded_and_named():
    limits = Limits().changed(["connections=7", "worker_memory=1.5GiB", "header_seconds=0.5"])
    assert (limits.connections, limits.worker_memory, limits.header_seconds) == (7, 3 * 2**29, 0.5)
    for wrong, says in (
        ("connections=10000000", "at most 100,000"),
        ("connections=0", "at least 1"),
        ("connexions=3", "Known settings: body_bytes"),
        ("connections", "NAME=NUMBER"),
        ("connections=nan", "NAME=NUMBER"),
    ):
        with pytest.raises(SettingError, match=says):
            Limits().changed([wrong])


def test_a_job_that_was_cancelled_before_its_turn_is_not_started(tmp_path, csv_bytes):
    async def requests(client, context):
        uploaded = await client.post("/v1/tables", content=csv_bytes, headers={"Content-Type": "text/csv"})
        spec = {"table": uploaded.json()["id"], "name": "x", "label": None, "normal": [], "parameters": {}}
        job = context.jobs.add("fit", spec, "x")  # its task is made, and has not begun
        await context.jobs.cancel(job["id"])
        assert (job["state"], job["attempts"], job["started"]) == ("cancelled", 0, None)

    run_requests(tmp_path, Limits(), requests)


def test_a_bug_is_answered_as_a_problem_and_ends_an_answer_that_has_begun(tmp_path, caplog, monkeypatch):
    def broken(*_):
        raise KeyError("secret 42")

    async def half(*_):
        yield b"begun"
        raise KeyError("secret 42")

    async def requests(client, context):
        monkeypatch.setattr(context.jobs, "get", broken)
        answer = await client.get("/v1/jobs/j-1")
        assert answer.status_code == 500 and "This is a bug" in answer.json()["detail"]
        assert answer.headers["x-frame-options"] == "DENY" and "secret" not in answer.text
        monkeypatch.setattr(context.jobs, "get", lambda _: {})
        monkeypatch.setattr("ptad.service.routes.jobs._events", half)
        with pytest.raises(KeyError):  # the server closes the connection: nobody takes it for a whole answer
            await client.get("/v1/jobs/j-1/events")

    run_requests(tmp_path, Limits(), requests)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [line.split(" (")[0] for line in lines] == ["unexpected KeyError in broken", "unexpected KeyError in half"]


def test_a_worker_that_breaks_says_where_and_quotes_nothing(tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError("cell 'secret 42'")

    monkeypatch.setattr(table_scores, "score_upload", broken)
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path)])
    write_json(tmp_path / "task.json", {"kind": "score", "source": "x", "source_name": "y"})
    with pytest.raises(SystemExit) as left:
        worker.main()
    assert str(left.value).startswith("ValueError in broken (test_service_limits.py:")
    assert "secret" not in str(left.value)
    assert not (tmp_path / "result.json").exists()  # it is tried again
