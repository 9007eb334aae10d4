"""JSON rows: checked, within limits, and large bodies in a process of its own."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from in_process import run_requests

from ptad.errors import DataError
from ptad.service.json_rows import parse_rows
from ptad.service.routes.scores import INLINE_BYTES
from ptad.service.settings import Limits
from stopping import HANG, wait_until

JSON = {"Content-Type": "application/json"}
SCORE, EXPLAIN = "/v1/models/tiny-model/score", "/v1/models/tiny-model/explain"


def read(text, rows=100, columns=100):
    return parse_rows(text if isinstance(text, bytes) else text.encode(), rows, columns)


def large(rows):
    """A body that is not parsed at once."""
    return json.dumps({"rows": rows}) + " " * INLINE_BYTES


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("[]", 'no list "rows"'),
        ('{"rows": 1}', 'no list "rows"'),
        ('{"rows": []}', "empty"),
        ('{"rows": [{"a": 1}, 2]}', "Row 1 .* is not an object"),
        ('{"rows": [' + '{"a": 1},' * 100 + "{}]}", "more than 100 rows"),
        ('{"rows": [{"a": 1}, ' + json.dumps({str(i): 1 for i in range(100)}) + "]}", "Row 1 .* 100 different columns"),
        ('{"rows": [{"a": 1}', "not JSON"),
        (b'{"rows": "\xff"}', "not UTF-8"),
        ('{"rows": ' + "[" * 100_000, "nested too deeply"),
        ('{"rows": [{"a": ' + "1" * 5000 + "}]}", "number is too long"),
    ],
)
def test_what_is_wrong_with_a_body_is_said(body, says):
    with pytest.raises(DataError, match=says):
        read(body)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_has_not_are_named(name):
    with pytest.raises(DataError, match=f"{name} is not a JSON number, send null"):
        read(f'{{"rows": [{{"a": {name}}}]}}')


def test_a_large_body_gets_the_answer_of_a_small_one(tmp_path, model_folder, json_rows):
    rows = [{**row, "more": [1, {"x": 2}]} for row in json_rows[:20]]
    rows[3] |= {"a": "abc"}
    rows[4] |= {"a": "none"}

    async def requests(client, context):
        for url, query in (
            (SCORE, ""),
            (EXPLAIN, ""),
            (SCORE, "?missing=none&missing=abc"),
            (EXPLAIN, "?missing=none"),
        ):
            small = await client.post(url + query, json={"rows": rows})
            body = await client.post(url + query, content=large(rows), headers=JSON)
            assert small.status_code == 200
            assert body.json() == small.json() and body.json()["ignored"] == ["more"]
        for url in (SCORE, EXPLAIN):
            small = await client.post(f"{url}?strict=true", json={"rows": rows})
            body = await client.post(f"{url}?strict=true", content=large(rows), headers=JSON)
            assert small.status_code == body.status_code == 400
            assert small.json()["detail"] == body.json()["detail"]
        refused = await client.post(SCORE, content=large(rows)[:-INLINE_BYTES][:-1] + "#" * INLINE_BYTES, headers=JSON)
        assert refused.status_code == 400 and "not JSON" in refused.json()["detail"]
        assert list(context.store.tmp.iterdir()) == []

    run_requests(tmp_path, Limits(), requests, (model_folder,))


def test_the_loop_answers_while_a_large_body_is_read(tmp_path, model_folder, json_rows, monkeypatch):
    """The body is held in the sandbox until another request was answered: on the loop, that would never be."""
    begun, answered = asyncio.Event(), asyncio.Event()

    async def requests(client, context):
        run = context.sandbox.run

        async def held(work, **arguments):
            begun.set()
            await answered.wait()
            return await run(work, **arguments)

        monkeypatch.setattr(context.sandbox, "run", held)
        posted = asyncio.create_task(client.post(SCORE, content=large(json_rows), headers=JSON))
        await begun.wait()
        assert (await client.get("/health")).status_code == 200
        answered.set()
        assert len((await posted).json()["results"]) == len(json_rows)

    run_requests(tmp_path, Limits(), requests, (model_folder,))


def test_other_bodies_are_small(tmp_path):
    """They are parsed where they arrive."""

    async def requests(client, context):
        for path in ("/v1/fits", "/v1/scorings"):
            body = json.dumps({"table": "t-1", "name": "x" * 3000})
            assert (await client.post(path, content=body, headers=JSON)).status_code == 413
        deep = '{"table": "t-1", "config": {"reference.rows": ' + "[" * 600 + "1" + "]" * 600 + "}}"
        assert (await client.post("/v1/fits", content=deep, headers=JSON)).status_code == 422
        nan = '{"table": "t-1", "config": {"reference.rows": NaN}}'
        assert (await client.post("/v1/fits", content=nan, headers=JSON)).status_code in (400, 404, 422)

    run_requests(tmp_path, Limits(message_bytes=2000), requests)


def test_of_two_kinds_of_a_body_the_first_one_counts_for_its_limit(tmp_path, model_folder):
    async def requests(client, context):
        kinds = [("Content-Type", "application/json"), ("Content-Type", "text/csv")]
        assert (await client.post(SCORE, content=b" " * 200, headers=kinds)).status_code == 413

    run_requests(tmp_path, Limits(json_bytes=100), requests, (model_folder,))


def endless(limits, path, name):
    time.sleep(HANG)


def test_a_large_body_that_takes_too_long_is_given_up(tmp_path, model_folder, json_rows, monkeypatch):
    async def requests(client, context):
        run = context.sandbox.run
        monkeypatch.setattr(context.sandbox, "run", lambda work, path, name, **_: run(endless, path, name=name))
        for url in (SCORE, EXPLAIN):
            refused = await client.post(url, content=large(json_rows[:100]), headers=JSON)
            assert refused.status_code == 503 and "Try again later" in refused.json()["detail"]
        await asyncio.to_thread(wait_until, lambda: not context.sandbox._processes)  # nobody works on it any more

    run_requests(tmp_path, Limits(request_seconds=0.5), requests, (model_folder,))
