"""Messages of the library as HTTP says them, and numbers as the page shows them."""

from __future__ import annotations

import pytest

from ptad.errors import DataError, Message, MissingExtraError, Option
from ptad.service.api_types import FitRequest, RenewalRequest, ScoringRequest
from ptad.service.error_messages import REQUEST_FIELDS, spell_for_http, user_message
from ptad.service.sandbox_tasks import display_text


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (Option("label"), "'label'"),
        (Option("types", ("day", "date")), '"types": {"day": "date"}'),
        (Option("config", ("calibration.method", "auto")), '"config": {"calibration.method": "auto"}'),
        (Option("false_alarm_rate", 0.05), '"false_alarm_rate": 0.05'),
        (Option("drop", "größe"), '"drop": ["größe"]'),
        (Option("max_rows", 10), None),
        (Option("encoding", "latin-1"), None),
    ],
)
def test_options_are_members_of_a_request(option, text):
    assert spell_for_http(option) == text


def test_a_remedy_that_no_request_has_is_not_said():
    encoding = (Option("encoding", "latin-1"),)
    error = DataError("x.csv is not UTF-8.", "Name its encoding with {encoding}.", "Save it as UTF-8.", encoding)
    assert error.message.phrase(spell_for_http) == "x.csv is not UTF-8. Save it as UTF-8."
    assert Message("A sample was taken.", "Raise {max_rows}.").phrase(spell_for_http) == "A sample was taken."


def test_a_caller_is_not_told_to_install_a_package():
    message = user_message(MissingExtraError("torch", "torch", "The preset 'paper'"))
    assert message is not None and message.startswith("The preset 'paper' needs the package 'torch'.")
    assert "not installed on the service" in message and "operator" in message and "pip" not in message


def test_members_are_those_of_the_requests(service):
    fields = {*FitRequest.model_fields, *ScoringRequest.model_fields, *RenewalRequest.model_fields}
    paths = service.http.get("/openapi.json").json()["paths"].values()
    queries = {p["name"] for path in paths for operation in path.values() for p in operation.get("parameters", ())}
    assert fields | queries >= {*REQUEST_FIELDS}


@pytest.mark.parametrize(
    ("value", "text"),
    [(50930.0, "50930"), (1234567.5, "1234570"), (0.00001234, "0.00001234"), (0.1257302, "0.12573"), (-3e20, "-3e+20")],
)
def test_examples_of_a_column_are_written_for_people(value, text):
    assert display_text(value) == text
