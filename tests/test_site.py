"""The site says everything that the code offers; its links and examples are checked by ``make docs``."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import typer

import ptad
import ptad.report
from ptad.cli import app
from ptad.config import PRESETS

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def generated() -> Iterator[ModuleType]:
    """The Sphinx extension, which is no part of the package."""
    sys.path.insert(0, str(ROOT / "docs" / "extensions"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Sphinx's own
        import generated
    yield generated
    sys.path.remove(str(ROOT / "docs" / "extensions"))


def test_the_api_page_has_every_public_name() -> None:
    listed = set(re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.MULTILINE))
    settings = {type(term) for preset in PRESETS.values() for term in preset.terms}
    wanted = {name for name in ptad.__all__ if name != "__version__"}
    wanted |= {f"report.{name}" for name in ptad.report.__all__}
    wanted |= {"report.plot.Plots"}
    wanted |= {f"{cls.__module__.removeprefix('ptad.')}.{cls.__name__}" for cls in settings}
    assert wanted <= listed


def test_every_command_and_option_is_in_the_reference(generated: ModuleType) -> None:
    text, group = generated.commands(), typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        section = text.partition(f"## `ptad {name}`\n")[2].partition("\n## ")[0]
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        options = {option for parameter in shown for option in parameter.opts if option.startswith("--")} - {"--help"}
        assert section and not {option for option in options if option not in section}, name
    assert "[bold]" not in text and "ptad fit normal.csv --out model" in text


@pytest.mark.parametrize(
    "page", [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_files_that_a_page_names_exist(page: Path) -> None:
    files = {p.as_posix() for d in ("src", "tests", "docs", "benchmarks") for p in (ROOT / d).rglob("*.*")}
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.(?:py|js|css|html|safetensors))`", page.read_text("utf-8")))
    assert not {name for name in named if not any(file.endswith(f"/{name}") for file in files)}


def test_every_setting_and_limit_is_in_the_reference(generated: ModuleType) -> None:
    settings, limits = generated.settings(), generated.limits()
    assert "| `local_reconstruction.ridge` | 0.001 |" in settings and "| `network.n_steps` | 500 |" in settings
    for item in generated.fields(generated.Limits):
        assert f"`{item.name}`" in limits, item.name


def test_every_address_is_in_the_reference(generated: ModuleType) -> None:
    text = generated.service()
    for heading in ("POST `/v1/models/{model}/score`", "POST `/v1/fits`", "GET `/health`"):
        assert f"### {heading}" in text
    assert "| `false_alarm_rate` |" in text.partition("POST `/v1/fits`")[2].partition("### ")[0]


def test_examples_are_short_and_in_the_gallery(generated: ModuleType) -> None:
    assert {path.stem for path in EXAMPLES} == set(generated.EXAMPLES) and len(EXAMPLES) >= 8
    for path in EXAMPLES:
        assert len(path.read_text("utf-8").splitlines()) < 80, path.name
