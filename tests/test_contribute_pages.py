"""The pages on how to add a term, a compared method and a collection, followed word for word in a copy of the code.

A Python block is the file that its first line names, a diff is applied, a shell block is run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "contribute"
BLOCK = re.compile(r"^```(python|diff|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path, text: str | None = None) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, input=text, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout + done.stderr


def follow(page: Path, folder: Path) -> str:
    """Do what a page says; return what its commands print."""
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    said = ""
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            place = folder / text.splitlines()[0].removeprefix("# ")
            assert not place.exists(), f"{place} is there already"
            place.write_text(text, encoding="utf-8")
        elif kind == "diff":
            run(["git", "apply", "--unidiff-zero", "-"], folder, text)
        else:
            said += run(["bash", "-eo", "pipefail", "-c", text], folder)
    return said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "outcome"),
    [
        ("term", lambda folder, said: "'nearest_row', 'mean_distance'" in said),
        ("peer", lambda folder, said: re.search(r"^\d passed", said, re.MULTILINE)),
        ("collection", lambda folder, said: "| ptad |" in (folder / "machines.md").read_text()),
    ],
)
def test_the_page_works(page: str, outcome: object, tmp_path: Path) -> None:
    said = follow(PAGES / f"{page}.md", tmp_path)
    assert outcome(tmp_path, said)  # type: ignore[operator]


def test_every_page_fits_on_one() -> None:
    for page in ("term", "peer", "collection"):
        assert len((PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines()) < 110
