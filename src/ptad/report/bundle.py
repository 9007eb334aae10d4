"""The modules and styles of the page as one script and one style: a file that opens from disk cannot import others."""

from __future__ import annotations

import re
from importlib import resources

# the page of the service is made of the same files
STYLE = "report.css"
_STYLES = ("base.css", "table.css", "chart.css", "row_table.css", "vendor/uplot.css", "print.css")
_IMPORT = re.compile(
    r"^import (?:(?P<default>\w+)|\{(?P<names>[^}]*)\}) from '\./(?P<source>[\w/.]+)';\n", re.MULTILINE
)
_DECLARED = re.compile(r"^export (?=(?:async )?(?:function|const|class) (?P<name>\w+))", re.MULTILINE)
_LISTED = re.compile(r"\bexport ?\{(?P<names>[^}]*)\};\s*$")


def asset(name: str) -> str:
    """Return a file that the page is made of; ``report.css`` is all styles one after the other."""
    if name == STYLE:
        return "\n".join(asset(part) for part in _STYLES)
    return resources.files("ptad.report").joinpath(name).read_text(encoding="utf-8").strip()


def script(entry: str) -> str:
    """Return a module and all that it imports as one script that imports nothing."""
    found: dict[str, str] = {}
    _collect(entry, found)
    parts = [f"modules['{name}'] = (() => {{\n{text}\n}})();" for name, text in found.items()]
    return "(() => {\n'use strict';\nconst modules = {};\n" + "\n".join(parts) + "\n})();"


def scripts() -> list[str]:
    """Return the names of all modules but the report's own first one, which the page of the service has no use for."""
    folder = resources.files("ptad.report")
    own = [file.name for file in folder.iterdir() if file.name.endswith(".js") and file.name != "page.js"]
    others = [f"vendor/{file.name}" for file in folder.joinpath("vendor").iterdir() if file.name.endswith(".js")]
    return sorted(own + others)


def _collect(name: str, found: dict[str, str]) -> None:
    """Add a module after those that it imports, each as the body of a function that returns what it exports."""
    if name in found:
        return
    text = asset(name)
    for wish in _IMPORT.finditer(text):
        _collect(wish["source"], found)
    exported = [(found["name"], found["name"]) for found in _DECLARED.finditer(text)]
    listed = _LISTED.search(text)
    if listed:
        pairs = [entry.split(" as ") for entry in listed["names"].split(",")]
        exported += [(pair[0].strip(), pair[-1].strip()) for pair in pairs]
    body = _LISTED.sub("", _DECLARED.sub("", _IMPORT.sub(_destructured, text)))
    found[name] = body + "\nreturn { " + ", ".join(f"{public}: {own}" for own, public in exported) + " };"


def _destructured(wish: re.Match[str]) -> str:
    names = f"default: {wish['default']}" if wish["default"] else wish["names"].replace(" as ", ": ")
    return f"const {{ {names.strip()} }} = modules['{wish['source']}'];\n"
