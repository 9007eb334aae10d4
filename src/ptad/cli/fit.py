"""``ptad fit``: learn from normal rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import print_json, print_pairs, rate, rows_progress, safe, set_up_logging

EXAMPLES = """
[bold]Examples[/bold]

ptad fit normal.csv --out model

ptad fit log.parquet --out model --label status --normal ok --drop id,comment

ptad fit 'days/*.csv.gz' --out model --missing '?' --false-alarm-rate 0.001

ptad fit table.csv --out model --config settings.toml --set n_steps=500 --kind zip=category

ptad fit big.parquet --out model --engine ray --address 10.0.0.1:6379 --workers 4

ptad fit --db sqlite:///shop.db --query 'SELECT * FROM orders WHERE good' --out model
"""


def fit(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.", show_default=False)],
    table: options.OptionalTable = None,
    db: options.Db = None,
    query: options.QueryText = None,
    label: options.Label = None,
    normal: options.Normal = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", help="Columns to leave out, separated by commas.", metavar="A,B")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="The only columns to use, separated by commas.", metavar="A,B")
    ] = None,
    missing: Annotated[
        list[str] | None, typer.Option("--missing", help="Text that means missing (may be repeated).", metavar="TEXT")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Kind of a column, such as zip=category (may be repeated).", metavar="COLUMN=KIND"),
    ] = None,
    preset: Annotated[str | None, typer.Option("--preset", help="default or paper.")] = None,
    false_alarm_rate: options.Rate = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Settings as TOML; options win over it.", metavar="FILE")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A field of ptad.Config (may be repeated).", metavar="FIELD=VALUE"),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="auto, cpu, cuda, cuda:1, ...")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The same number gives the same model.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Folder from which a killed fit goes on; removed at the end.", metavar="DIR"),
    ] = None,
    max_rows: Annotated[
        int, typer.Option("--max-rows", help="Learn from at most this many rows, a uniform sample of the table.")
    ] = 1_000_000,
    engine: options.Engine = "local",
    address: options.Address = None,
    workers: options.Workers = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn what normal rows of a table look like and save the model."""
    from ptad.cli.settings import gather, on_cluster, parse_names, parse_pairs, parse_rate, parse_source
    from ptad.engines.learning import fit_table

    set_up_logging(quiet)
    source = parse_source(table, db, query)
    parameters = gather(
        config,
        parse_pairs(set_, "--set", "FIELD=VALUE, such as n_steps=500"),
        {
            "preset": preset,
            "false_alarm_rate": parse_rate(false_alarm_rate),
            "device": device,
            "random_state": seed,
            "missing": missing or None,
            "drop": parse_names(drop) or None,
            "only": parse_names(only) or None,
            "kinds": parse_pairs(kind, "--kind", "COLUMN=KIND, such as zip=category"),
            "verbose": 0 if quiet else None,
        },
    )
    learn = None
    if on_cluster(engine, address, workers):
        from ptad.engines.ray.training import cluster_learner

        learn = cluster_learner(out, address, workers)
    summary = fit_table(
        source,
        out,
        parameters,
        label=label,
        normal=normal or (),
        max_rows=max_rows,
        encoding=encoding,
        checkpoint=checkpoint,
        reading=lambda: rows_progress("reading", quiet),
        learn=learn,
    )
    if as_json:
        print_json(summary)
    elif not quiet:
        print_pairs(summary_lines(summary, label), f"Model saved in {safe(summary['model'])}")


def summary_lines(summary: dict[str, object], label: str | None) -> list[tuple[str, str]]:
    """What was learned, from how much, and what is promised."""
    kinds, left_out, dated = summary["columns_by_kind"], summary["left_out"], summary["columns_dated"]
    assert isinstance(kinds, dict) and isinstance(left_out, dict) and isinstance(dated, list)
    of = f" of {summary['rows_read']:,} rows" if summary["rows_learned"] != summary["rows_read"] else " rows"
    why = f", those with a normal {label}" if label is not None else ""
    sampled = ", a uniform sample" if summary["sampled"] else ""
    promised = summary["false_alarm_rate"]
    assert promised is None or isinstance(promised, float)
    lines = [
        ("learned from", f"{summary['rows_learned']:,}{of}{why}{sampled}"),
        ("columns used", f"{summary['columns_used']} ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"),
    ]
    if dated:
        names = ", ".join(map(safe, dated))
        lines.append(
            ("dates", f"{names}: rows of a later time look strange for that alone; fit with --drop if not meant")
        )
    lines += [("left out" if i == 0 else "", f"{safe(n)}: {safe(r)}") for i, (n, r) in enumerate(left_out.items())][:20]
    if len(left_out) > 20:
        lines.append(("", f"and {len(left_out) - 20} more: see 'ptad info'"))
    rows = f"from {summary['calibration_rows']:,} calibration rows"
    lines.append(("false-alarm rate", f"{rate(promised)} {rows}" if promised is not None else "none: not calibrated"))
    return lines
