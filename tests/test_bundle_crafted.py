"""Crafted bundles whose checksums fit: a working model or one clear error, never anything else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from typer.testing import CliRunner

from bundle_mutations import DEEP, Mutations, change_manifest, fuzz, write
from ptad import PTAD, BundleError
from ptad.cli import app
from ptad.storage import FORMAT_VERSION

Make = Callable[..., PTAD]
SEED = 15


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Sixty rows of every type of column."""
    rng = np.random.default_rng(0)
    n = 60
    return pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "count": rng.integers(0, 9, n),
            "large": rng.integers(2**60, 2**60 + 99, n),
            "colour": np.array(["red", "green", "blue"])[rng.integers(0, 3, n)],
            "note": [f"note {i // 2 if i % 3 else i}" for i in range(n)],
            "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**8, n), unit="s"),
            "gap": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "unit": ["kg"] * n,
        }
    )


@pytest.fixture(scope="module")
def bundles(make_detector: Make, table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bundles")
    types = {"note": "text"}
    few = {"calibration.folds": 2, "calibration.most_folds": 2}
    make_detector(config=few, types=types).fit(table).save(folder / "default")
    make_detector("paper").fit(table[["a", "count", "colour", "gap"]]).save(folder / "paper")
    return {name: folder / name for name in ("default", "paper")}


@pytest.mark.parametrize(
    ("preset", "n"),
    [
        ("default", 150),
        ("paper", 50),
        pytest.param("default", 1000, marks=pytest.mark.slow),
        pytest.param("paper", 1000, marks=pytest.mark.slow),
    ],
)
def test_a_mutated_bundle_works_or_is_refused(
    bundles: dict[str, Path], table: pd.DataFrame, tmp_path: Path, preset: str, n: int
) -> None:
    found = fuzz(Mutations(bundles[preset], SEED), table, tmp_path / "model", n)
    assert found["refused"] > 0.6 * n and found["works"] > 0  # they are mutations indeed, and not all of them harmful


def change_array(folder: Path, name: str, value: Any) -> None:
    arrays = safetensors.numpy.load((folder / "tensors.safetensors").read_bytes())
    arrays[name] = value(arrays[name].copy())
    manifest = json.loads((folder / "manifest.json").read_bytes())
    write(folder, manifest, safetensors.numpy.save(arrays))


def with_value(value: float) -> Any:
    def change(array: Any) -> Any:
        array.ravel()[0] = value
        return array

    return change


def replace_file(folder: Path, name: str, make: Any) -> None:
    (folder / name).unlink()
    make(folder / name)


def deep(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.rstrip()[:-1] + f', "deep": {DEEP}}}')


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk


def columns(folder: Path, n: int) -> None:
    """So many columns that any matrix over them is out of reach."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    schema = manifest["schema"]
    names = [f"c{i}" for i in range(n)]
    schema["inputs"], manifest["n_features_in"], manifest["feature_names_in"] = names, n, names
    schema["columns"] = [{"name": name, "type": "numeric", "integer": False, "missing_rate": 0.0} for name in names]
    write(folder, manifest, (folder / "tensors.safetensors").read_bytes())


def twice(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace("{", '{"ptad_version": "9", ', 1))


def array_twice(folder: Path) -> None:
    """The header of the arrays names the first one twice; its length and the checksum are right."""
    blob = (folder / "tensors.safetensors").read_bytes()
    length = int.from_bytes(blob[:8], "little")
    header = blob[8 : 8 + length].rstrip()
    name = json.dumps(next(name for name in json.loads(header) if name != "__metadata__")).encode()
    start = header.index(name + b":")
    header = header[:-1] + b"," + header[start : header.index(b"}", start) + 1] + b"}"
    manifest = json.loads((folder / "manifest.json").read_bytes())
    write(folder, manifest, len(header).to_bytes(8, "little") + header + blob[8 + length :])


CRAFTED: dict[str, tuple[Any, str]] = {
    "infinite reference rows": (
        lambda f: change_array(f, "reference", lambda a: np.where(np.isnan(a), a, np.inf)),
        "'reference' has values that are not finite",
    ),
    "a category that does not exist": (
        lambda f: change_array(f, "reference", lambda a: a + 0.25),
        "'reference' holds categories that the schema does not know",
    ),
    "NaN units": (lambda f: change_array(f, "units", with_value(np.nan)), "'units' has values that are not finite"),
    "a spread of 0": (lambda f: change_array(f, "units", lambda a: a * 0.0), "'units' has a spread below the minimum"),
    "NaN threshold": (lambda f: change_array(f, "calibration", with_value(np.nan)), "'calibration' has values"),
    "infinite chance": (
        lambda f: change_array(f, "missing_values.chance", with_value(np.inf)),
        "'missing_values.chance'",
    ),
    "other type": (lambda f: change_array(f, "reference", lambda a: a.astype(np.float32)), "is float32 of shape"),
    "shape without end": (
        lambda f: change_array(f, "reference", lambda a: a.reshape(a.shape + (1,) * 60)),
        "'reference' is float64 of shape (60, ",
    ),
    "version without end": (
        lambda f: change_manifest(f, "ptad_version", value="x" * 10**6),
        "ptad_version must be a text of at most 100 printable characters",
    ),
    "version that a terminal obeys": (
        lambda f: change_manifest(f, "ptad_version", value="\x1b[2J"),
        "ptad_version must be a text of at most 100 printable characters",
    ),
    "other shape": (lambda f: change_array(f, "rare_pair.edges", lambda a: a.T), "where float64 of shape"),
    "version -1": (lambda f: change_manifest(f, "format_version", value=-1), "has format version -1"),
    "schema version -1": (lambda f: change_manifest(f, "schema", "version", value=-1), "version -1; this release"),
    "version 3.0": (lambda f: change_manifest(f, "format_version", value=float(FORMAT_VERSION)), "has format version"),
    "rows without end": (lambda f: change_manifest(f, "n_rows", value=10**30), "n_rows must be a whole number"),
    "neighbours without end": (
        lambda f: change_manifest(f, "config", "reference", "neighbours", value=10**400),
        "'reference.neighbours' must be a whole number, at least 1 and at most 128",
    ),
    "categories without end": (
        lambda f: change_manifest(f, "schema", "columns", 3, "values", value=[str(i) for i in range(100_000)]),
        "The columns have 100,000 categories in all; at most 16,384 can be compared",
    ),
    "texts without end": (
        lambda f: change_manifest(f, "schema", "columns", 4, "counts", value={str(i): 1 for i in range(10_000)}),
        "the counts of a text column must be those of at most 1,000 values",
    ),
    "unknown entry": (lambda f: change_manifest(f, "magic", value=1), "unknown entry 'magic'"),
    "nesting": (deep, "not valid JSON"),
    "a name twice": (twice, "a name occurs twice"),
    "an array twice": (array_twice, "truncated or damaged"),
    "100,000 columns": (lambda f: columns(f, 100_000), "'reference' is float64 of shape"),
    "many entries": (
        lambda f: change_manifest(f, "history", value=[{}] * 3_000_000),
        "larger than any that ptad writes",
    ),
    "long text": (lambda f: change_manifest(f, "history", value=["\U0001f600" * 2**23]), "larger than any that"),
    "pipe": (lambda f: replace_file(f, "manifest.json", os.mkfifo), "'manifest.json' is a link, a folder, a pipe"),
    "pipe of tensors": (lambda f: replace_file(f, "tensors.safetensors", os.mkfifo), "a link, a folder, a pipe"),
    "endless device": (lambda f: replace_file(f, "manifest.json", lambda p: p.symlink_to("/dev/zero")), "is a link"),
    "link": (lambda f: replace_file(f, "tensors.safetensors", lambda p: p.symlink_to("/etc/hostname")), "is a link"),
    "folder": (lambda f: replace_file(f, "tensors.safetensors", Path.mkdir), "is a link, a folder"),
    "file without end": (lambda f: replace_file(f, "manifest.json", sparse), "larger than any that ptad writes"),
    "tensors without end": (lambda f: replace_file(f, "tensors.safetensors", sparse), "truncated or damaged"),
}


@pytest.fixture
def crafted(bundles: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        folder = tmp_path / name.replace(" ", "-")
        shutil.copytree(bundles["default"], folder)
        CRAFTED[name][0](folder)
        return folder

    return make


@pytest.mark.parametrize("name", CRAFTED)
def test_what_is_wrong_is_said_in_one_line(crafted: Callable[[str], Path], name: str) -> None:
    result = CliRunner().invoke(app, ["info", str(crafted(name))])
    assert result.exit_code == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and CRAFTED[name][1] in line and len(line) < 500


CHILD = """
import re, sys
from pathlib import Path
from ptad import BundleError
from ptad.model import Model
for folder in sys.argv[1:]:
    try:
        Model.load(folder, device="cpu")
    except BundleError:
        continue
    sys.exit(f"{folder} was loaded")
# not getrusage: there the memory of the process that started this one counts as well
print(1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]))
"""


def peak(*arguments: Any) -> int:
    command = [sys.executable, "-c", CHILD, *map(str, arguments)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.mark.slow
def test_no_crafted_bundle_takes_much_memory(crafted: Callable[[str], Path]) -> None:
    assert peak(*[crafted(name) for name in CRAFTED]) < 500e6


NETWORK = {
    "wide cells": (("config", "terms", "network", "embedding_dim"), 1024),
    "wide attention": (("config", "terms", "network", "abd_width"), 8192),
    "many basis vectors": (("config", "terms", "network", "n_basis_vectors"), 1000),
    "many layers": (("config", "terms", "network", "feedforward_factor"), 64),
}


@pytest.mark.parametrize("name", NETWORK)
def test_a_network_larger_than_its_file_is_not_made(
    bundles: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    import torch

    folder = tmp_path / "model"
    shutil.copytree(bundles["paper"], folder)
    place, value = NETWORK[name]
    change_manifest(folder, *place, value=value)
    made: list[Any] = []
    original = torch.nn.Parameter.__new__

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made.append(data.device.type)
        return original(cls, data, requires_grad)

    monkeypatch.setattr(torch.nn.Parameter, "__new__", parameter)
    with pytest.raises(BundleError, match=r"its array 'network\..* belongs"):
        PTAD.load(folder, device="cpu")
    assert set(made) == {"meta"}


def test_weights_that_are_not_finite_are_refused(bundles: dict[str, Path], tmp_path: Path) -> None:
    for value, why in ((np.nan, "not finite or out of range"), (3e38, "scores are not finite")):
        folder = tmp_path / f"model{value}"
        shutil.copytree(bundles["paper"], folder)
        name = "network.network.backbone.readout.weight"
        change_array(folder, name, lambda a, value=value: np.full_like(a, value))
        with pytest.raises(BundleError, match=why):
            PTAD.load(folder)


def test_scores_that_are_not_finite_are_refused(bundles: dict[str, Path], table: pd.DataFrame, tmp_path: Path) -> None:
    folder = shutil.copytree(bundles["paper"], tmp_path / "model")
    # what is missing is not reconstructed: the rows that are scored when the model is read have finite scores
    change_array(folder, "reference", lambda a: np.where(np.arange(len(a))[:, None] < 2, np.nan, a))
    change_array(folder, "network.network.backbone.readout.bias", lambda a: np.full_like(a, 1e30))
    model, rows = PTAD.load(folder, device="cpu"), table[["a", "count", "colour", "gap"]]
    for use in (model.anomaly_score, model.p_value, model.explain):
        with pytest.raises(BundleError, match="its scores are not finite"):
            use(rows)


def test_a_false_alarm_rate_that_no_rows_support_is_refused(bundles: dict[str, Path], tmp_path: Path) -> None:
    for i, rate in enumerate((1e-9, 1e-320, 0, 1, None)):
        folder = tmp_path / f"model{i}"
        shutil.copytree(bundles["default"], folder)
        change_manifest(folder, "false_alarm_rate", value=rate)
        with pytest.raises(BundleError, match="false_alarm_rate must be a rate that its calibration rows support"):
            PTAD.load(folder)
