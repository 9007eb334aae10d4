"""``ptad info``: what a model is made of."""

from __future__ import annotations

from typing import Any

from ptad.cli import options
from ptad.cli.console import on_command_line, print_json, print_pairs, rate, safe

EXAMPLES = """
ptad info model
ptad info model --json
"""


def info(model: options.Model, as_json: options.Json = False) -> None:
    """Show terms, columns, false-alarm rate, settings, sizes and versions of a model."""
    from ptad.jobs.info import describe_model
    from ptad.tables.notes import Note

    found = describe_model(model)
    if as_json:
        print_json(found)
        return
    print_pairs(_lines(found))
    columns = [(safe(c["name"]), _column(c)) for c in found["columns"][:40]]
    print_pairs(columns, f"\nColumns ({len(found['columns'])})")
    if len(found["columns"]) > 40:
        print_pairs([("", f"and {len(found['columns']) - 40} more: see --json")])
    if found["excluded"]:
        print_pairs([(safe(n), safe(r)) for n, r in list(found["excluded"].items())[:40]], "\nExcluded columns")
    if found["notes"]:
        notes = [Note.from_json(note).message.phrase(on_command_line) for note in found["notes"][:40]]
        print_pairs([("", safe(note)) for note in notes], "\nHow text is read")
    if found["changed_settings"]:
        changed = [(name, str(value)) for name, value in found["changed_settings"].items()]
        print_pairs(changed, f"\nSettings that differ from the preset '{found['preset']}'")


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    target, threshold, smallest = found["false_alarm_rate"], found["threshold"], found["smallest_rate"]
    trained = [("training rows", f"{found['training_rows']:,}")] if found["training_rows"] is not None else []
    terms = ", ".join(f"{term['name']} (weight {term['weight']:g})" for term in found["terms"])
    together = found["batch_size"]
    scored = [] if together is None else [("rows are scored", f"together, {together:,} at a time")]
    return [
        ("model", safe(found["model"])),
        ("made by", f"ptad {found['ptad_version']} (bundle format {found['format_version']})"),
        ("preset", found["preset"]),
        ("terms", terms),
        *scored,
        *trained,
        (
            "columns",
            f"{len(found['columns'])} used as {found['features']} features, {len(found['excluded'])} excluded",
        ),
        ("false-alarm rate", "none: the model has no threshold" if target is None else f"target {rate(target)}"),
        ("threshold", "none" if threshold is None else f"{threshold:.6g}"),
        ("smallest rate", "none" if smallest is None else rate(smallest)),
        ("calibration rows", f"{found['calibration_rows']:,}"),
        ("reference rows", f"{found['reference_rows']:,}"),
        ("size", f"{found['bytes'] / 1e6:,.2f} MB"),
    ]


def _column(column: dict[str, Any]) -> str:
    missing = f", missing in {rate(column['missing_rate'])} of the rows" if column["missing_rate"] else ""
    return f"{column['type']}{missing}"
