"""A table as data, and its three renderings: Markdown, LaTeX, HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
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


def to_markdown(table: Table) -> str:
    """GitHub-flavoured Markdown."""

    def render(cell: TableCell) -> str:
        text = cell.text.replace("|", "\\|")
        if cell.emphasis == BEST:
            text = f"**{text}**"
        elif cell.emphasis == SECOND:
            text = f"*{text}*"
        return text + "".join(f" [{mark}]" for mark in cell.marks)

    lines = [f"### {table.title}", ""]
    lines.append("| " + " | ".join(head.replace("|", "\\|") for head in table.header) + " |")
    lines.append("|" + "---|" * len(table.header))
    lines += ["| " + " | ".join(render(cell) for cell in row) + " |" for row in table.rows]
    if table.notes:
        lines += ["", *(f"[{number}] {note}  " for number, note in enumerate(table.notes, 1))]
    return "\n".join(lines)


def to_latex(table: Table) -> str:
    """A ``table*`` environment with booktabs rules."""

    def render(cell: TableCell) -> str:
        text = _tex(cell.text)
        if cell.emphasis == BEST:
            text = rf"\textbf{{{text}}}"
        elif cell.emphasis == SECOND:
            text = rf"\underline{{{text}}}"
        return text + (f"$^{{{','.join(map(str, cell.marks))}}}$" if cell.marks else "")

    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{_tex(table.title)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
        r"\toprule",
        " & ".join(_tex(head) for head in table.header) + r" \\",
        r"\midrule",
        *(" & ".join(render(cell) for cell in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}}",
    ]
    if table.notes:
        lines.append(r"\par\footnotesize " + "; ".join(f"({n}) {_tex(t)}" for n, t in enumerate(table.notes, 1)))
    lines.append(r"\end{table*}")
    return "\n".join(lines)


def to_html(table: Table) -> str:
    """A ``figure`` with a plain table and its notes."""
    tags = {BEST: ("<strong>", "</strong>"), SECOND: ("<u>", "</u>"), PLAIN: ("", "")}

    def render(cell: TableCell, tag: str) -> str:
        before, after = tags[cell.emphasis]
        marks = f"<sup>{','.join(map(str, cell.marks))}</sup>" if cell.marks else ""
        return f"<{tag}>{before}{html.escape(cell.text)}{after}{marks}</{tag}>"

    lines = ['<figure class="benchmark-table">', f"<figcaption>{html.escape(table.title)}</figcaption>", "<table>"]
    lines.append("<thead><tr>" + "".join(f"<th>{html.escape(h)}</th>" for h in table.header) + "</tr></thead>")
    lines.append("<tbody>")
    for row in table.rows:
        lines.append("<tr>" + render(row[0], "th") + "".join(render(cell, "td") for cell in row[1:]) + "</tr>")
    lines.append("</tbody></table>")
    if table.notes:
        lines.append("<ol>" + "".join(f"<li>{html.escape(note)}</li>" for note in table.notes) + "</ol>")
    lines.append("</figure>")
    return "\n".join(lines)


_TEX_SIGNS = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "≥": r"$\geq$",
        "±": r"$\pm$",
        "–": "--",
        "−": "$-$",
    }
)


def _tex(text: str) -> str:
    return text.translate(_TEX_SIGNS)


def markdown_page(tables: Sequence[Table]) -> str:
    """All tables, one below the other."""
    return "\n\n".join(map(to_markdown, tables)) + "\n"


def latex_input(tables: Sequence[Table]) -> str:
    """All tables, for ``\\input`` into a document."""
    needs = "% \\usepackage{booktabs,graphicx} in the preamble, then \\input this file."
    return "\n\n".join([needs, *map(to_latex, tables)]) + "\n"


_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; color: #222 }
figure { margin: 0 0 3rem; overflow-x: auto }
figcaption { font-weight: 600; margin-bottom: .5rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd }
th:first-child { text-align: left; position: sticky; left: 0; background: #fff }
ol { font-size: 12px; color: #555 }
"""


def html_page(tables: Sequence[Table]) -> str:
    """All tables as one page without any other file."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f"<title>Benchmark tables</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            *map(to_html, tables),
            "</body>\n</html>\n",
        ]
    )
