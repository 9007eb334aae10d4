"""One message, three readers: each finds the options in the form that works there."""

from __future__ import annotations

import json
import logging
import pickle
import re
from pathlib import Path

import pytest

import ptad
from ptad.cli.console import on_command_line, set_up_logging, tear_down_logging
from ptad.errors import DataError, Message, MissingExtraError, Option, UserError
from ptad.tables.places import IN_MEMORY, RowError

TYPE = Option("types", ("day", "date"))
FLAG = re.compile(r"(?<![-\\w])--[a-z]")


def shouted(option: Option) -> str | None:
    return None if option.name == "encoding" else f"<{option.name}>"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (Option("label"), "label="),
        (Option("encoding", "latin-1"), "encoding='latin-1'"),
        (Option("drop", "id"), "drop=['id']"),
        (Option("false_alarm_rate", 0.1), "false_alarm_rate=0.1"),
        (TYPE, "types={'day': 'date'}"),
    ],
)
def test_python_is_the_reader_unless_another_is_named(option, text):
    assert str(Message("It is wrong.", f"Give {{{option.name}}}.", options=(option,))) == f"It is wrong. Give {text}."


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (TYPE, "--type day=date"),
        (Option("types", ("day", "datetime:%d.%m.%Y %H:%M")), "--type 'day=datetime:%d.%m.%Y %H:%M'"),
        (Option("types"), "--type COLUMN=TYPE"),
        (Option("config", ("calibration.method", "auto")), "--set calibration.method=auto"),
        (Option("false_alarm_rate", 0.1), "--false-alarm-rate 0.1"),
        (Option("replace", True), "--replace"),
        (Option("append", False), "--only-scores"),
        (Option("decimal", ","), "--decimal ,"),
        (Option("label"), "--label"),
    ],
)
def test_the_command_line_has_flags(option, text):
    assert on_command_line(option) == text


def test_a_logged_message_is_phrased_for_the_command_line_and_for_other_handlers(capsys, caplog):
    set_up_logging(quiet=False)
    try:
        logging.getLogger("ptad").warning(Message("Two sheets.", "Choose with {sheet}."))
    finally:
        tear_down_logging()
    assert capsys.readouterr().err == "warning: Two sheets. Choose with --sheet.\n"
    assert caplog.records[0].getMessage() == "Two sheets. Choose with sheet=."


def test_a_reader_spells_the_options():
    message = Message("Wrong.", "Give {types} or {drop}.", options=(TYPE,))
    assert message.phrase(shouted) == "Wrong. Give <types> or <drop>."


def test_a_reader_without_the_option_gets_the_other_remedy_or_none():
    message = Message("Not UTF-8.", "Give {encoding}.", "Save it as UTF-8.")
    assert message.phrase(shouted) == "Not UTF-8. Save it as UTF-8."
    assert Message("Not UTF-8.", "Give {encoding}.").phrase(shouted) == "Not UTF-8."


def test_no_table_knows_the_command_line():
    """The same message is read in Python, on the command line and over HTTP."""
    folder = Path(ptad.__file__).parent / "tables"
    found = [
        (p.name, line)
        for p in folder.glob("*.py")
        for line in p.read_text().splitlines()
        if re.search(r"(?<![\w-])--[a-z]", line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "error",
    [
        RowError("Column 'a', ", 3, ": wrong.", "Give {types}.", (TYPE,)).at(IN_MEMORY.after(5)),
        DataError("Wrong. Correct it."),
        UserError("Wrong.", "Give {types}.", "Leave it.", (TYPE,)),
        MissingExtraError("ray", "ray", "The cluster"),
    ],
)
def test_errors_cross_processes_whole(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.message == error.message and str(again) == str(error)


@pytest.mark.parametrize("options", [(), (TYPE, Option("drop", "id")), (Option("false_alarm_rate", 0.1),)])
def test_messages_cross_processes_as_json(options):
    message = Message("Wrong.", "Give {types}.", "Leave it.", options)
    assert Message.from_json(json.loads(json.dumps(message.to_json()))) == message


def test_the_library_knows_no_option_of_the_command_line():
    root = Path(ptad.__file__).parent
    rooms = ("*.py", "jobs/**/*.py", "report/**/*.py", "export/*.py", "tables/*.py", "terms/*.py", "paper/*.py")
    files = [path for room in rooms for path in root.glob(room)]
    found = [f"{path.name}: {line}" for path in files for line in path.read_text().splitlines() if FLAG.search(line)]
    assert len(files) > 100 and not found
