"""Type hints as a user's own checker sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"


def complaints(script: Path, folder: Path) -> list[str]:
    """Return what pyright, as it comes, says about a script: one line per error."""
    settings = {"include": [str(script)], "typeCheckingMode": "standard", "extraPaths": [str(SOURCE)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(folder)]
    done = subprocess.run([*command, "--pythonpath", sys.executable], capture_output=True, text=True, timeout=3600)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1, done.stderr
    return [
        f"line {entry['range']['start']['line'] + 1}: {entry['message']}"
        for entry in found["generalDiagnostics"]
        if entry["severity"] == "error"
    ]


@pytest.mark.slow
def test_pyright_accepts_a_script_over_the_whole_public_face(tmp_path: Path) -> None:
    assert complaints(HERE / "user_script.py", tmp_path) == []


def test_pyright_finds_mistakes(tmp_path: Path) -> None:
    """It knows parameters, methods and what comes back."""
    script = tmp_path / "mistakes.py"
    script.write_text(
        "import numpy as np\n"
        "from ptad import PTAD\n"
        "detector = PTAD(false_alarm_rat=0.1)\n"
        "detector.fit()\n"
        "detector.anomaly_scores(np.ones((2, 2)))\n"
        "scores: str = detector.anomaly_score(np.ones((2, 2)))\n"
        "labels: str = detector.predict([[1.0]])\n"
        "detector.plot.score([[1.0]])\n"
        "detector.explain([[1.0]]).top('a')\n"
    )
    assert sorted({line.split(":")[0] for line in complaints(script, tmp_path)}) == [f"line {i}" for i in range(3, 10)]


@pytest.mark.slow
def test_the_script_runs() -> None:
    done = subprocess.run([sys.executable, HERE / "user_script.py"], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
