"""Tables with notes, and how they are written as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """A titled table: column heads (the first is that of the row names), a body of cells, numbered notes."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    @classmethod
    def of_columns(cls, title: str, columns: Mapping[str, Sequence[Any]], notes: Sequence[str] = ()) -> Table:
        """A table from its columns by their heads."""
        return cls(title, list(columns), list(zip(*columns.values(), strict=True)), notes)


class Notes:
    """Collects notes so that equal ones share a number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """What a cell carries to point to a note, new or known."""
        if text not in self.texts:
            self.texts.append(text)
        return f" [{self.texts.index(text) + 1}]"


def emphasise(texts: Sequence[str], keys: Iterable[float], second: bool = False) -> list[str]:
    """Put texts with the largest key in bold, those with the second largest in italics where ``second`` says so.

    Equal keys share their mark; NaN has none.
    """
    keys = list(keys)
    known = sorted({key for key in keys if key == key}, reverse=True)
    signs = dict(zip(known, ("**", "*") if second else ("**",), strict=False))
    return [f"{signs.get(key, '')}{text}{signs.get(key, '')}" for text, key in zip(texts, keys, strict=True)]


def to_markdown(*tables: Table) -> str:
    """GitHub-flavoured Markdown."""
    return "\n\n".join(map(_markdown, tables))


def _markdown(table: Table) -> str:
    lines = [f"### {table.title}", ""] if table.title else []
    for number, row in enumerate((table.header, *table.rows)):
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")
        if number == 0:
            lines.append("|" + "---|" * len(table.header))
    if table.notes:
        lines += ["", *(f"[{number}] {note}  " for number, note in enumerate(table.notes, 1))]
    return "\n".join(lines)


def folded(table: Table) -> str:
    """The table under its title, opened by a click."""
    head, _, body = to_markdown(table).partition("\n\n")
    return f"<details><summary>{head.removeprefix('### ')}</summary>\n\n{body}\n\n</details>"
