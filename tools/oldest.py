"""Run the fast tests with the oldest versions that pyproject.toml allows: ``make oldest``.

Every direct dependency of the core and of the extras is installed at exactly its lower bound, what these need in turn
at the newest version that fits. torch and what needs it are excluded: the index has its lower bound with CUDA only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from distribution import build
from environments import CONSTRAINTS, PROJECT, ROOT, USER_EXTRAS, Environment, check_without_torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Extras that pull torch.
EXCLUDED = ("torch", "bench", "onnx")
#: What these tests need besides; at the versions of constraints.txt.
TOOLS = ["pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "httpx", "polars", "pandas", "numpydoc", "psutil"]
#: Tests that cannot be collected without torch, or that look at the project and not at its libraries.
IGNORED = ["paper", "benchmark", "export", "cluster", "contracts", "typing", "test_arrays_on_torch.py", "test_pyod.py"]
OPTIONS = ["-q", "--tb=native", "-p", "no:cacheprovider", "-p", "without_torch", "-n", "2", "--dist", "loadfile"]
OPTIONS += ["-m", "not slow and not browser and not data", *(f"--ignore=tests/{name}" for name in IGNORED)]


def lower_bounds() -> dict[str, str]:
    """Return the smallest allowed version of each direct dependency."""
    extras = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(line for name in USER_EXTRAS for line in extras[name])]
    requirements = [Requirement(line) for line in lines]
    bounds = [(canonicalize_name(r.name), s.version) for r in requirements for s in r.specifier if s.operator == ">="]
    return dict(bounds)


def write_constraints(path: Path, bounds: dict[str, str]) -> None:
    """Write the lower bounds, and the usual versions of the tools; nothing for the rest."""
    lines = CONSTRAINTS.read_text("utf-8").splitlines()
    pins = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    tools = {name: pins[name] for name in TOOLS}
    path.write_text("".join(f"{name}=={version}\n" for name, version in {**tools, **bounds}.items()), "utf-8")


def main() -> None:
    """Install, then test."""
    bounds = lower_bounds()
    extras = [name for name in USER_EXTRAS if name not in EXCLUDED]
    wheel = build()
    with Environment() as environment:
        constraints = environment.folder / "oldest.txt"
        write_constraints(constraints, bounds)
        environment.install(f"ptad[{','.join(extras)}] @ {wheel.as_uri()}", *TOOLS, constraints=constraints)
        installed = environment.installed()
        check_without_torch(installed)
        versions = [f"{name} {installed[name]}" for name in sorted(bounds) if name in installed]
        print(f"extras {', '.join(extras)}; excluded: {', '.join(EXCLUDED)}")
        print("oldest versions:", ", ".join(versions), flush=True)
        # pytest finds its plugin beside this file; the checkout's package is not on the path
        variables = {**environment.variables, "PYTHONPATH": str(Path(__file__).parent)}
        command = [str(environment.bin / "pytest"), *OPTIONS, *sys.argv[1:]]
        if subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode:
            raise SystemExit("make oldest: failed")
    print("make oldest: passed")


if __name__ == "__main__":
    main()
