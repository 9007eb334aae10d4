"""Nothing grows without bound: bodies in memory, uploads at a time, jobs that are kept; and logs quote no data."""

from __future__ import annotations

import asyncio
import sys

import httpx
import pytest

from ptad.service import table_scores, worker
from ptad.service.app import create_app
from ptad.service.settings import Limits, ServiceSettings
from ptad.service.store import write_json


def ask(tmp_path, limits, questions, models=()):
    """Put questions to a service of this process: an async function that takes the client and the application."""
    app = create_app(ServiceSettings(tmp_path / "s", models, device="cpu", limits=limits))

    async def run():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            return await questions(client, app.state.context)

    return asyncio.run(run())


def test_json_bodies_share_a_bounded_memory(tmp_path, model_folder, json_rows):
    async def questions(client, context):
        few = {"rows": json_rows[:2]}
        for _ in range(3):  # one after the other, since what was held is let go
            assert (await client.post("/v1/models/tiny-model/score", json=few)).status_code == 200
            refused = await client.post("/v1/models/tiny-model/score", json={"rows": json_rows})
            assert refused.status_code == 503 and "Retry-After" in refused.headers
            assert "JSON bodies" in refused.json()["detail"]

    ask(tmp_path, Limits(json_held=1000), questions, (model_folder,))


def test_uploads_at_a_time_and_kept_jobs_are_bounded(tmp_path, csv_bytes):
    kind = {"Content-Type": "text/csv"}

    async def questions(client, context):
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow():
            yield csv_bytes[:100]
            begun.set()
            await go_on.wait()
            yield csv_bytes[100:]

        first = asyncio.create_task(client.post("/v1/tables", content=slow(), headers=kind))
        await begun.wait()
        refused = await client.post("/v1/tables", content=csv_bytes, headers=kind)
        assert refused.status_code == 503 and "1 uploads are under way" in refused.json()["detail"]
        go_on.set()
        table = (await first).json()["id"]
        context.jobs.stopping.set()  # nothing is started here
        wish = {"table": table}
        assert (await client.post("/v1/fits", json=wish)).status_code == 202
        refused = await client.post("/v1/fits", json=wish)
        assert refused.status_code == 429 and "keeps 1 jobs" in refused.json()["detail"]

    ask(tmp_path, Limits(uploads_running=1, jobs_kept=1), questions)


def test_a_job_that_was_cancelled_before_its_turn_is_not_started(tmp_path, csv_bytes):
    async def questions(client, context):
        uploaded = await client.post("/v1/tables", content=csv_bytes, headers={"Content-Type": "text/csv"})
        spec = {"table": uploaded.json()["id"], "name": "x", "label": None, "normal": [], "parameters": {}}
        job = context.jobs.add("fit", spec, "x")  # its task is made, and has not begun
        await context.jobs.cancel(job["id"])
        assert (job["state"], job["attempts"], job["started"]) == ("cancelled", 0, None)

    ask(tmp_path, Limits(), questions)


def test_a_worker_that_breaks_says_where_and_quotes_nothing(tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError("cell 'secret 42'")

    monkeypatch.setattr(table_scores, "score_table", broken)
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path)])
    write_json(tmp_path / "task.json", {"kind": "score", "source": "x", "source_name": "y"})
    with pytest.raises(SystemExit) as left:
        worker.main()
    assert str(left.value).startswith("ValueError in broken (test_service_limits.py:")
    assert "secret" not in str(left.value)
    assert not (tmp_path / "result.json").exists()  # it is tried again
