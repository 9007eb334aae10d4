"""A table as data, and how it is written as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

#: Emphasis of a cell: best, second best, or none.
BEST, SECOND, PLAIN = "best", "second", ""


@dataclass(frozen=True)
class TableCell:
    """Text, how much to emphasise it, and numbers of the notes that belong to it."""

    text: str
    emphasis: str = PLAIN
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Table:
    """A titled table with numbered notes.

    Attributes
    ----------
    title : str
        Caption.
    header : list of str
        Column heads; the first is that of the row names.
    rows : list of list of TableCell
        Body.
    notes : list of str
        Note 1 is the first.
    """

    title: str
    header: list[str]
    rows: list[list[TableCell]]
    notes: list[str] = field(default_factory=list)


class Notes:
    """Collects notes so that equal ones share a number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def number(self, text: str) -> int:
        """The number of a note, new or known."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


def plain_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table without emphasis, marks and notes."""
    return Table(title, list(header), [[TableCell(str(text)) for text in row] for row in rows])


def to_markdown(table: Table) -> str:
    """GitHub-flavoured Markdown."""

    def render(cell: TableCell) -> str:
        text = cell.text.replace("|", "\\|")
        if cell.emphasis == BEST:
            text = f"**{text}**"
        elif cell.emphasis == SECOND:
            text = f"*{text}*"
        return text + "".join(f" [{mark}]" for mark in cell.marks)

    lines = [f"### {table.title}", ""] if table.title else []
    lines.append("| " + " | ".join(head.replace("|", "\\|") for head in table.header) + " |")
    lines.append("|" + "---|" * len(table.header))
    lines += ["| " + " | ".join(render(cell) for cell in row) + " |" for row in table.rows]
    if table.notes:
        lines += ["", *(f"[{number}] {note}  " for number, note in enumerate(table.notes, 1))]
    return "\n".join(lines)
