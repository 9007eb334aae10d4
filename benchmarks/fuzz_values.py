"""Values for schemathesis to mix with its own: rows, tables, fits and scorings that the service accepts.

Loaded by schemathesis (``hooks`` in the settings that ``fuzz_requests.py`` writes). Bodies may still be anything that
the schema allows or forbids; many consist of the columns of the served models, and ``names.json`` in the working
directory lists existing tables and models.
"""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import schemathesis
from hypothesis import strategies as st

NUMBERS, TEXTS = ("a", "b", "c"), ("colour",)
COLOURS = ("red", "green", "blue")
NAMES: dict[str, list[str]] = {"tables": [""], "models": [""]}
if Path("names.json").exists():
    NAMES = json.loads(Path("names.json").read_text())
# schemathesis would take too long to generate lists and names of the maximal length
LONGEST = {"maxItems": 12, "maxProperties": 12, "maxLength": 60}


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Insert existing names, also for the phase *coverage*, which calls no other hook; shorten maximal lengths."""
    schemas = raw_schema["components"]["schemas"]
    _shorten(schemas["FitRequest"])
    for name in ("FitRequest", "ScoringRequest"):
        schemas[name]["properties"]["table"] = {"enum": NAMES["tables"]}
    schemas["ScoringRequest"]["properties"]["model"] = {"enum": NAMES["models"]}
    kinds = dict.fromkeys(NUMBERS, "number") | dict.fromkeys(TEXTS, "string")
    cells = {name: {"type": [kind, "null"]} for name, kind in kinds.items()}
    row = {"type": "object", "properties": cells, "required": sorted(cells)}
    for path in ("/v1/models/{model}/score", "/v1/models/{model}/explain"):
        content = raw_schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        content["schema"]["properties"]["rows"]["items"] = row


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    """Do not delete what other requests need, and start a job for a request that cancels one.

    schemathesis learns names from the answers, and a job that was started for cancelling has usually ended by then.
    """
    places = case.path_parameters or {}
    method, path = case.operation.label.split(" ", 1)
    for place, kind in (("model", "models"), ("table", "tables"), ("job", "jobs")):
        if method == "DELETE" and places.get(place) in NAMES[kind]:
            places[place] = NAMES[f"doomed-{kind}"][0]
    if path == "/v1/jobs/{job}/cancel" and places.get("job") in NAMES["jobs"] + NAMES["doomed-jobs"]:
        answer = httpx.post(f"{case.operation.base_url}v1/fits", json={"table": NAMES["tables"][0]}, timeout=60)
        if answer.status_code == 202:
            places["job"] = answer.json()["id"]


@schemathesis.hook
def flatmap_body(context: schemathesis.HookContext, body: Any) -> st.SearchStrategy[Any]:
    """Turn most JSON objects into valid requests, wholly or with invented members in them."""
    path = context.operation.path if context.operation is not None else ""
    if not isinstance(body, dict) or path not in _REAL:
        return st.just(body)
    real = _REAL[path]
    return st.one_of(st.just(body), real, real, real.map(lambda valid: {**body, **valid}))


def _object(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


_number = st.none() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False, width=32)
_text = st.none() | st.sampled_from(COLOURS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_row = _object(
    dict.fromkeys(NUMBERS, _number) | dict.fromkeys(TEXTS, _text),
    {"state": st.sampled_from(["ok", "bad"]), "more": st.booleans()},
)
_rows = _object({"rows": st.lists(_row, min_size=1, max_size=6)}, {})
_columns = st.sampled_from([*NUMBERS, *TEXTS, "state"])
_table, _model = st.sampled_from(NAMES["tables"]), st.sampled_from(NAMES["models"])
_label = st.one_of(
    st.just({}), st.fixed_dictionaries({"label": st.just("state"), "normal": st.just(["ok"]) | st.just(["ok", "bad"])})
)
_fit_options = {
    "name": st.text("abc -", min_size=1, max_size=9),
    "false_alarm_rate": st.just("auto") | st.sampled_from([0.1, 0.01]),
    "types": st.dictionaries(_columns, st.sampled_from(["numeric", "text", "categorical"]), max_size=2),
    "drop": st.lists(_columns, max_size=2),
    "missing": st.lists(st.sampled_from(["", "?", "red"]), max_size=2),
    "seed": st.integers(0, 9),
    "config": _object(
        {"reference.rows": st.integers(50, 300)},
        {"calibration.folds": st.integers(10, 30), "local_reconstruction.ridge": st.floats(0.01, 2)},
    ),
}
_REAL: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "/v1/models/{model}/score": _rows,
    "/v1/models/{model}/explain": _rows,
    "/v1/fits": st.tuples(_object({"table": _table}, _fit_options), _label).map(lambda two: two[0] | two[1]),
    "/v1/scorings": st.tuples(_object({"table": _table, "model": _model}, {"top": st.integers(1, 60)}), _label).map(
        lambda two: two[0] | two[1]
    ),
}


def _shorten(schema: Any) -> None:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in LONGEST and isinstance(value, int):
                schema[key] = min(value, LONGEST[key])
            else:
                _shorten(value)
    elif isinstance(schema, list):
        for value in schema:
            _shorten(value)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw a table, usually with the columns of the served models."""
    n = draw(st.integers(0, 12))
    number = st.none() | st.integers(-(2**53), 2**53).map(float) | st.floats(width=32, allow_infinity=False)
    columns: dict[str, pa.Array] = {
        name: pa.array(draw(st.lists(number, min_size=n, max_size=n)), pa.float64()) for name in NUMBERS
    }
    columns["colour"] = pa.array(draw(st.lists(_text, min_size=n, max_size=n)), pa.string())
    if draw(st.booleans()):
        columns["state"] = pa.array(["ok", "bad"] * n)[:n]
    if draw(st.integers(0, 7)) == 7:
        columns.pop(draw(st.sampled_from(sorted(columns))))
    return pa.table({name: columns[name] for name in draw(st.permutations(sorted(columns)))})


def file_bytes(table: pa.Table, kind: str) -> bytes:
    """Return the table as a file of a format."""
    sink = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, sink)
    elif kind in ("arrow", "stream"):
        with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(sink, table.schema) as writer:
            writer.write_table(table)
    elif kind == "ndjson":
        return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).replace("NaN", "null").encode()
    else:
        pcsv.write_csv(table, sink, pcsv.WriteOptions(delimiter="\t" if kind == "tsv" else ","))
    return gzip.compress(sink.getvalue()) if kind == "gzip" else sink.getvalue()


@st.composite
def bodies(draw: st.DrawFn, *kinds: str) -> bytes:
    """Draw a file of one of the formats: mostly complete, sometimes cut off, corrupted, or random bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    content = file_bytes(draw(tables()), draw(st.sampled_from(kinds)))
    defect = draw(st.integers(0, 9))
    place = draw(st.integers(0, len(content)))
    if defect == 0:
        return content[:place]
    return content[:place] + draw(st.binary(max_size=8)) + content[place:] if defect == 1 else content


for _type, _kinds in {
    "text/csv": ("csv",),
    "text/tab-separated-values": ("tsv",),
    "application/x-ndjson": ("ndjson",),
    "application/vnd.apache.arrow.stream": ("stream", "arrow"),
    "application/vnd.apache.parquet": ("parquet",),
    "application/gzip": ("gzip",),
    "application/octet-stream": ("csv", "tsv", "ndjson", "arrow", "stream", "parquet", "gzip"),
}.items():
    schemathesis.openapi.media_type(_type, bodies(*_kinds))
