"""``ptad benchmark``: run the comparison, write its tables, figures and leaderboards, check the data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from ptad.cli import options

app = typer.Typer(
    name="benchmark",
    help="Compare detectors on collections of tables: the paper's twenty, macrOData's hundreds, or your own.",
    no_args_is_help=True,
)

RESULTS = Path("benchmarks/results")

DataOption = Annotated[
    Path | None, typer.Option(envvar="PTAD_DATA", help="Folder with the tables (or the variable PTAD_DATA).")
]
CollectionOption = Annotated[str, typer.Option(help="paper, macro, keel, or a folder of npz, CSV or Parquet files.")]
LabelOption = Annotated[str, typer.Option(help="Label column of CSV and Parquet files in a folder.")]
NormalOption = Annotated[list[str] | None, typer.Option(help="Label value of normal rows; 0 by default.")]
DatasetsOption = Annotated[str, typer.Option(help="Tables or groups separated by commas, or 'all'.")]
SampleOption = Annotated[int | None, typer.Option(min=1, help="Only so many of the tables, drawn with a fixed seed.")]
OutOption = Annotated[
    Path | None, typer.Option(help=f"Results file; an existing one is continued. [default: {RESULTS}/COLLECTION.csv]")
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
JobsOption = Annotated[int, typer.Option(help="Worker processes.")]
LimitOption = Annotated[float | None, typer.Option(help="Seconds per cell; a longer one is stopped and marked.")]
MaxTrainOption = Annotated[int | None, typer.Option(help="At most this many training rows; recorded in the row.")]
MaxTestOption = Annotated[int | None, typer.Option(help="At most this many test rows; recorded in the row.")]
SeedsOption = Annotated[str | None, typer.Option(help="Seeds, such as 0-4 or 0,2,7. [default: 0 for macro, else 0-2]")]
RetryOption = Annotated[bool, typer.Option("--retry", help="Measure failed and timed-out cells again.")]
ResultsArgument = Annotated[Path, typer.Argument(help="Results file written by 'ptad benchmark run'.")]


@app.command()
def run(
    data: DataOption = None,
    collection: CollectionOption = "paper",
    methods: Annotated[str, typer.Option(help="Names separated by commas, or all, paper, cheap, deep.")] = "all",
    datasets: DatasetsOption = "all",
    sample: SampleOption = None,
    seeds: SeedsOption = None,
    scalings: Annotated[str, typer.Option(help="Column scalings for methods without their own.")] = "standard,minmax",
    out: OutOption = None,
    label: LabelOption = "label",
    normal: NormalOption = None,
    device: DeviceOption = "cpu",
    jobs: JobsOption = 1,
    time_limit: LimitOption = None,
    max_train: MaxTrainOption = None,
    max_test: MaxTestOption = None,
    retry: RetryOption = False,
    engine: options.Engine = "local",
    address: options.Address = None,
    workers: options.Workers = None,
) -> None:
    """Measure methods on the tables of a collection; continue where an earlier run stopped.

    Example: ptad benchmark run --data DIR --collection macro --methods cheap --jobs 2
    """
    from ptad.benchmark import plan
    from ptad.benchmark.collections import open_collection
    from ptad.benchmark.ray_workers import cluster_executor
    from ptad.benchmark.results import ResultsFile
    from ptad.benchmark.runner import run_grid
    from ptad.benchmark.workers import run_tasks
    from ptad.cli.settings import on_cluster

    tables = open_collection(collection, data, label, normal or ())
    path = out or RESULTS / f"{tables.name}.csv"
    settings = plan.RunSettings(device, jobs, time_limit, max_train, max_test, retry)
    grid = plan.make_grid(
        plan.parse_methods(methods),
        tables.select(datasets, sample),
        plan.parse_seeds(seeds or tables.seeds),
        plan.parse_scalings(scalings),
        tables.settings,
    )
    execute = cluster_executor(address, workers) if on_cluster(engine, address, workers) else run_tasks
    rows = run_grid(grid, ResultsFile(path), tables.load, settings, _print_row, execute)
    counts = ", ".join(f"{n} {status}" for status, n in sorted(Counter(row["status"] for row in rows).items()))
    typer.echo(f"{len(rows)} new cells in {path}" + (f": {counts}" if rows else "; nothing was left to do"), err=True)


@app.command()
def leaderboard(
    results: ResultsArgument,
    out: Annotated[Path, typer.Option(help="The page, Markdown; its diagram goes into 'images' beside it.")],
    collection: Annotated[
        str | None, typer.Option(help="Name of the collection, by default that of the results file.")
    ] = None,
) -> None:
    """Write the leaderboard of a collection, from its results alone.

    Example: ptad benchmark leaderboard mine.csv --out mine.md
    """
    from ptad.benchmark.pages import write_leaderboard

    write_leaderboard(results, out, collection)
    typer.echo(f"wrote {out}", err=True)


@app.command()
def tables(
    results: ResultsArgument,
    experiment: Annotated[str, typer.Option(help="Which experiment's rows; 'main' is the comparison.")] = "main",
) -> None:
    """Print the tables of a results file, Markdown.

    Example: ptad benchmark tables results.csv --experiment ablation
    """
    from ptad.benchmark.experiments import variant_order
    from ptad.benchmark.markdown import to_markdown
    from ptad.benchmark.results import ResultsFile
    from ptad.benchmark.tables import experiment_tables

    rows = ResultsFile(results).read_existing()
    typer.echo(to_markdown(*experiment_tables(rows, experiment, variant_order(experiment))))


@app.command()
def pages(
    results: Annotated[Path, typer.Option(help="Folder of results.")] = RESULTS,
    docs: Annotated[Path, typer.Option(help="Folder of the documentation.")] = Path("docs"),
    readme: Annotated[Path, typer.Option(help="The README.")] = Path("README.md"),
) -> None:
    """Write all tables and pictures of README and documentation anew from the results.

    Example: ptad benchmark pages
    """
    from ptad.benchmark.pages import write_pages

    for path in write_pages(results, docs, readme):
        typer.echo(f"wrote {path}", err=True)


@app.command()
def merge(
    into: Annotated[Path, typer.Argument(help="Results file that takes the rows.")],
    others: Annotated[list[Path], typer.Argument(help="Results files to take rows from, as of another machine.")],
) -> None:
    """Append the rows of other results files; of a cell that both have, the last measured row counts.

    Example: ptad benchmark merge results.csv results-gpu.csv
    """
    from ptad.benchmark.results import ResultsFile

    for path in others:
        typer.echo(f"{ResultsFile(into).merge(ResultsFile(path))} rows from {path}", err=True)


@app.command()
def experiment(
    name: Annotated[str, typer.Argument(help="ablation, backbones, counts, weights, distance, anomaly-types, ...")],
    data: DataOption = None,
    collection: CollectionOption = "paper",
    datasets: Annotated[str | None, typer.Option(help="Other tables than the experiment's own.")] = None,
    sample: SampleOption = None,
    seeds: SeedsOption = None,
    out: OutOption = None,
    device: DeviceOption = "cpu",
    jobs: JobsOption = 1,
    time_limit: LimitOption = None,
    max_train: MaxTrainOption = None,
    max_test: MaxTestOption = None,
    retry: RetryOption = False,
) -> None:
    """Run one of the paper's further experiments, or one of the default's, and print its table.

    Example: ptad benchmark experiment default-parts --data DIR --collection macro --jobs 2
    """
    from ptad.benchmark.collections import open_collection
    from ptad.benchmark.experiments import run_experiment
    from ptad.benchmark.markdown import to_markdown
    from ptad.benchmark.plan import RunSettings

    tables = open_collection(collection, data)
    settings = RunSettings(device, jobs, time_limit, max_train, max_test, retry)
    path = out or RESULTS / f"{tables.name}.csv"
    results = run_experiment(
        name, tables, path, settings, datasets=datasets, sample=sample, seeds=seeds, on_row=_print_row
    )
    typer.echo(to_markdown(*results))


@app.command()
def data(
    directory: Annotated[Path | None, typer.Argument(help="Folder to look at.", envvar="PTAD_DATA")] = None,
    collection: Annotated[
        str | None, typer.Option(help="paper, macro, keel, or a folder; by default these three.")
    ] = None,
    label: LabelOption = "label",
    normal: NormalOption = None,
    check: Annotated[bool, typer.Option("--check/--list", help="Read and verify, or only list the catalogue.")] = True,
) -> None:
    """Check which tables of the collections are there, which are missing or damaged, and where to get them.

    Example: ptad benchmark data DIR
    """
    from ptad.benchmark.collections import COLLECTIONS, catalogue_lines, check_lines, open_collection

    if not check:
        typer.echo("\n".join(catalogue_lines()))
        return
    names = [collection] if collection else list(COLLECTIONS)
    unusable = False
    for line, bad in check_lines([open_collection(name, directory, label, normal or ()) for name in names]):
        typer.echo(line)
        unusable |= bad
    if unusable:
        raise typer.Exit(2)


def _print_row(row: dict[str, Any]) -> None:
    """Print a row of the results on standard error."""
    metrics = ""
    if row.get("auc_pr") is not None:
        seconds = "" if row.get("fit_seconds") is None else f"  {row['fit_seconds']:.1f} s"
        metrics = f"AUC-PR {row['auc_pr']:.4f}  AUC-ROC {row['auc_roc']:.4f}{seconds}"
    start = f"{row['variant']:22} {row['dataset']:18} {row['seed']:>3} {row['scaling']:9} {row['status']:8}"
    typer.echo(f"{start} {metrics} {row['reason']}".rstrip(), err=True)
