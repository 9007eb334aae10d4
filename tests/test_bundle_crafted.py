"""Crafted bundles whose checksums fit: a working model or one clear error, never anything else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bundle_mutations import Mutations
from ptad import PTAD, BundleError, UserError

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
    kinds = {"note": "text"}
    few = {"calibration.folds": 2, "calibration.most_folds": 2}
    make_detector(config=few, kinds=kinds).fit(table).save(folder / "default")
    make_detector("paper").fit(table[["a", "count", "colour", "gap"]]).save(folder / "paper")
    return {name: folder / name for name in ("default", "paper")}


def judge(folder: Path, table: pd.DataFrame) -> str:
    """Load a bundle and use it; anything but a model that works or the one error is raised."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = PTAD.load(folder, device="cpu")
        except BundleError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000
            return "refused"
        try:
            rows = table.head(3)
            assert np.isfinite(model.anomaly_score(rows)).all()
            assert np.isfinite(model.explain(rows).contribution_values).all()
        except UserError:  # a model that works, of another table
            return "other table"
    return "works"


def fuzz(folder: Path, table: pd.DataFrame, scratch: Path, n: int) -> dict[str, int]:
    scratch.mkdir()
    verdicts: dict[str, int] = {}
    for name, manifest, blob in islice(Mutations(folder, SEED), n):
        (scratch / "manifest.json").write_bytes(manifest)
        (scratch / "tensors.safetensors").write_bytes(blob)
        try:
            verdict = judge(scratch, table)
        except Exception as error:
            raise AssertionError(f"{name}: {error!r}") from error
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
    return verdicts


@pytest.mark.parametrize(
    ("preset", "n"),
    [("default", 150), ("paper", 50), pytest.param("default", 1000, marks=pytest.mark.slow)]
    + [pytest.param("paper", 1000, marks=pytest.mark.slow)],
)
def test_a_mutated_bundle_works_or_is_refused(
    bundles: dict[str, Path], table: pd.DataFrame, tmp_path: Path, preset: str, n: int
) -> None:
    found = fuzz(bundles[preset], table, tmp_path / "model", n)
    assert found["refused"] > 0.6 * n and found["works"] > 0  # they are mutations indeed, and not all of them harmful
