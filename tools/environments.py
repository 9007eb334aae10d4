"""Virtual environments in which the release checks run what a user would install."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
#: Extras for users; the others are for development.
USER_EXTRAS = [name for name in PROJECT["optional-dependencies"] if name not in ("test", "docs", "release")]
#: The variables of this process without those through which an environment would find other packages.
VARIABLES = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run(
    *command: str,
    directory: Path = ROOT,
    variables: dict[str, str] = VARIABLES,
    stdin: str | None = None,
    exit_code: int = 0,
) -> str:
    """Run a program and return its output; exit with that output if the program ends with another exit code."""
    result = subprocess.run(
        command, cwd=directory, env=variables, input=stdin, capture_output=True, text=True, check=False
    )
    if result.returncode != exit_code:
        raise SystemExit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class Environment:
    """A virtual environment without any package, not even pip, and an empty working folder; removed at the end."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="ptad-environment-"))
        self.folder = self._home / "work"
        self.folder.mkdir()
        venv.create(self._home / "venv", symlinks=True)
        self.bin = self._home / "venv" / "bin"
        self.variables = {**VARIABLES, "PATH": f"{self.bin}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._home, ignore_errors=True)

    def _pip(self, *arguments: str) -> str:
        """Run the pip of this process, with its index and cache, on the environment."""
        return run(sys.executable, "-m", "pip", "--python", str(self.bin / "python"), *arguments)

    def install(self, *requirements: str, constraints: Path = CONSTRAINTS) -> None:
        """Install packages at the constrained versions."""
        self._pip("install", "-qq", "--no-compile", "--constraint", str(constraints), *requirements)

    def installed(self) -> dict[str, str]:
        """Return the version of each installed package by its normalised name."""
        packages = json.loads(self._pip("list", "--format", "json"))
        return {canonicalize_name(package["name"]): package["version"] for package in packages}

    def run(self, program: str, *arguments: str, exit_code: int = 0) -> str:
        """Run a program of the environment in its working folder; see :func:`run`."""
        command = (str(self.bin / program), *arguments)
        return run(*command, directory=self.folder, variables=self.variables, exit_code=exit_code)


def check_without_torch(installed: dict[str, str]) -> None:
    """Exit if torch, or a library of CUDA, was installed."""
    if unwanted := [name for name in installed if name == "torch" or name.startswith("nvidia-")]:
        raise SystemExit(f"installed, and must not be: {', '.join(unwanted)}")
