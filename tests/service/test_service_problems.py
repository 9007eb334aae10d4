"""Whatever is wrong with a request, the answer is a problem that says so, and nothing else happens."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from ptad.cli import app
from ptad.errors import SettingError
from ptad.files import write_json
from ptad.service import ServiceSettings
from ptad.service.app import create_app
from ptad.service.store import Store

SCORE = "/v1/models/tiny-model/score"
JSON = {"Content-Type": "application/json"}
ROWS = {"rows": [{"a": 0.1, "b": 0.2, "n": 3, "colour": "red"}]}


def detail(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status and body["title"] and body["detail"]
    return body["detail"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"rows": []}', "empty"),
        (b'{"rows": 3}', 'no list "rows"'),
        (b'{"rows": [1]}', "Row 0"),
        (b'{"rows": [{"a": 1}]}', "has no column 'b'"),
        (b'{"rows": [{"a": 1, "b": 1, "n": 1, "Colour": "x"}]}', "has no column 'colour', which"),
        (b'{"rows": [{"a": 1, "b": 1, "n": 1, "Colour": "x"}]}', "Did you mean 'Colour'?"),
        (b'{"rows": [{"a": NaN, "b": 1, "n": 1, "colour": "x"}]}', "NaN is not a JSON number, send null"),
        (b'{"rows": [{"a": 1e999, "b": 1, "n": 1, "colour": "x"}]}', "infinity"),
        (b'{"rows": [{"a": [1], "b": 1, "n": 1, "colour": "x"}]}', "not a list"),
        (b'{"rows": [{"a": {"b": 1}, "b": 1, "n": 1, "colour": "x"}]}', "not an object"),
        (b'{"rows": [{"a": 1, "b": 1, "n": 1, "colour": "\\ud800"}]}', "Unicode"),
        (json.dumps({"rows": [{}] * 10_001}).encode(), "more than 10,000 rows"),
    ],
)
def test_bad_rows(service, body, says):
    assert says in detail(service.http.post(SCORE, content=body, headers=JSON), 400)


def test_a_strict_call_refuses_a_cell_that_cannot_be_read(service):
    body = b'{"rows": [{"a": 1, "b": 1, "n": 1, "colour": "x"}, {"a": "two", "b": 1, "n": 1, "colour": "x"}]}'
    for address in (SCORE, SCORE.replace("/score", "/explain")):
        answer = service.http.post(address, params={"strict": True}, content=body, headers=JSON)
        assert "'a', row 1 (counted from 0): 'two' is not a number" in detail(answer, 400)


def test_addresses_methods_and_kinds(service):
    assert "openapi.json" in detail(service.http.get("/v1/nothing"), 404)
    assert "GET /v1/models" in detail(service.http.get("/v1/models/none"), 404)
    detail(service.http.put("/v1/models"), 405)
    assert "application/json" in detail(service.http.post(SCORE, content=b"x", headers={"Content-Type": "a/b"}), 415)
    assert "a-z0-9" in detail(service.http.get("/v1/models/..%5C..%5Cetc"), 422)
    detail(service.http.get("/v1/models/../../etc/passwd"), 404)
    detail(service.http.get("/page/..%2fapp.py"), 404)
    detail(service.http.post("/v1/fits", json={"table": "t-1", "unknown": 1}), 422)
    detail(service.http.post("/v1/fits", json={"table": "t-1"}), 404)
    assert "not JSON in UTF-8" in detail(service.http.post("/v1/fits", content=b'{"table": "\xff"}', headers=JSON), 400)
    detail(service.http.patch("/v1/models/tiny-model", json={"false_alarm_rate": 2}), 422)


def test_large_bodies_are_refused(service):
    most = 16 * 2**20
    assert "bytes" in detail(service.http.post("/v1/fits", content=b" " * (most + 1), headers=JSON), 413)
    assert "bytes" in detail(service.http.post(SCORE, content=b" " * (most + 1), headers=JSON), 413)


def test_every_answer_carries_the_security_headers(service):
    for path in ("/", "/page/app.js", "/v1/models", "/v1/nothing", "/health"):
        headers = service.http.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers


def test_other_sites_are_kept_out(service):
    for host in ("evil.example", "evil.example@localhost", "localhost#evil", "localhost:evil", "[::1%25evil]"):
        assert "localhost" in detail(service.http.get("/v1/models", headers={"Host": host}), 403)
    assert service.http.get("/v1/models", headers={"Host": "[::1]:80"}).status_code == 200
    assert "other sites" in detail(service.http.get("/v1/models", headers={"Sec-Fetch-Site": "CROSS-SITE"}), 403)
    foreign = {"Origin": "http://evil.example", **JSON}
    assert "other sites" in detail(service.http.post(SCORE, content=b"{}", headers=foreign), 403)
    for path in ("/v1/models", "/openapi.json", "/"):
        assert "other sites" in detail(service.http.get(path, headers={"Origin": "http://evil.example"}), 403)
        embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
        assert "other sites" in detail(service.http.get(path, headers=embedded), 403)
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert service.http.get("/", headers=followed).status_code == 200
    own = {"Origin": service.url, **JSON}
    detail(service.http.post(SCORE, content=b"{}", headers=own), 400)


def test_rate_is_changed_without_a_fit_and_a_rate_without_support_is_refused(service, json_rows):
    url = "/v1/models/tiny-model"
    before = service.http.get(url).json()
    changed = service.http.patch(url, json={"false_alarm_rate": 0.2}).json()
    assert changed["false_alarm_rate"] == 0.2 and changed["threshold"] < before["threshold"]
    assert service.http.post(SCORE, json={"rows": json_rows[:1]}).json()["threshold"] == changed["threshold"]
    refused = service.http.patch(url, json={"false_alarm_rate": 1e-6})
    assert "calibration rows" in detail(refused, 400)
    assert service.http.patch(url, json={"false_alarm_rate": "auto"}).json()["threshold"] == before["threshold"]
    assert "given at start-up" in detail(service.http.delete(url), 409)


def test_operation(service):
    assert service.http.get("/health").json() == {"status": "ok"}
    assert service.http.get("/ready").json() == {"status": "ready"}
    text = service.http.get("/metrics").text
    assert 'ptad_requests_total{method="GET",route="/health",status="200"}' in text
    assert "ptad_models " in text


def test_a_token_is_asked_for_where_there_is_one(model_folder, tmp_path, caplog):
    token = "correct-horse-battery"
    caplog.set_level("INFO")
    app = create_app(ServiceSettings(tmp_path / "s", (model_folder,), host="0.0.0.0", token=token, device="cpu"))

    async def ask():
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client,
        ):
            for given in (None, "Bearer wrong", f"Basic {token}", "Bearer", f"Bearer {token}x", "bearer \xe9"):
                headers = {} if given is None else {"Authorization": given.encode("latin-1")}
                for path in ("/v1/models", "/metrics", "/v1/nothing"):
                    assert "Authorization: Bearer" in detail(await client.get(path, headers=headers), 401)
            assert (await client.get("/")).status_code == (await client.get("/health")).status_code == 200
            known = {"Authorization": f"Bearer {token}"}
            assert (await client.get("/v1/models", headers=known)).json()[0]["id"] == "tiny-model"

    asyncio.run(ask())
    assert token not in caplog.text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "--token"),
        (["--host", "192.168.1.5"], "--token"),
        (["--token", "short"], "16 characters"),
        (["--port", "70000"], "65535"),
        (["/no/such/model", "--port", "0"], "no model folder"),
    ],
)
def test_an_unsafe_or_wrong_start_is_refused(arguments, says, tmp_path):
    done = CliRunner().invoke(app, ["serve", "--store", str(tmp_path / "s"), *arguments])
    assert done.exit_code == 2
    assert says in done.stderr and "Traceback" not in done.stderr


def test_one_service_per_store(service):
    with pytest.raises(SettingError, match="in use by another service"):
        Store(service.store)


def test_a_store_clears_up_after_a_service_that_was_killed_while_it_wrote(tmp_path):
    job = tmp_path / "jobs" / "j-1"
    job.mkdir(parents=True)
    for name in ("job.json", ".job.json.0f93ec98.part"):
        (job / name).write_text("{}")
    Store(tmp_path).close()
    assert [p.name for p in job.iterdir()] == ["job.json"]


def test_help_has_examples():
    done = CliRunner().invoke(app, ["serve", "--help"])
    assert done.exit_code == 0 and "ptad serve model --port 9000" in done.stdout


def test_models_describe_their_terms_and_rows(service, model):
    about = service.http.get("/v1/models/tiny-model").json()
    assert [term["name"] for term in about["terms"]] == [term.title() for term in model.config_.terms]
    assert about["reference_rows"] == len(model.detector_.reference)
    assert about["calibration_rows"] == len(model.detector_.calibration.scores)
    assert (about["training_rows"], about["excluded"]) == (200, {"state": "dropped by the user"})
    assert "default" in service.http.get("/v1/service").json()["presets"]


def test_a_model_of_an_older_version_is_refused_with_the_reason(model_folder, tmp_path):
    bundle = tmp_path / "s" / "models" / "m-old" / "bundle"
    shutil.copytree(model_folder, bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    (bundle / "manifest.json").write_text(json.dumps({**manifest, "format_version": 1, "ptad_version": "0.1.0"}))
    write_json(bundle.parent / "about.json", {"name": "old", "created": 1.0, "false_alarm_rate": None})
    app = create_app(ServiceSettings(tmp_path / "s", device="cpu"))

    async def ask():
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
        ):
            for answer in (
                await client.get("/v1/models/m-old"),
                await client.post("/v1/models/m-old/score", json=ROWS),
            ):
                message = detail(answer, 409)
                assert "'old' was written by ptad 0.1.0" in message and message.endswith("Fit again.")
                assert str(tmp_path) not in message

    asyncio.run(ask())


def test_the_service_starts_and_scores_without_torch(model_folder, tmp_path):
    """In a process of its own, in which importing torch fails."""
    code = f"""
import asyncio, sys
from pathlib import Path

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoTorch())
import httpx
from ptad.service import ServiceSettings
from ptad.service.app import create_app
import ptad.service.server, ptad.service.jobs.table_scores, ptad.service.jobs.worker

app = create_app(ServiceSettings(Path({str(tmp_path / "s")!r}), (Path({str(model_folder)!r}),)))

async def ask():
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        for what in ("score", "explain"):
            answer = await client.post("/v1/models/tiny-model/" + what, json={ROWS!r})
            assert answer.status_code == 200, answer.text

asyncio.run(ask())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
