"""``ptad fit``: a model of normal rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ptad.cli import options
from ptad.cli.console import plural, print_json, print_pairs, rate, share, terminal_text

EXAMPLES = """
ptad fit normal.csv --out model
ptad fit log.parquet --out model --label status --normal ok --drop id,comment
ptad fit 'days/*.csv.gz' --out model --missing '?' --false-alarm-rate 0.001
ptad fit table.csv --out model --config settings.toml --set local_reconstruction.ridge=0.1 --type zip=categorical
ptad fit big.parquet --out model --preset paper --engine ray --address 10.0.0.1:6379 --workers 4
ptad fit --db sqlite:///shop.db --query 'SELECT * FROM orders WHERE good' --out model
"""


@options.with_job_options
def fit(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.", show_default=False)],
    table: options.OptionalTable = None,
    db: options.Db = None,
    query: options.QueryText = None,
    label: options.Label = None,
    normal: options.Normal = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns to exclude, separated by commas.", metavar="A,B")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="The only columns to use, separated by commas.", metavar="A,B")
    ] = None,
    type_: Annotated[
        list[str] | None,
        typer.Option(
            "--type", help="Type of a column, such as zip=categorical (may be repeated).", metavar="COLUMN=TYPE"
        ),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="default, or paper (needs the extra torch).")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings as TOML or JSON; options win over it.", metavar="FILE")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting (may be repeated).", metavar="GROUP.SETTING=VALUE")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="The same number gives the same model.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Folder from which a killed fit of the paper preset resumes; removed at the end.", metavar="DIR"
        ),
    ] = None,
    max_rows: options.MaxRows = 1_000_000,
    engine: options.Engine = "local",
    address: options.Address = None,
    workers: options.Workers = None,
    job: options.Job = options.DEFAULT_JOB,
) -> None:
    """Fit a model on the normal rows of a table and save it.

    --engine ray trains the network of the paper preset on a cluster; a preset without training is fitted on this
    machine.
    """
    from ptad.cli.settings import gather_settings, on_cluster, parse_names, parse_pairs, parse_rate
    from ptad.jobs.fit import fit_table

    fit_function = None
    if on_cluster(engine, address, workers):
        from ptad.jobs.ray.training import cluster_fit

        fit_function = cluster_fit(out, address, workers)
    parameters = gather_settings(
        config,
        parse_pairs(set_, "--set", "GROUP.SETTING=VALUE, such as local_reconstruction.ridge=0.1"),
        {
            "preset": preset,
            "false_alarm_rate": parse_rate(job.false_alarm_rate),
            "device": job.device,
            "random_state": seed,
            "missing": job.missing or None,
            "drop": parse_names(drop) or None,
            "only": parse_names(only) or None,
            "types": parse_pairs(type_, "--type", "COLUMN=TYPE, such as zip=categorical"),
            "decimal": job.decimal,
            "thousands": job.thousands,
            "strict": job.strict or None,
            "verbose": 0 if job.quiet else None,
        },
    )
    summary = fit_table(
        job.source(table, db, query),
        out,
        parameters,
        label=label,
        normal=normal or (),
        max_rows=max_rows,
        encoding=job.encoding,
        checkpoint=checkpoint,
        bad_cells=job.bad_cells,
        reading=job.reading,
        fit_function=fit_function,
    )
    if job.as_json:
        print_json(summary)
    elif not job.quiet:
        print_pairs(
            fit_lines(summary, label, listed=job.bad_cells), f"Model saved in {terminal_text(summary['model'])}"
        )


def fit_lines(
    summary: dict[str, Any], label: str | None, rows: str = "training rows", listed: Path | None = None
) -> list[tuple[str, str]]:
    """Return names and values of the summary: rows, columns and false-alarm rate."""
    types, excluded, dated = summary["columns_by_type"], summary["excluded"], summary["columns_dated"]
    of = f" of {summary['rows_read']:,} rows" if summary["training_rows"] != summary["rows_read"] else " rows"
    why = f", those with a normal {label}" if label is not None else ""
    sampled = ", a uniform sample" if summary["sampled"] else ""
    target = summary["false_alarm_rate"]
    lines = [
        (rows, f"{summary['training_rows']:,}{of}{why}{sampled}"),
        ("columns used", f"{summary['columns_used']} ({', '.join(f'{n} {type_}' for type_, n in types.items())})"),
    ]
    if dated:
        names = ", ".join(map(terminal_text, dated))
        lines.append(
            ("dates", f"{names}: later rows look anomalous by their date alone; to avoid that, fit with --drop")
        )
    lines += [
        ("excluded" if i == 0 else "", f"{terminal_text(n)} ({terminal_text(r)})")
        for i, (n, r) in enumerate(excluded.items())
    ][:20]
    if len(excluded) > 20:
        lines.append(("", f"and {len(excluded) - 20} more: see 'ptad info'"))
    if summary["bad_cells"]:
        lines.append(("unreadable cells", _bad_cells(summary, listed)))
    lines.append(("reference rows", f"{summary['reference_rows']:,}"))
    calibrated = f"{rate(target)}, from {summary['calibration_rows']:,} calibration rows"
    lines.append(
        ("false-alarm rate", f"target {calibrated}" if target is not None else "none: the model has no threshold")
    )
    return lines


def _bad_cells(summary: dict[str, Any], listed: Path | None) -> str:
    """Return how many cells of each column could not be read."""
    columns, n_rows = summary["columns_with_bad_cells"], summary["training_rows"]
    shown = [f"{terminal_text(name)} {share(n, n_rows, 'cells')}" for name, n in list(columns.items())[:10]]
    more = f" and {len(columns) - 10} more columns" if len(columns) > 10 else ""
    where = "--bad-cells FILE lists such cells" if listed is None else f"listed in {terminal_text(str(listed))}"
    return f"{plural(summary['bad_cells'], 'cell counts', 'cells count')} as missing: {', '.join(shown)}{more}; {where}"
