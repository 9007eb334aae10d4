"""One message, three readers: each finds the options in the form that works there."""

from __future__ import annotations

import pickle

import pytest

from ptad.errors import DataError, MissingExtraError, UserError
from ptad.messages import Message, Option

TYPE = Option("types", ("day", "date"))


def shouted(option: Option) -> str | None:
    return None if option.name == "encoding" else f"<{option.name}>"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (Option("label"), "label="),
        (Option("encoding", "latin-1"), "encoding='latin-1'"),
        (Option("false_alarm_rate", 0.1), "false_alarm_rate=0.1"),
        (TYPE, "types={'day': 'date'}"),
    ],
)
def test_python_is_the_reader_unless_another_is_named(option, text):
    assert str(Message("It is wrong.", "Give {}.", (option,))) == f"It is wrong. Give {text}."


def test_a_reader_spells_the_options():
    assert (
        Message("Wrong.", "Give {} or {}.", (TYPE, Option("drop"))).phrase(shouted) == "Wrong. Give <types> or <drop>."
    )


def test_a_reader_without_the_option_gets_the_other_remedy_or_none():
    encoding = (Option("encoding", "latin-1"),)
    assert (
        Message("Not UTF-8.", "Give {}.", encoding, "Save it as UTF-8.").phrase(shouted)
        == "Not UTF-8. Save it as UTF-8."
    )
    assert Message("Not UTF-8.", "Give {}.", encoding).phrase(shouted) == "Not UTF-8."


@pytest.mark.parametrize(
    "error",
    [
        DataError("Wrong. Correct it."),
        UserError("Wrong.", "Give {}.", (TYPE,), "Leave it."),
        MissingExtraError("ray", "ray", "The cluster"),
    ],
)
def test_errors_cross_processes_whole(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.message == error.message and str(again) == str(error)
