"""Fuzz test: what schemathesis makes from the OpenAPI description never ends in an error of the service.

A few cases per address here, all of them, DELETE and the stream of events included; ``benchmarks/fuzz_requests.py``
makes more than 2,000 and mixes in the names of real things.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ptad.service.formats import ANSWER_FORMATS
from stopping import HANG

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.mark.slow
def test_no_fuzzed_request_is_an_error_of_the_service(service, tmp_path):
    command = [
        str(Path(sys.executable).parent / "schemathesis"),
        "run",
        f"{service.url}/openapi.json",
        *("--max-examples", "2", "--seed", "1", "--checks", CHECKS, "--phases", "fuzzing", "--no-color"),
        *("--request-timeout", "1800", "--suppress-health-check", "too_slow"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout[-4000:]
    operations = sum(len(methods) for methods in service.http.get("/openapi.json").json()["paths"].values())
    assert f"Tested: {operations}" in done.stdout
    assert "unexpected" not in service.log.read_text()


def test_scores_can_be_downloaded_in_every_format_of_answers(service):
    parameters = service.http.get("/openapi.json").json()["paths"]["/v1/jobs/{job}/scores"]["get"]["parameters"]
    formats = next(parameter["schema"]["enum"] for parameter in parameters if parameter["name"] == "format")
    assert sorted(formats) == sorted(ANSWER_FORMATS)


def test_the_description_names_every_problem(service):
    paths = service.http.get("/openapi.json").json()["paths"]
    assert len(paths) >= 17
    for path, operations in paths.items():
        for method, operation in operations.items():
            problem = operation["responses"]["422"]["content"]
            assert list(problem) == ["application/problem+json"], (path, method)
