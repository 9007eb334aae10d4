"""Empty virtual environments, in which the checks of a release run what a user would install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
#: Extras for those who work on ptad, not with it.
DEVELOPMENT = {"test", "docs", "release"}


def project() -> dict[str, Any]:
    """The table ``project`` of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def user_extras() -> list[str]:
    """Extras that users install."""
    return [name for name in project()["optional-dependencies"] if name not in DEVELOPMENT]


def clean_variables() -> dict[str, str]:
    """The variables of this process without those that let an environment find other packages."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


class Environment:
    """A virtual environment with nothing in it, not even pip, and an empty folder to work in; removed at the end."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="ptad-environment-"))
        self.folder = self._home / "work"
        self.folder.mkdir()
        venv.create(self._home / "venv", symlinks=True)
        self.bin = self._home / "venv" / "bin"

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._home, ignore_errors=True)

    def install(self, *requirements: str, constraints: Path = CONSTRAINTS) -> None:
        """Install with the pip of this process, from its index and cache."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--disable-pip-version-check"]
        command = [*pip, "-qq", "install", "--no-compile", "--constraint", str(constraints), *requirements]
        done = subprocess.run(command, env=clean_variables(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"pip could not install {' '.join(requirements)}:\n{done.stdout}{done.stderr}")

    def start(self, *command: str, directory: Path | None = None, **options: Any) -> subprocess.Popen[str]:
        """Start a program of the environment in its empty folder, or in another one."""
        variables = {**clean_variables(), "PATH": f"{self.bin}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        program = str(self.bin / command[0])
        return subprocess.Popen(
            [program, *command[1:]], cwd=directory or self.folder, env=variables, text=True, **options
        )

    def run(self, *command: str, code: int = 0) -> str:
        """Run a program of the environment to its end, which has to have this exit code; return its output."""
        process = self.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, errors = process.communicate()
        if process.returncode != code:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{output}{errors}")
        return output

    def installed(self) -> dict[str, str]:
        """Versions of the installed packages by their names."""
        listing = "from importlib.metadata import distributions as d; print(*(f'{p.name}={p.version}' for p in d()))"
        lines = self.run("python", "-c", listing).split()
        return {normal_name(name): version for name, _, version in (line.partition("=") for line in lines)}


def normal_name(name: str) -> str:
    """A package's name as indexes compare it."""
    return name.lower().replace("_", "-").replace(".", "-")


def without(packages: Iterable[str], installed: dict[str, str]) -> None:
    """Fail if one of these was installed."""
    found = sorted(name for name in installed if name in packages or name.startswith("nvidia-"))
    if found:
        raise SystemExit(f"installed, and must not be: {', '.join(found)}")
