"""The default path in a process that cannot import torch, as on a machine where the extra is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ptad.tables import write_table

# Imported by Python as it starts: to every finder of this process and its children, torch is not there.
NO_TORCH = """
from importlib.machinery import PathFinder

plain = PathFinder.find_spec.__func__


def find_spec(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in ("torch", "pytorch_optimizer") else plain(cls, name, path, target)


PathFinder.find_spec = classmethod(find_spec)
"""

COMMANDS = """
import sys

from typer.testing import CliRunner

from ptad.cli import app


def ptad(*arguments, code=0):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == code, (arguments, done.stdout, done.stderr, done.exception)
    return done.stdout + done.stderr
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a mixed table, normal.csv, and another one with a label, labelled.csv."""
    path = tmp_path_factory.mktemp("without-torch")
    (path / "site").mkdir()
    (path / "site" / "sitecustomize.py").write_text(NO_TORCH)
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, 400)]
    b = pa.array(2 * a + rng.normal(size=400) * 0.1, mask=np.arange(400) % 9 == 0)
    table = pa.table({"a": a, "b": b, "colour": colour, "day": np.arange(400).astype("datetime64[D]")})
    write_table(table, path / "normal.csv")
    write_table(table.set_column(0, "a", pa.array(a + 0.01)), path / "later.csv")
    odd = np.arange(400) % 10 == 0
    labelled = table.set_column(0, "a", pa.array(np.where(odd, a + 20.0, a)))
    write_table(labelled.append_column("bad", pa.array(odd)), path / "labelled.csv")
    return path


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    """A model that was fitted without torch."""
    run(folder, "print(ptad('fit', 'normal.csv', '--out', 'model', '--drop', 'day'))")
    return folder / "model"


def run(folder: Path, code: str) -> str:
    """Run Python code without torch, and see that the code did not get at it."""
    places = [str(folder / "site"), *(str(Path(p).resolve()) for p in sys.path if p)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    script = f"{COMMANDS}\n{code}\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_torch_is_not_there(folder: Path) -> None:
    code = "try:\n    import torch\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert run(folder, code).strip() == "No module named 'torch'"


def test_the_default_path(folder: Path, model: Path) -> None:
    said = run(
        folder,
        """
print(ptad('score', 'model', 'labelled.csv', '--out', 'scored.csv', '--explain', 2))
print(ptad('explain', 'model', 'labelled.csv', '--top', 2))
print(ptad('evaluate', 'model', 'labelled.csv', '--label', 'bad'))
print(ptad('info', 'model'))
print(ptad('update', 'model', 'later.csv', '--out', 'updated'))
print(ptad('recalibrate', 'model', 'later.csv', '--out', 'recalibrated'))
print(ptad('demo'))
""",
    )
    for words in ("400 rows, ", "unusual", "AUC-ROC", "local_reconstruction (weight", "Updated", "Recalibrated"):
        assert words in said
    assert (folder / "scored.csv").exists()


def test_python(folder: Path) -> None:
    said = run(
        folder,
        """
import numpy as np
from ptad import PTAD
rows = np.random.default_rng(0).normal(size=(200, 3))
model = PTAD(verbose=0).fit(rows)
print(model.predict(rows[:1] + 50.0), model.explain(rows[:2]).contribution_values.shape, model.transform(rows).shape)
pretrained = model.term_scores(np.concatenate([rows[:1], rows[:1] + 50.0]))["pretrained"].to_numpy()
print(0.0 < pretrained[0] < pretrained[1])
""",
    )
    assert said.split() == ["[-1]", "(2,", "3)", "(200,", "3)", "True"]


def test_a_database(folder: Path, model: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite", reason="the extra 'sql' is not installed")
    said = run(
        folder,
        """
import sqlite3
with sqlite3.connect("shop.db") as connection:
    connection.execute("CREATE TABLE orders (a REAL, b REAL, colour TEXT)")
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(0.1, 0.2, "red"), (9.0, -9.0, "violet")])
query = ['--db', 'sqlite:///shop.db', '--query', 'SELECT * FROM orders']
print(ptad('score', 'model', *query, '--into', 'scored'))
print(connection.execute("SELECT anomaly FROM scored ORDER BY a").fetchall())
""",
    )
    assert "1 row with unseen categories: colour (1)" in said and "[(0,), (1,)]" in said


def test_the_report(folder: Path, model: Path) -> None:
    run(
        folder, "ptad('report', 'model', 'labelled.csv', '--out', 'report.html', '--label', 'bad', '--normal', 'false')"
    )
    assert "</html>" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_service(folder: Path) -> None:
    pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
    run(folder, "from ptad.service import ServiceSettings, serve\nimport ptad.service.app, ptad.service.jobs.worker")


def test_what_needs_torch_names_the_extra(folder: Path, model: Path) -> None:
    said = run(
        folder,
        """
print(ptad('fit', 'normal.csv', '--out', 'never', '--preset', 'paper', code=2))
print(ptad('fit', 'normal.csv', '--out', 'never', '--device', 'cuda', code=2))
print(ptad('export', 'model', '--out', 'never', code=2))
""",
    )
    assert said.count("pip install 'ptad[torch]'") == 2 and "pip install 'ptad[onnx]'" in said
    assert not (folder / "never").exists()
