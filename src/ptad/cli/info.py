"""``ptad info``: what a model is made of."""

from __future__ import annotations

from typing import Any

from ptad.cli import options
from ptad.cli.console import print_json, print_pairs, rate, safe

EXAMPLES = """
[bold]Examples[/bold]

ptad info model

ptad info model --json
"""


def info(model: options.Model, as_json: options.Json = False) -> None:
    """Show settings, columns, false-alarm rate, sizes and versions of a model."""
    from ptad.engines.inspection import describe_model

    found = describe_model(model)
    if as_json:
        print_json(found)
        return
    print_pairs(_lines(found))
    columns = [(safe(c["name"]), _column(c)) for c in found["columns"][:40]]
    print_pairs(columns, f"\nColumns ({len(found['columns'])})")
    if len(found["columns"]) > 40:
        print_pairs([("", f"and {len(found['columns']) - 40} more: see --json")])
    if found["left_out"]:
        print_pairs([(safe(n), safe(r)) for n, r in list(found["left_out"].items())[:40]], "\nLeft out")
    if found["changed_settings"]:
        changed = [(name, str(value)) for name, value in found["changed_settings"].items()]
        print_pairs(changed, f"\nSettings that differ from the preset '{found['preset']}'")


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    promised = found["false_alarm_rate"]
    learned = [("learned from", f"{found['rows_learned']:,} rows")] if found["rows_learned"] is not None else []
    return [
        ("model", safe(found["model"])),
        ("made by", f"ptad {found['ptad_version']} (bundle format {found['format_version']})"),
        ("preset", f"{found['preset']}, context {found['context']}"),
        *learned,
        (
            "columns",
            f"{len(found['columns'])} used as {found['columns_encoded']} numbers, {len(found['left_out'])} left out",
        ),
        ("false-alarm rate", "none: not calibrated" if promised is None else rate(promised)),
        ("threshold", "none" if found["threshold"] is None else f"{found['threshold']:.6g}"),
        ("smallest rate", "none" if found["smallest_rate"] is None else rate(found["smallest_rate"])),
        ("calibration rows", f"{found['calibration_rows']:,}"),
        ("reference rows", f"{found['reference_rows']:,} for each of {found['members']} members"),
        ("parameters", f"{found['parameters']:,}"),
        ("size", f"{found['bytes'] / 1e6:,.2f} MB"),
    ]


def _column(column: dict[str, Any]) -> str:
    missing = f", missing in {rate(column['missing_rate'])} of the rows" if column["missing_rate"] else ""
    return f"{column['kind']}{missing}"
