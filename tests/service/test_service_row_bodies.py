"""JSON rows: taken apart piece by piece, beside the event loop, within limits."""

from __future__ import annotations

import asyncio
import json
import random
import threading

import pytest
from in_process import ask

from ptad.errors import DataError
from ptad.service import row_bodies
from ptad.service.row_bodies import FIRST_WINDOW, INLINE_BYTES, MOST_OF_A_ROW, parse_rows
from ptad.service.settings import Limits

JSON = {"Content-Type": "application/json"}


def read(text, rows=100, columns=100):
    return parse_rows(text if isinstance(text, bytes) else text.encode(), rows, columns)


def some(rng, depth=0):
    """Any JSON value; strings are longer than a window now and then."""
    nested = [{}, []] if depth > 2 else [{str(i): some(rng, depth + 1) for i in range(3)}, [some(rng, depth + 1)]]
    return rng.choice([None, True, 7, -1.5e300, 'a"b\\é\n', "x" * rng.randrange(2 * FIRST_WINDOW), *nested])


def test_rows_are_what_the_json_module_makes_of_them():
    rng = random.Random(0)
    for n in range(150):
        rows = [{name: some(rng) for name in "abc"} for _ in range(rng.randrange(1, 5))]
        text = json.dumps({"x": some(rng), "rows": rows, "y": 1}, ensure_ascii=n % 2 == 0, indent=n % 3 or None)
        plain = [{k: v if not isinstance(v, list | dict) else type(v)() for k, v in r.items()} for r in rows]
        assert read(text) == plain
        place = rng.randrange(len(text))
        spoiled = text[:place] + rng.choice('{}[]",:x1 ') + text[place + rng.randrange(2) :]
        try:
            json.loads(spoiled)
        except ValueError:
            with pytest.raises(DataError, match="not JSON"):
                read(spoiled)


def test_limits_are_found_while_reading():
    """What follows is not JSON at all, and is never looked at."""
    row = '{"a": 1, "b": 2},'
    with pytest.raises(DataError, match="more than 3 rows"):
        read('{"rows": [' + row * 4 + "###", rows=3)
    with pytest.raises(DataError, match=r"Row 2 .* more than 2 different columns"):
        read('{"rows": [' + row * 2 + '{"c": 1}, ###', columns=2)
    with pytest.raises(DataError, match="1,048,576 characters"):
        read('{"rows": [{"a": "' + "x" * MOST_OF_A_ROW + '"}, ###')
    assert read('{"rows": [{"a": [1, [2]], "b": {"c": 1}}]}') == [{"a": [], "b": {}}]  # not held


def test_names_are_held_once():
    rows = read('{"rows": [{"long name": 1}, {"long name": 2}]}')
    first, second = (next(iter(row)) for row in rows)
    assert first is second


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_has_not_are_named(name):
    with pytest.raises(DataError, match=f"{name} is not a JSON number, send null"):
        read(f'{{"rows": [{{"a": {name}}}]}}')


def test_the_loop_answers_while_a_body_is_parsed(tmp_path, model_folder, json_rows, monkeypatch):
    """The parser is held until another request was answered: on the loop, that would never be."""
    begun, answered = threading.Event(), threading.Event()
    released = threading.Event()

    def held(*arguments):
        begun.set()
        assert answered.wait(60), "nothing was answered while the body was parsed"
        return parse_rows(*arguments)

    monkeypatch.setattr(row_bodies, "parse_rows", held)
    monkeypatch.setattr(row_bodies, "release_memory", released.set)
    monkeypatch.setattr(row_bodies, "RELEASE_SECONDS", 0.0)

    async def questions(client, context):
        body = json.dumps({"rows": json_rows[:20]}) + " " * INLINE_BYTES
        large = asyncio.create_task(client.post("/v1/models/tiny-model/score", content=body, headers=JSON))
        await asyncio.to_thread(begun.wait, 60)
        assert (await client.get("/health")).status_code == 200
        answered.set()
        answer = await large
        assert answer.status_code == 200 and len(answer.json()["results"]) == 20
        assert await asyncio.to_thread(released.wait, 60)  # memory is given back afterwards

    ask(tmp_path, Limits(), questions, (model_folder,))


def test_few_large_bodies_are_objects_at_a_time(tmp_path, model_folder, json_rows, monkeypatch):
    inside, most = 0, 0

    async def score(self, model, rows):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01)
        inside -= 1
        raise DataError("as if")

    monkeypatch.setattr("ptad.service.batching.Batcher.score", score)

    async def questions(client, context):
        body = json.dumps({"rows": json_rows[:20]}) + " " * INLINE_BYTES
        url = "/v1/models/tiny-model/score"
        answers = await asyncio.gather(*(client.post(url, content=body, headers=JSON) for _ in range(8)))
        assert {answer.status_code for answer in answers} == {400}

    ask(tmp_path, Limits(), questions, (model_folder,))
    assert most == row_bodies.LARGE_AT_A_TIME


def test_other_bodies_are_small(tmp_path):
    """They are parsed where they arrive."""

    async def questions(client, context):
        for path in ("/v1/fits", "/v1/scorings"):
            body = json.dumps({"table": "t-1", "name": "x" * 3000})
            assert (await client.post(path, content=body, headers=JSON)).status_code == 413
        nan = '{"table": "t-1", "config": {"reference.rows": NaN}}'
        assert (await client.post("/v1/fits", content=nan, headers=JSON)).status_code in (400, 404, 422)

    ask(tmp_path, Limits(message_bytes=2000), questions)
