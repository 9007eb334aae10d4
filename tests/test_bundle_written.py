"""Crafted schemas of numbers and dates as people write them: a working model or one clear error."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bundle_mutations import Mutations, change_manifest, fuzz
from ptad import PTAD, BundleError
from ptad.model import Model
from ptad.tables.date_format import MOST_CHARACTERS

Make = Callable[..., PTAD]
SEED = 16


@pytest.fixture(scope="module")
def written() -> pd.DataFrame:
    """Sixty rows of numbers and dates as people write them."""
    rng = np.random.default_rng(1)
    n = 60
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D")
    at = days + pd.to_timedelta(rng.integers(0, 86_400, n), unit="s")
    amounts = [f"{value:,.2f}" for value in rng.gamma(2.0, 900.0, n)]
    return pd.DataFrame(
        {
            "amount": [text.translate(str.maketrans(",.", ".,")) for text in amounts],
            "price": [f"{value:.3f}".replace(".", ",") for value in rng.normal(size=n)],
            "day": days.strftime("%d/%m/%Y"),
            "at": [t.strftime("%d.%m.%Y %H:%M" if i % 2 else "%d-%b-%Y %H:%M:%S") for i, t in enumerate(at)],
            "zoned": at.strftime("%m/%d/%Y %I:%M %p +02:00"),
            "booked": days.strftime("%Y%m%d").astype(int),
            "colour": np.array(["red", "green", "blue"])[rng.integers(0, 3, n)],
        }
    )


@pytest.fixture(scope="module")
def bundle(make_detector: Make, written: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles") / "written"
    few = {"calibration.folds": 2, "calibration.most_folds": 2}
    make_detector(config=few, types={"booked": "date:%Y%m%d"}, decimal=",", thousands=".").fit(written).save(folder)
    return folder


def test_what_was_written_is_read_back(bundle: Path, written: pd.DataFrame) -> None:
    model = Model.load(bundle, device="cpu")
    columns = {column.name: column.to_json() for column in model.schema_.columns}
    assert columns["amount"] == {"integer": False, "decimal": ",", "thousands": "."}
    assert columns["day"]["formats"] == ["%d/%m/%Y"] and columns["booked"]["formats"] == ["%Y%m%d"]
    assert sorted(columns["at"]["formats"]) == ["%d-%b-%Y %H:%M:%S", "%d.%m.%Y %H:%M"]
    assert columns["zoned"]["zoned"] and columns["zoned"]["formats"] == ["%m/%d/%Y %I:%M %p %z"]
    assert model.schema_.notes and model.manifest["parameters"]["decimal"] == ","
    assert np.isfinite(model.anomaly_score(written)).all()


@pytest.mark.parametrize("n", [60, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("under", [(), ("schema",), ("schema", "columns")])
def test_a_mutated_bundle_works_or_is_refused(
    bundle: Path, written: pd.DataFrame, tmp_path: Path, under: tuple[str, ...], n: int
) -> None:
    found = fuzz(Mutations(bundle, SEED, under), written, tmp_path / "model", n)
    assert found["refused"] > 0.5 * n and sum(found.values()) == n


COLUMNS = ["amount", "price", "day", "at", "zoned", "booked", "colour"]
CRAFTED: dict[str, tuple[str, str, Any, str]] = {
    "unknown decimal sign": ("amount", "decimal", ";", "decimal must be one of"),
    "unknown thousands sign": ("amount", "thousands", "(a+)+$", "thousands must be one of"),
    "the same signs": ("amount", "thousands", ",", "the signs of a column of numbers must be two different ones"),
    "signs of categories": ("colour", "decimal", ",", "has an unknown entry 'decimal'"),
    "no format": ("day", "formats", [], "formats must be a list of 1 to 4"),
    "many formats": ("day", "formats", [f"%d{i}%m/%Y" for i in range(5)], "formats must be a list of 1 to 4"),
    "the same format": ("day", "formats", ["%d/%m/%Y"] * 2, "a list without repetitions"),
    "a format that is a number": ("day", "formats", [1], "must be a text"),
    "a format without a year": ("day", "formats", ["%d/%m"], "a date format must be one that ptad reads"),
    "an unknown directive": ("day", "formats", ["%d/%m/%Y %Q"], "a date format must be one that ptad reads"),
    "a long format": ("day", "formats", ["%d/%m/%Y" + "x" * MOST_CHARACTERS], "one that ptad reads"),
    "a format with a null": ("day", "formats", ["%d/%m/%Y\x00"], "one that ptad reads"),
    "a zone in one of two": ("day", "formats", ["%d/%m/%Y", "%d/%m/%Y %z"], "all with a time zone or all without"),
    "a range that is none": ("day", "first", 253402300799, "in order"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_what_is_wrong_is_said(bundle: Path, tmp_path: Path, name: str) -> None:
    column, key, value, message = CRAFTED[name]
    folder = tmp_path / "model"
    shutil.copytree(bundle, folder)
    change_manifest(folder, "schema", "columns", COLUMNS.index(column), key, value=value)
    with pytest.raises(BundleError) as caught:
        Model.load(folder)
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [None, [None], [{"text": "x", "option": "y"}], [{"text": 1}], "x"])
def test_notes_are_notes(bundle: Path, tmp_path: Path, value: Any) -> None:
    folder = tmp_path / "model"
    shutil.copytree(bundle, folder)
    change_manifest(folder, "schema", "notes", value=value)
    with pytest.raises(BundleError, match="notes"):
        Model.load(folder)


def test_a_model_of_an_older_release_is_named_as_such(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(bundle, folder)
    change_manifest(folder, "parameters", value={"kinds": None})
    change_manifest(folder, "schema", "version", value=2)
    with pytest.raises(BundleError, match="version 2; this release reads 'ptad-schema' version 4"):
        Model.load(folder)
