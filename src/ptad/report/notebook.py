"""Models and explanations as plain text and as HTML in a notebook; cells are always escaped."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ptad.explanation import Explanation
from ptad.jobs.reasons import row_reasons
from ptad.model import Model
from ptad.report.numbers import count_text, number_text, value_text
from ptad.tables.names import listed

SHOWN_ROWS, SHOWN_COLUMNS = 5, 5  # of an explanation; more is for the report
TEXT_COLUMNS = 3
SHORT = 24  # characters of a cell that is not wrapped

# Only opacity and the page's own colours: a notebook may be light or dark.
_STYLE = """<style>
.ptad { font-size: 0.9em; line-height: 1.4; max-width: 60em; }
.ptad table { border-collapse: collapse; margin: 0.2em 0 0.9em; color: inherit; }
.ptad th, .ptad td { text-align: left; padding: 0.25em 0.9em 0.25em 0; border: 0;
  border-bottom: 1px solid rgba(128, 128, 128, 0.35); background: none; color: inherit; vertical-align: top;
  overflow-wrap: anywhere; }
.ptad th { font-weight: 600; opacity: 0.75; white-space: nowrap; }
.ptad td.short { white-space: nowrap; font-variant-numeric: tabular-nums; }
.ptad .bar { display: inline-block; height: 0.65em; background: #d55e00; margin-right: 0.5em; }
.ptad caption, .ptad .title { text-align: left; font-weight: 600; padding: 0.2em 0; }
.ptad .quiet { opacity: 0.7; font-weight: 400; }
</style>"""


@dataclass(frozen=True)
class RowReason:
    """One column of one row, as formatted text."""

    column: str
    observed: str
    expected: str  # empty where the expected value is the observed one
    contribution: float
    percentage: float
    reason: str  # empty where the contribution is not positive


def written_reasons(explanation: Explanation, row: int, n: int) -> list[RowReason]:
    """Return the ``n`` columns of a row with the largest contributions, the largest first."""
    return [
        RowReason(
            _printable(entry["column"]),
            _printable(value_text(entry["observed"]) or "missing"),
            _expected_text(entry["observed"], entry["expected"]),
            entry["contribution"],
            entry["percentage"],
            _printable(entry["reason"] or ""),
        )
        for entry in row_reasons(explanation, n, slice(row, row + 1))[0]
    ]


def explanation_text(explanation: Explanation) -> str:
    """Return a few lines: the rows with their scores and strongest columns."""
    lines = [f"Explanation of {count_text(len(explanation.contribution_values), 'row')}"]
    for row in range(min(len(explanation.contribution_values), SHOWN_ROWS)):
        parts = [
            f"{r.column} = {r.observed}{f' (expected {r.expected})' if r.expected else ''}, {r.reason}, "
            + _percentage_text(r.percentage)
            for r in written_reasons(explanation, row, TEXT_COLUMNS)
            if r.reason
        ]
        score = number_text(float(explanation.score_values[row]), 4)
        lines.append(f"  {row_text(explanation, row)}: {'; '.join([f'score {score}', *parts])}")
    return "\n".join([*lines, *_rest(explanation)])


def explanation_html(explanation: Explanation) -> str:
    """Return a small table per row: column, observed, expected, contribution, reason."""
    parts = []
    for row in range(min(len(explanation.contribution_values), SHOWN_ROWS)):
        score = number_text(float(explanation.score_values[row]), 4)
        cells = []
        for r in written_reasons(explanation, row, SHOWN_COLUMNS):
            bar = f'<span class="bar" style="width:{0.05 * r.percentage:.2f}em"></span>'
            bar += escape(_percentage_text(r.percentage))
            cells.append([escape(r.column), escape(r.observed), escape(r.expected), bar, escape(r.reason)])
        caption = f'R{escape(row_text(explanation, row)[1:])} <span class="quiet">anomaly score {score}</span>'
        parts.append(_table(("column", "observed", "expected", "contribution", "reason"), cells, caption))
    parts += [f'<div class="quiet">{escape(line.strip())}</div>' for line in _rest(explanation)]
    return f'{_STYLE}<div class="ptad">{"".join(parts)}</div>'


def model_pairs(model: Model) -> list[tuple[str, str]]:
    """Return an overview of a fitted model as names and values."""
    schema, detector = model.schema_, model.detector_
    calibration = detector.calibration
    types = Counter(schema.types.values()).most_common()
    pairs = [
        ("preset", str(getattr(model, "preset", ""))),
        ("training rows", f"{len(detector.held_out_scores):,}, {len(detector.reference):,} kept as reference rows"),
        ("columns", f"{len(schema.names):,}: {', '.join(f'{n:,} {kind}' for kind, n in types)}"),
    ]
    if schema.excluded:
        pairs.append(("excluded columns", listed([f"{name} ({why})" for name, why in schema.excluded.items()], 6, str)))
    if calibration is None:
        return [*pairs, ("threshold", "none: fitted without calibration")]
    return [
        *pairs,
        ("threshold", number_text(-model.offset_, 4)),
        ("false-alarm rate", f"{100.0 * model.false_alarm_rate_:.3g} % (target)"),
        ("calibration rows", f"{len(calibration.scores):,}"),
    ]


def model_text(model: Model) -> str:
    """Return the overview of a fitted model as text, one line per entry."""
    pairs = [*model_pairs(model), ("terms", ", ".join(f"{name} {weight}" for name, weight in _weights(model)))]
    width = max(len(name) for name, _ in pairs) + 2
    return "\n".join([f"Fitted {type(model).__name__}", *(f"  {name:<{width}}{value}" for name, value in pairs)])


def model_html(model: Model) -> str:
    """Return a fitted model as two small tables: the overview, and the terms with their weights."""
    facts = [[f"<b>{escape(name)}</b>", escape(value)] for name, value in model_pairs(model)]
    terms = [[escape(name), escape(weight)] for name, weight in _weights(model)]
    title = f'<div class="title">Fitted {escape(type(model).__name__)}</div>'
    return f'{_STYLE}<div class="ptad">{title}{_table((), facts)}{_table(("term", "weight"), terms)}</div>'


def _weights(model: Model) -> list[tuple[str, str]]:
    return [(term.title().replace("_", " "), f"{term.weight:g}") for term in model.config_.terms]


def _expected_text(observed: Any, expected: Any) -> str:
    """Return an expected value with four digits, or as a day where days were observed; nothing if it was observed."""
    if isinstance(expected, dt.datetime) and len(value_text(observed) or "") == len("2024-12-31"):
        expected = expected.date()
    text = value_text(expected, digits=4) or ""
    return "" if text in (value_text(observed), value_text(observed, digits=4)) else _printable(text)


def _printable(text: str) -> str:
    """Return text without line breaks and control characters."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _percentage_text(percentage: float) -> str:
    return "<1 %" if 0.0 < percentage < 0.5 else f"{percentage:.0f} %"


def row_text(explanation: Explanation, row: int) -> str:
    """Return the number of a row, with its label in the index of a pandas table if that differs."""
    index = getattr(explanation.contributions, "index", None)
    label = row if index is None or callable(index) else index[row]
    return f"row {row}" if label == row else f"row {row} (index {_printable(str(label))})"


def _rest(explanation: Explanation) -> list[str]:
    more = len(explanation.contribution_values) - SHOWN_ROWS
    return [f"  and {count_text(more, 'more row')}"] if more > 0 else []


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a table; its cells are HTML."""
    top = f"<caption>{caption}</caption>" if caption else ""
    if head:
        top += f"<thead><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr></thead>"
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _cell(content: str) -> str:
    short = content.startswith("<span") or len(content) <= SHORT
    return f'<td class="short">{content}</td>' if short else f"<td>{content}</td>"
