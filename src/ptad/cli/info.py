"""``ptad info``: the description of a model."""

from __future__ import annotations

from typing import Any

from ptad.cli import options
from ptad.cli.console import on_command_line, print_json, print_pairs, rate, terminal_text

EXAMPLES = """
ptad info model
ptad info model --json
"""


def info(model: options.Model, as_json: options.Json = False) -> None:
    """Show terms, columns, false-alarm rate, settings, sizes and versions of a model."""
    from ptad.jobs.info import describe_model
    from ptad.tables.notes import Note

    description = describe_model(model)
    if as_json:
        print_json(description)
        return
    print_pairs(_lines(description))
    columns = [(terminal_text(c["name"]), _column(c)) for c in description["columns"][:40]]
    print_pairs(columns, f"\nColumns ({len(description['columns'])})")
    if len(description["columns"]) > 40:
        print_pairs([("", f"and {len(description['columns']) - 40} more: see --json")])
    if description["excluded"]:
        print_pairs(
            [(terminal_text(n), terminal_text(r)) for n, r in list(description["excluded"].items())[:40]],
            "\nExcluded columns",
        )
    if description["notes"]:
        notes = [Note.from_json(note).message.phrase(on_command_line) for note in description["notes"][:40]]
        print_pairs([("", terminal_text(note)) for note in notes], "\nHow text is read")
    if description["changed_settings"]:
        changed = [(name, str(value)) for name, value in description["changed_settings"].items()]
        print_pairs(changed, f"\nSettings that differ from the preset '{description['preset']}'")


def _lines(d: dict[str, Any]) -> list[tuple[str, str]]:
    target, threshold, smallest, batch_size = (
        d[name] for name in ("false_alarm_rate", "threshold", "smallest_rate", "batch_size")
    )
    terms = ", ".join(f"{term['name']} (weight {term['weight']:g})" for term in d["terms"])
    lines = [
        ("model", terminal_text(d["model"])),
        ("written by", f"ptad {d['ptad_version']} (bundle format {d['format_version']})"),
        ("preset", d["preset"]),
        ("terms", terms),
        ("rows are scored", "" if batch_size is None else f"together, {batch_size:,} at a time"),
        ("training rows", "" if d["training_rows"] is None else f"{d['training_rows']:,}"),
        ("columns", f"{len(d['columns'])} used as {d['features']} features, {len(d['excluded'])} excluded"),
        ("false-alarm rate", "none: the model has no threshold" if target is None else f"target {rate(target)}"),
        ("threshold", "none" if threshold is None else f"{threshold:.6g}"),
        ("smallest rate", "none" if smallest is None else rate(smallest)),
        ("calibration rows", f"{d['calibration_rows']:,}"),
        ("reference rows", f"{d['reference_rows']:,}"),
        ("size", f"{d['bytes'] / 1e6:,.2f} MB"),
    ]
    return [(name, value) for name, value in lines if value]


def _column(column: dict[str, Any]) -> str:
    missing = f", missing in {rate(column['missing_rate'])} of the rows" if column["missing_rate"] else ""
    return f"{column['type']}{missing}"
