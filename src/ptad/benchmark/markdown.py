"""Tables with notes, written as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """A titled table: the header, rows of cells of which the first is the name of the row, numbered notes."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    @classmethod
    def of_columns(cls, title: str, columns: Mapping[str, Sequence[Any]], notes: Sequence[str] = ()) -> Table:
        """Return a table from columns by their names."""
        return cls(title, list(columns), list(zip(*columns.values(), strict=True)), notes)


class Notes:
    """Notes of a table; equal ones share a number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """Return the mark of a note for a cell, and add the note if it is new."""
        if text not in self.texts:
            self.texts.append(text)
        return f" [{self.texts.index(text) + 1}]"


def emphasise(texts: Sequence[str], keys: Iterable[float], second: bool = False) -> list[str]:
    """Set texts with the largest key in bold and, with ``second``, those with the second largest in italics.

    Equal keys share their mark; NaN has none.
    """
    keys = list(keys)
    ranked = sorted({key for key in keys if key == key}, reverse=True)
    signs = dict(zip(ranked, ("**", "*") if second else ("**",), strict=False))
    return [f"{signs.get(key, '')}{text}{signs.get(key, '')}" for text, key in zip(texts, keys, strict=True)]


def to_markdown(*tables: Table) -> str:
    """Return tables as GitHub-flavoured Markdown."""
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
    """Return a table that is shown when its title is clicked."""
    head, _, body = to_markdown(table).partition("\n\n")
    return f"<details><summary>{head.removeprefix('### ')}</summary>\n\n{body}\n\n</details>"
