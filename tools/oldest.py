"""Run the fast tests with the oldest versions that pyproject.toml allows: ``make oldest``.

Every direct dependency of the core and of the extras is installed at exactly its lower bound, what these need in turn
as it comes. torch and what needs it are left out: the index has its lower bound with CUDA only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from distribution import build
from environments import CONSTRAINTS, ROOT, Environment, normal_name, project, user_extras, without

#: Extras that pull torch.
LEFT_OUT = {"torch", "bench", "onnx"}
#: Tools and libraries of the tests; at the versions of constraints.txt.
TOOLS = [
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "hypothesis",
    "httpx",
    "polars",
    "pandas",
    "numpydoc",
    "psutil",
    "schemathesis",
]
#: Folders of tests that cannot even be collected without torch, or that look at the project and not at its libraries.
IGNORED = ["paper", "benchmark", "export", "cluster", "contracts", "typing", "test_arrays_on_torch.py", "test_pyod.py"]
OPTIONS = ["-q", "--tb=native", "-p", "no:cacheprovider", "-p", "without_torch", "-n", "2", "--dist", "loadfile"]
OPTIONS += ["-m", "not slow and not browser and not data", *(f"--ignore=tests/{name}" for name in IGNORED)]
#: Starts pytest with the plugin beside this file, and without the checkout.
PYTEST = (
    f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
)
BOUND = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)$")


def lower_bounds() -> dict[str, str]:
    """The smallest version of each direct dependency."""
    extras = project()["optional-dependencies"]
    wanted = [*project()["dependencies"], *(line for name in user_extras() for line in extras[name])]
    found = [BOUND.match(line) for line in wanted if not line.startswith("ptad[")]
    return {normal_name(match[1]): match[2] for match in found if match}


def write_constraints(path: Path, bounds: dict[str, str]) -> None:
    """Lower bounds for what ptad names, the usual pins for the tools of the tests, nothing for the rest."""
    pins = dict(line.split("==") for line in CONSTRAINTS.read_text("utf-8").split())
    tools = {name: pins[name] for name in pins if normal_name(name) in TOOLS and normal_name(name) not in bounds}
    path.write_text("".join(f"{name}=={version}\n" for name, version in {**bounds, **tools}.items()), "utf-8")


def main() -> None:
    """Install, then test."""
    bounds = lower_bounds()
    extras = [name for name in user_extras() if name not in LEFT_OUT]
    wheel = build()
    with Environment() as environment:
        constraints = environment.folder / "oldest.txt"
        write_constraints(constraints, bounds)
        environment.install(f"ptad[{','.join(extras)}] @ {wheel.as_uri()}", *TOOLS, constraints=constraints)
        installed = environment.installed()
        without({"torch"}, installed)
        tried = {name: installed[name] for name in sorted(bounds) if name in installed}
        print(f"extras {', '.join(extras)}; left out: {', '.join(sorted(LEFT_OUT))}")
        print("oldest versions:", ", ".join(f"{name} {version}" for name, version in tried.items()), flush=True)
        process = environment.start("python", "-P", "-c", PYTEST, *OPTIONS, *sys.argv[1:], directory=ROOT)
        if process.wait():
            raise SystemExit("make oldest: failed")
    print("make oldest: all is well")


if __name__ == "__main__":
    main()
