"""The list of the compared methods for the documentation: idea, sources and departures, read from their modules."""

from __future__ import annotations

import inspect
import re

from ptad.benchmark.peers import make_peer, peer_names

_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)


def methods_list() -> str:
    """One paragraph per method whose module lists departures from its original, as Markdown."""
    parts = []
    for name in peer_names():
        module = inspect.getmodule(type(make_peer(name)))
        text = inspect.getdoc(module) or ""
        title, *sections = _SECTION.split(text)
        found = dict(zip(sections[::2], sections[1::2], strict=True))
        if "Departures" in found:
            sources = " ".join(found.get("References", "").split())
            head = f"**{name}**: {title.strip()}" + (f" {sources}" if sources else "")
            parts.append(f"{head}\n\n{_as_list(found['Departures'])}")
    return "\n\n".join(parts).replace("``", "`")


def _as_list(text: str) -> str:
    """The section with every point on one line; a section without points is one."""
    points = [" ".join(point.split()) for point in re.split(r"^\* ", text, flags=re.MULTILINE) if point.strip()]
    return "\n".join(f"- {point}" for point in points)
