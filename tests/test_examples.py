"""Every example of the README and the docs runs: Python blocks in order, shell blocks with the real command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
#: The pages on contributing change the code: tests/test_contribute_pages.py follows them in a copy.
PAGES = sorted(
    [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "contribute")]
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all the files that the examples speak of."""
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)

    def table(n: int) -> pd.DataFrame:
        speed = rng.normal(10, 1, n)
        load, mode = speed + rng.normal(0, 0.1, n), rng.choice(["a", "b"], n)
        return pd.DataFrame({"speed": speed, "load": load, "mode": mode, "zip": rng.integers(10, 20, n)})

    for name in ("normal", "new"):
        table(120).to_csv(folder / f"{name}.csv", index=False)
    table(1200).assign(comment="none").to_csv(folder / "table.csv", index=False)
    table(60).to_parquet(folder / "new.parquet")
    labelled = table(120).assign(status=["ok"] * 100 + ["broken"] * 20)
    labelled.to_csv(folder / "labelled.csv", index=False)
    labelled.assign(id=range(120), comment=["none"] * 120).to_parquet(folder / "log.parquet")
    (folder / "days").mkdir()
    for day in ("monday", "tuesday"):
        table(600).to_csv(folder / "days" / f"{day}.csv.gz", index=False)
        table(50).to_parquet(folder / "days" / f"{day}.parquet")
    return folder


def run(command: list[str], folder: Path) -> None:
    programs = Path(sys.executable).parent  # where the `ptad` under test lives
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.timeout(7200)  # only against hanging
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page: Path, folder: Path) -> None:
    settings = blocks(page, "toml")
    if settings:
        (folder / "settings.toml").write_text(settings[0], encoding="utf-8")
    if not (folder / "model").exists():
        run(["bash", "-ec", "ptad fit normal.csv --out model --quiet"], folder)
    for script in blocks(page, "sh"):
        commands = "\n".join(line for line in script.splitlines() if not line.startswith("make "))
        run(["bash", "-eo", "pipefail", "-c", commands], folder)
    if code := "\n".join(blocks(page, "python")):
        run([sys.executable, "-W", "error::FutureWarning", "-c", code], folder)


def test_the_pages_have_examples() -> None:
    assert len(blocks(ROOT / "README.md", "python")) == 1
    assert sum(len(blocks(page, "sh")) for page in PAGES) >= 8


def test_every_ledger_entry_is_marked_in_the_code() -> None:
    ledger = set(re.findall(r"^\| (PAPER-\d\d) ", (ROOT / "docs" / "paper-ledger.md").read_text(), re.MULTILINE))
    assert ledger == {f"PAPER-{i:02d}" for i in range(1, 14)}
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    in_code = {f"PAPER-{n}" for n in re.findall(r"NOTE\[PAPER-(\d\d)\]", source)}
    assert in_code <= ledger
    assert ledger - in_code <= {"PAPER-07", "PAPER-09", "PAPER-12", "PAPER-13"}  # settings, counts and data: no code
