"""What is published: dependencies and their reasons, the core without torch, versions, workflow, container file."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from ptad import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8"))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_module_runs_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "ptad", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"ptad {__version__}\n"


def test_core_never_needs_torch() -> None:
    seen: set[str] = set()
    waiting = [Requirement(line) for line in PROJECT["dependencies"]]
    while waiting:
        requirement = waiting.pop()
        name = normal(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # only for another system
            continue
        extras = ("", *requirement.extras)
        needed = [Requirement(line) for line in lines]
        waiting += [r for r in needed if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)]
    assert {"numpy", "scikit-learn", "joblib"} <= seen
    assert not [name for name in seen if name.startswith(("torch", "nvidia"))]


def test_every_dependency_has_a_reason() -> None:
    wanted: dict[str, set[str]] = {}
    for place, lines in {"core": PROJECT["dependencies"], **EXTRAS}.items():
        for line in lines:
            name = normal(Requirement(line).name)
            if name != "ptad":
                wanted.setdefault(name, set()).add(place)
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Dependencies, and why")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    named = {normal(name): set(places.split(", ")) for name, places, why in rows if name != "package" and why.strip()}
    assert named == wanted


def test_every_extra_is_part_of_the_tests() -> None:
    (own,) = [Requirement(line) for line in EXTRAS["test"] if line.startswith("ptad[")]
    assert own.extras == set(EXTRAS) - {"test", "release"}


def test_versions_of_test_and_release_tools_are_pinned() -> None:
    pinned = {normal(line.partition("==")[0]) for line in (ROOT / "constraints.txt").read_text("utf-8").split()}
    named = {normal(Requirement(line).name) for lines in (PROJECT["dependencies"], *EXTRAS.values()) for line in lines}
    assert named - {"ptad"} <= pinned


def test_documented_and_automated_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        assert set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / page).read_text("utf-8"), re.MULTILINE)) <= targets
    (job,) = WORKFLOW["jobs"].values()
    assert set(job["strategy"]["matrix"]["target"]) <= targets


def test_actions_of_the_workflow_are_pinned_by_commit() -> None:
    actions = [step["uses"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "uses" in step]
    assert actions and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in actions)


def test_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text("utf-8"))
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    return [(line[0], line[1]) for line in lines]


def test_container_runs_as_nobody_special_from_pinned_bases(instructions: list[tuple[str, str]]) -> None:
    bases = [rest.split()[0] for name, rest in instructions if name == "FROM"]
    assert len(bases) == 2 and all(re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", base) for base in bases)
    last = instructions[max(i for i, (name, _) in enumerate(instructions) if name == "FROM") :]
    users = [rest for name, rest in last if name == "USER"]
    assert users and re.fullmatch(r"[1-9]\d+:[1-9]\d+", users[-1])
    assert {"HEALTHCHECK", "VOLUME", "ENTRYPOINT"} <= {name for name, _ in last}


def test_container_holds_no_secret_and_only_what_is_tracked(instructions: list[tuple[str, str]]) -> None:
    assert not [rest for name, rest in instructions if name in ("ENV", "ARG") and re.search("TOKEN|PASS|SECRET", rest)]
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] == "!"}
    copied = [rest.split()[:-1] for name, rest in instructions if name == "COPY" and "--from" not in rest]
    sources = {source for line in copied for source in line}
    assert sources == allowed and all((ROOT / source).exists() for source in sources)
