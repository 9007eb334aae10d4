"""The script that writes the collection ``keel`` from KEEL's files."""

import runpy
from pathlib import Path

import numpy as np

from ptad.benchmark.collections import open_collection

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "keel_tables.py"


def put(folder: Path, kind: str, name: str, lines: list[str]) -> None:
    path = folder / kind / "raw" / f"{name}.dat"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))


def test_tables_become_a_collection(tmp_path: Path) -> None:
    put(tmp_path, "imbalanced", "yeast4", [*["1.5, 2, negative"] * 3, "2.5, <null>, negative", "9, 3, positive"])
    put(tmp_path, "imbalanced", "glass1", ["1.5, 2, negative", "2.5, 1, positive"])  # glass is one of the paper's
    put(tmp_path, "balanced", "tae", ["1, a, 3", "2, b, 1", "1, a, 3", "4, a, 3", "2, b, 2", "1, a, 3"])
    write_tables = runpy.run_path(str(SCRIPT))["write_tables"]
    assert write_tables(tmp_path, tmp_path / "data" / "keel") == 2
    keel = open_collection("keel", tmp_path / "data")
    assert keel.names == ("class_tae", "rare_yeast4")
    assert [keel.group(name) for name in keel.names] == ["class", "rare"]
    assert keel.load("class_tae").y.tolist() == [False, True, False, False, True, False]
    rare = keel.load("rare_yeast4")
    assert rare.y.tolist() == [False, False, False, False, True]
    assert np.isnan(rare.X[3, 1]) and rare.X[4].tolist() == [9.0, 3.0]
