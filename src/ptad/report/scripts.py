"""Bundles modules and styles into one script and one style, since a page opened from disk cannot import modules."""

from __future__ import annotations

import re
from importlib import resources

# the page of the service uses the same files
STYLE = "report.css"
_STYLES = ("base.css", "table.css", "chart.css", "row_table.css", "vendor/uplot.css", "print.css")
_IMPORT = re.compile(
    r"^import (?:(?P<default>\w+)|\{(?P<names>[^}]*)\}) from '\./(?P<source>[\w/.]+)';\n", re.MULTILINE
)
_DECLARED = re.compile(r"^export (?=(?:async )?(?:function|const|class) (?P<name>\w+))", re.MULTILINE)
_LISTED = re.compile(r"\bexport ?\{(?P<names>[^}]*)\};\s*$")


def asset(name: str) -> str:
    """Return a file of the page; ``report.css`` is the concatenation of all styles."""
    if name == STYLE:
        return "\n".join(asset(part) for part in _STYLES)
    return resources.files("ptad.report").joinpath(name).read_text(encoding="utf-8").strip()


def script(entry: str) -> str:
    """Return a module and all that it imports as one script without imports."""
    modules: dict[str, str] = {}
    _add_module(entry, modules)
    parts = [f"modules['{name}'] = (() => {{\n{text}\n}})();" for name, text in modules.items()]
    return "(() => {\n'use strict';\nconst modules = {};\n" + "\n".join(parts) + "\n})();"


def scripts() -> list[str]:
    """Return the names of all modules that the page of the service can use: all but the entry of the report."""
    folder = resources.files("ptad.report")
    names = [file.name for file in folder.iterdir()] + [f"vendor/{f.name}" for f in folder.joinpath("vendor").iterdir()]
    return sorted(name for name in names if name.endswith(".js") and name != "page.js")


def _add_module(name: str, modules: dict[str, str]) -> None:
    """Add a module after those that it imports, each as the body of a function that returns its exports."""
    if name in modules:
        return
    text = asset(name)
    for statement in _IMPORT.finditer(text):
        _add_module(statement["source"], modules)
    exports = [(match["name"], match["name"]) for match in _DECLARED.finditer(text)]
    listed = _LISTED.search(text)
    if listed:
        pairs = [entry.split(" as ") for entry in listed["names"].split(",")]
        exports += [(pair[0].strip(), pair[-1].strip()) for pair in pairs]
    body = _LISTED.sub("", _DECLARED.sub("", _IMPORT.sub(_destructured, text)))
    modules[name] = body + "\nreturn { " + ", ".join(f"{public}: {local}" for local, public in exports) + " };"


def _destructured(statement: re.Match[str]) -> str:
    default = statement["default"]
    names = f"default: {default}" if default else statement["names"].replace(" as ", ": ")
    return f"const {{ {names.strip()} }} = modules['{statement['source']}'];\n"
