"""Drift per column: found where it was planted, not where chance plays."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from ptad import PTAD
from ptad.report.drift import DriftTally
from ptad.report.numbers import value_text


def drift_of(model, table: pd.DataFrame, *, labels: bool = True) -> dict[str, dict]:
    tally = DriftTally(model.schema_, model.detector_.reference)
    x = model.schema_.encode(table)
    tally.add(x[:50])
    tally.add(x[50:])
    return {entry["name"]: entry for entry in tally.columns(labels=labels)}


def test_the_same_distribution_has_no_drift(model, rows_of):
    for seed in range(5):
        found = drift_of(model, rows_of(200, 100 + seed))
        assert {entry["verdict"] for entry in found.values()} == {"none"}


@pytest.mark.parametrize("column", ["length", "city", "paid", "day", "note"])
def test_planted_drift_is_found_in_its_column_alone(model, rows_of, column):
    table = rows_of(300, 7)
    if column == "length":
        table["length"] += 5.0
    elif column == "city":
        table["city"] = np.where(np.arange(300) % 3 > 0, "Oslo", table["city"])
    elif column == "paid":
        table["paid"] = np.arange(300) % 10 == 0
    elif column == "day":
        table["day"] += pd.Timedelta(days=300)
    else:
        table["note"] = "something else altogether " + pd.Series(range(300)).astype(str)
    found = drift_of(model, table)
    assert {name for name, entry in found.items() if entry["verdict"] != "none"} == {column}
    assert found[column]["verdict"] == "strong"
    assert next(iter(found)) == column


def test_missing_values_are_a_drift_of_their_own(model, rows_of):
    table = rows_of(300, 8)
    table.loc[::2, "width"] = np.nan
    found = drift_of(model, table)["width"]
    assert found["missing"] == [0.0, 0.5]
    assert found["verdict"] == "strong"


def test_shares_and_labels_speak_of_the_same_bins(model, rows_of):
    table = rows_of(200, 9)
    table.loc[:49, "city"] = "Atlantis"
    found = drift_of(model, table)
    city = found["city"]
    assert city["now"][city["labels"].index("unseen category")] == 0.25
    for entry in found.values():
        assert len(entry["labels"]) == len(entry["before"]) == len(entry["now"])
        assert sum(entry["before"]) == pytest.approx(1.0, abs=2e-3)
        assert sum(entry["now"]) == pytest.approx(1.0, abs=2e-3)
    assert all(entry["labels"] is None for entry in drift_of(model, table, labels=False).values())


def test_a_few_rows_are_too_few_to_tell(model, rows_of):
    assert {entry["verdict"] for entry in drift_of(model, rows_of(5, 1)).values()} == {"too few rows"}
    far = rows_of(60, 1)
    far["length"] += 50.0
    assert drift_of(model, far)["length"]["verdict"] == "strong"  # no number of rows hides this


def test_ranges_are_written_for_people():
    x = pd.DataFrame(
        {
            "zeros": np.repeat([0.0, 0.0, 0.5, 50930.0], 25),
            "counts": np.repeat([0, 0, 1, 2, 7], 20),
            "close": 1e6 + np.arange(100) * 1e-3,
        }
    )
    found = drift_of(PTAD(verbose=0).fit(x), x)
    assert found["zeros"]["labels"] == ["below 0", "0", "0 to 0.5", "0.5 to 50,930", "above 50,930"]
    assert found["counts"]["labels"] == ["below 0", "0", "1", "2", "3 to 7", "above 7"]
    ends = found["close"]["labels"]
    assert len(set(ends)) == len(ends) and not any("e+" in label for label in ends)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (50930.0, "50,930"),
        (0.1 + 0.2, "0.3"),
        (1234567.89, "1,234,568"),
        (-0.00123456789, "-0.00123457"),
        (0.0, "0"),
        (2014, "2014"),
        (50930, "50,930"),
        (-1234567, "-1,234,567"),
        (1e300, "1e+300"),
        (float("nan"), None),
        (pd.Timestamp("2024-05-01"), "2024-05-01"),
        (pd.Timestamp("2024-05-01 12:30"), "2024-05-01 12:30"),
        (pd.Timestamp("2024-05-01 12:30:05"), "2024-05-01 12:30:05"),
        (dt.time(14, 38), "14:38"),
        (dt.time(0, 0, 5), "00:00:05"),
        ("x" * 100, "x" * 79 + "…"),
    ],
)
def test_values_are_written_for_people(value, text):
    assert value_text(value) == text
