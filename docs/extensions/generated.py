"""Parts of pages that are generated from the code: commands, endpoints of the service, settings and limits.

The directive ``generated`` takes the name of a part and inserts its Markdown into the page.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docutils.nodes import Node
from numpydoc.docscrape import NumpyDocString
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ptad.config import PRESETS
from ptad.service.app import create_app
from ptad.service.settings import Limits, ServiceSettings


def commands() -> str:
    """Return every command with its options, as typer writes them; examples become blocks, ``--help`` is omitted."""
    text = subprocess.run(
        [sys.executable, "-m", "typer", "ptad.cli", "utils", "docs", "--name", "ptad"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    text = text.partition("\n## ")[2]  # without the help of the root command
    text = re.sub(r"^\* `--help`:.*\n", "", f"## {text}", flags=re.MULTILINE)
    text = re.sub(r"\*\*Options\*\*:\n\n(?=\n|#|\Z)", "", text)
    text = re.sub(r"\*\*Usage\*\*:\n\n```console\n\$ (.*)\n```", r"```text\n\1\n```", text)
    return re.sub(r"\[bold\]Examples\[/bold\]\n\n(.*?)(?=\n#|\Z)", _example_block, text, flags=re.DOTALL)


def _example_block(match: re.Match[str]) -> str:
    lines = [line for line in match[1].splitlines() if line.strip()]
    shell = [f"$ {line}" for line in lines if "ptad " in line]
    prose = [line for line in lines if "ptad " not in line]
    return "\n".join(["**Examples**:", "", "```console", *shell, "```", "", *prose, ""])


def service() -> str:
    """Return every endpoint of the service: purpose, parameters, fields of its request and response."""
    description = asyncio.run(_description())
    schemas = description["components"]["schemas"]
    parts: dict[str, list[str]] = {}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            text = "\n\n".join(_operation(method, path, operation, schemas))
            parts.setdefault(operation["tags"][0], []).append(text)
    return "\n\n".join(f"## {tag.capitalize()}\n\n" + "\n\n".join(texts) for tag, texts in parts.items())


async def _description() -> dict[str, Any]:
    """Return the OpenAPI description of a service, which is started and stopped to release its store."""
    with TemporaryDirectory() as store:
        app = create_app(ServiceSettings(store=Path(store)))
        async with app.router.lifespan_context(app):
            return app.openapi()


def _operation(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    yield f"### {method.upper()} `{path}`"
    yield operation["description"].replace("``", "`")
    rows = [[f"`{p['name']}`", p["in"], p.get("description", "")] for p in operation.get("parameters", [])]
    rows = [row for row in rows if row[1] != "path"]
    if rows:
        yield table(["parameter", "in", ""], rows)
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        if name := _name(body["schema"]):
            yield f"Body, `{kind}`:"
            yield table(["field", "", "default"], _fields(schemas[name]))
    codes = [code for code in operation["responses"] if code.startswith("2")]
    for code in codes:
        for kind, body in operation["responses"][code].get("content", {}).items():
            name = _name(body.get("schema", {}))
            inside = f": {', '.join(f'`{field}`' for field in schemas[name].get('properties', {}))}" if name else ""
            yield f"Answer {code}, `{kind}`{inside}."


def _name(schema: dict[str, Any]) -> str | None:
    """Return the name of the schema of a request or response, or of the items of its list."""
    reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
    return reference.rpartition("/")[2] if reference else None


def _fields(schema: dict[str, Any]) -> list[list[str]]:
    required = schema.get("required", [])
    return [
        [f"`{name}`", value.get("description", ""), "required" if name in required else f"`{value.get('default')}`"]
        for name, value in schema.get("properties", {}).items()
    ]


def settings() -> str:
    """Return every setting of both presets: name, default, range."""
    seen: dict[str, list[list[str]]] = {}
    for preset, config in PRESETS.items():
        for group in config.groups():
            for item in fields(group):
                key = f"`{group.title()}.{item.name}`"
                seen.setdefault(preset, []).append([key, _number(getattr(group, item.name)), _range(item.metadata)])
    shared = [row for row in seen["paper"] if row not in seen["default"]]
    return "\n\n".join(
        [
            "### Settings of `default`",
            table(["setting", "default", "range"], seen["default"]),
            "### Further settings of `paper`, and those with another default",
            table(["setting", "default", "range"], shared),
        ]
    )


def limits() -> str:
    """Return every limit of the service, in the groups of its docstring: names, meaning, defaults and ranges."""
    group, meta = Limits(), {item.name: item.metadata for item in fields(Limits)}
    rows = []
    for names, _, text in NumpyDocString(getdoc(Limits) or "")["Attributes"]:
        each = names.split(", ")
        defaults = ", ".join(_number(getattr(group, name)) for name in each)
        ranges = [_range(meta[name]) for name in each]
        ranges = ranges[:1] if len(set(ranges)) == 1 else ranges
        rows.append([", ".join(f"`{name}`" for name in each), " ".join(text), defaults, "; ".join(ranges)])
    return table(["limit", "meaning", "default", "range"], rows).replace("``", "`")


def _range(metadata: Any) -> str:
    if metadata["choices"]:
        return ", ".join(metadata["choices"])
    if metadata["low"] is None:
        return "true, false"
    low = f"{'above ' if metadata['open_low'] else ''}{_number(metadata['low'])}"
    return f"{low} to {_number(metadata['high'])}{', or none' if metadata['optional'] else ''}"


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else "none" if value is None else str(value)
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20)):
        if isinstance(value, int) and value >= size and value % size == 0:
            return f"{value // size:,} {unit}"
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e7):
        return f"{int(value):,}"
    return f"{value:g}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


#: Order of the gallery, from common tasks to special ones.
EXAMPLES = (
    "fraud",
    "sensors",
    "explanations",
    "missing_values",
    "categories",
    "drift",
    "compare_with_pyod",
    "paper_network",
)


def example_order(file: str) -> int:
    """Return the position of an example in the gallery."""
    return EXAMPLES.index(Path(file).stem)


PARTS: dict[str, Callable[[], str]] = {f.__name__: f for f in (commands, service, settings, limits)}


class Generated(SphinxDirective):
    """Insert one of the parts."""

    required_arguments = 1

    def run(self) -> list[Node]:
        self.env.note_reread()
        return self.parse_text_to_nodes(PARTS[self.arguments[0]](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True}
