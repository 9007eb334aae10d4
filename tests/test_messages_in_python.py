"""What a user of Python reads: remedies in Python, names that are there, no errors of other libraries."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ptad import PTAD, DataError, SettingError
from ptad.cli.console import on_command_line
from ptad.errors import Option
from ptad.tables.notes import Note


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["petal width (cm)", "sepal width (cm)", "length"])
    return table.assign(stay=pd.to_timedelta(rng.exponential(size=60), unit="h"))


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> PTAD:
    return PTAD(verbose=0).fit(table)


def test_a_column_of_the_model_is_not_suggested_for_another(model: PTAD, table: pd.DataFrame) -> None:
    with pytest.raises(DataError, match=r"no column 'petal width \(cm\)', which the model was trained with. Its"):
        model.predict(table.drop(columns="petal width (cm)"))
    with pytest.raises(DataError, match=r"no columns 'petal width \(cm\)', 'length', which"):
        model.predict(table[["sepal width (cm)", "stay"]])
    with pytest.raises(DataError, match=r"Did you mean 'Petal_width \(cm\)'"):
        model.predict(table.rename(columns={"petal width (cm)": "Petal_width (cm)"}))


def test_a_warning_about_an_unknown_column_points_to_the_caller(model: PTAD, table: pd.DataFrame) -> None:
    for method in (model.predict, model.explain, model.anomaly_score):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            method(table[:2].assign(other=1))
        assert [Path(w.filename).name for w in caught] == [Path(__file__).name] * len(caught) != []


@pytest.mark.parametrize("method", ["predict", "anomaly_score", "explain", "transform", "term_scores"])
def test_no_rows(model: PTAD, table: pd.DataFrame, method: str) -> None:
    with pytest.raises(DataError, match="There are 0 rows to score"):
        getattr(model, method)(table[:0])


def test_a_duration_that_cannot_be_read(model: PTAD, table: pd.DataFrame) -> None:
    with pytest.warns(UserWarning, match="not a duration: 'long'"):
        assert model.explain(table[:1].assign(stay="long")).reasons["stay"][0] == "not a duration: 'long'"


@pytest.mark.parametrize("rate", [None, True, "often", [0.1]])
def test_a_rate_that_is_no_number(model: PTAD, rate: Any) -> None:
    with pytest.raises(SettingError, match="must be 'auto' or a number between 0 and 1"):
        model.set_false_alarm_rate(rate)


@pytest.mark.parametrize("parameter", ["drop", "only", "missing"])
def test_a_list_that_is_a_number(table: pd.DataFrame, parameter: str) -> None:
    with pytest.raises(SettingError, match=f"The '{parameter}' parameter must be a list of text. Got 3"):
        PTAD(verbose=0, **{parameter: 3}).fit(table)  # type: ignore[arg-type]


def test_limits_are_written_for_people(table: pd.DataFrame) -> None:
    with pytest.raises(SettingError, match="at least 0 and at most 1,000,000"):
        PTAD(config={"rare_pair.weight": -1}, verbose=0).fit(table)


def test_a_loaded_model_shows_what_was_chosen(model: PTAD, table: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "plain")
    assert repr(PTAD.load(tmp_path / "plain")) == "PTAD()"
    chosen = PTAD(config={"rare_pair.weight": 1.0}, drop=["length"], verbose=0).fit(table)
    chosen.save(tmp_path / "chosen")
    loaded = PTAD.load(tmp_path / "chosen")
    assert loaded.config == chosen.config_ and list(loaded.drop) == ["length"]


@pytest.mark.parametrize(
    ("options", "arguments", "flags"),
    [
        (
            (Option("types", ("sold", "date:%m/%d/%Y")),),
            "types={'sold': 'date:%m/%d/%Y'}",
            "--type sold=date:%m/%d/%Y",
        ),
        ((Option("types", ("a=b", "numeric")),), "types={'a=b': 'numeric'}", "--type a=b=numeric"),
        ((Option("decimal", ","),), "decimal=','", "--decimal ,"),
        ((Option("decimal"), Option("thousands")), "decimal= and thousands=", "--decimal and --thousands"),
    ],
)
def test_a_note_names_what_to_fit_with(options: tuple[Option, ...], arguments: str, flags: str) -> None:
    note = Note("Column 'sold' is read as dates", options, True)
    text = "Column 'sold' is read as dates. If that is wrong, fit with {}."
    assert str(note) == text.format(arguments) and note.message.phrase(on_command_line) == text.format(flags)
    assert Note.from_json(json.loads(json.dumps(note.to_json()))) == note
