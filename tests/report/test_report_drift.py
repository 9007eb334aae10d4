"""Drift per column: found where it was planted, not where chance plays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ptad.report.drift import DriftTally


def drift_of(model, table: pd.DataFrame, *, labels: bool = True) -> dict[str, dict]:
    tally = DriftTally(model.schema_, model.scorer_.reference_rows.numpy().astype(np.float32))
    x = model.schema_.encode(table)
    tally.add(x[:50])
    tally.add(x[50:])
    return {entry["name"]: entry for entry in tally.columns(labels=labels)}


def test_the_same_distribution_is_steady(model, rows_of):
    for seed in range(5):
        found = drift_of(model, rows_of(200, 100 + seed))
        assert {entry["verdict"] for entry in found.values()} == {"steady"}


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
    assert {name for name, entry in found.items() if entry["verdict"] != "steady"} == {column}
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
    assert city["now"][city["labels"].index("never seen before")] == 0.25
    for entry in found.values():
        assert len(entry["labels"]) == len(entry["before"]) == len(entry["now"])
        assert sum(entry["before"]) == pytest.approx(1.0, abs=2e-3)
        assert sum(entry["now"]) == pytest.approx(1.0, abs=2e-3)
    assert all(entry["labels"] is None for entry in drift_of(model, table, labels=False).values())
