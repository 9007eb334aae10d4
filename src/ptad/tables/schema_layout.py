"""The layout of the JSON of a schema."""

from __future__ import annotations

from typing import Any

from ptad.errors import BundleError
from ptad.layout import Anything, Boolean, Integer, ListOf, MappingOf, Number, Record, Text, damaged, printable
from ptad.tables.column_types import TYPES
from ptad.tables.notes import Note

FORMAT, VERSION = "ptad-schema", 4
_LAYOUT = Record(
    {
        "format": Text(),
        "version": Integer(VERSION, VERSION),
        "from_array": Boolean(),
        "missing": ListOf(Text()),
        "inputs": ListOf(Text(), low=1, distinct=True),
        "excluded": MappingOf(Text()),
        "notes": ListOf(Note.layout),
        "columns": ListOf(MappingOf(Anything()), low=1),
    }
)
_COLUMN = Record({"name": Text(), "type": Text(tuple(TYPES)), "missing_rate": Number(0.0, 1.0)})  # and its type's own


def check_version(state: Any) -> None:
    """Raise :class:`BundleError` unless this is a schema of this release."""
    MappingOf(Anything()).check(state, "its schema")
    if state.get("format") != FORMAT or state.get("version") != VERSION:
        other = printable(f"{state.get('format')!r} version {state.get('version')!r}")
        raise BundleError(f"The schema has format {other}; this release reads {FORMAT!r} version {VERSION}. Fit again.")


def check_schema(state: Any) -> None:
    """Raise :class:`BundleError` unless this is what :meth:`ptad.tables.Schema.to_json` writes."""
    check_version(state)
    place = "its schema"
    _LAYOUT.check(state, place)
    layouts = {name: encoder.layout(name) for name, encoder in TYPES.items()}
    for i, entry in enumerate(state["columns"]):
        where = f"{place}.columns[{i}]"
        _COLUMN.check({key: entry.get(key) for key in _COLUMN.entries}, where)
        encoder = {key: value for key, value in entry.items() if key not in _COLUMN.entries}
        layouts[entry["type"]].check(encoder, where)
    names = [entry["name"] for entry in state["columns"]]
    if len(set(names)) < len(names) or not set(names) <= set(state["inputs"]):
        raise damaged(f"{place}.columns", "some of its inputs, each once")
