"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(help="A model folder made by 'ptad fit'.", show_default=False)]
Table = Annotated[
    str,
    typer.Argument(
        help="A file (CSV, TSV, Parquet, Feather, JSON lines, also compressed; Excel, .ods), a folder or a quoted "
        "glob of them, or - for standard input.",
        show_default=False,
    ),
]
OptionalTable = Annotated[
    str | None,
    typer.Argument(
        help="A file (CSV, TSV, Parquet, Feather, JSON lines, also compressed; Excel, .ods), a folder or a quoted "
        "glob of them, or - for standard input. With --query the rows come from a database instead.",
        show_default=False,
    ),
]
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="PTAD_DB",
        help="A database: sqlite:///FILE, duckdb:///FILE or postgresql://USER:PASSWORD@HOST/NAME.",
        metavar="URI",
    ),
]
QueryText = Annotated[
    str | None, typer.Option("--query", help="A SELECT that gives the rows, in the database --db.", metavar="SQL")
]
Engine = Annotated[str, typer.Option("--engine", help="local, or ray for a cluster.")]
Address = Annotated[
    str | None,
    typer.Option("--address", help="Head of a Ray cluster; without it one is started here.", metavar="HOST:PORT"),
]
Workers = Annotated[int | None, typer.Option("--workers", help="Workers of the cluster; all it has without it.")]
Rate = Annotated[
    str | None,
    typer.Option(
        "--false-alarm-rate",
        help="Target: share of normal rows that may be flagged, such as 0.01, or auto.",
        metavar="RATE",
    ),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1, ...")]
Label = Annotated[str | None, typer.Option("--label", help="The label column.", metavar="COLUMN")]
Normal = Annotated[
    list[str] | None,
    typer.Option("--normal", help="Label value of normal rows (may be repeated).", metavar="VALUE"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes; errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result, and errors, as JSON.")]
