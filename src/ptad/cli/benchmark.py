"""``ptad benchmark``: run the comparison, write its tables and figures, check the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ptad.cli import options

app = typer.Typer(
    name="benchmark",
    help="Compare detectors on the twenty tables of the paper, honestly and in one command.",
    no_args_is_help=True,
)

DataOption = Annotated[
    Path, typer.Option("--data", envvar="PTAD_DATA", help="Folder with the data sets (or the variable PTAD_DATA).")
]
OutOption = Annotated[Path, typer.Option("--out", help="Results file; an existing one is continued.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
JobsOption = Annotated[int, typer.Option(help="Worker processes.")]
ThreadsOption = Annotated[int, typer.Option(help="Threads per worker; small nets are slower with more than one.")]
LimitOption = Annotated[float | None, typer.Option(help="Seconds per cell; a longer one is stopped and marked.")]
MaxTrainOption = Annotated[int | None, typer.Option(help="At most this many training rows; recorded in the row.")]
MaxTestOption = Annotated[int | None, typer.Option(help="At most this many test rows; recorded in the row.")]
CellsOption = Annotated[
    int, typer.Option(help="Cells per worker process; 1 starts a fresh process for each (exact memory figures).")
]
SeedsOption = Annotated[str, typer.Option(help="Seeds, such as 0-4 or 0,2,7.")]
RetryOption = Annotated[bool, typer.Option("--retry", help="Measure failed and timed-out cells again.")]
ResultsArgument = Annotated[Path, typer.Argument(help="Results file written by 'ptad benchmark run'.")]


@app.command()
def run(
    data: DataOption,
    out: OutOption = Path("results.csv"),
    methods: Annotated[str, typer.Option(help="Names separated by commas, 'all' or 'paper'.")] = "all",
    datasets: Annotated[str, typer.Option(help="Names separated by commas, or 'all'.")] = "all",
    seeds: SeedsOption = "0-2",
    scalings: Annotated[str, typer.Option(help="Column scalings for methods without their own.")] = "standard,minmax",
    device: DeviceOption = "cpu",
    jobs: JobsOption = 1,
    threads: ThreadsOption = 1,
    time_limit: LimitOption = None,
    max_train: MaxTrainOption = None,
    max_test: MaxTestOption = None,
    cells_per_worker: CellsOption = 25,
    retry: RetryOption = False,
    engine: options.Engine = "local",
    address: options.Address = None,
    workers: options.Workers = None,
) -> None:
    """Measure methods on data sets; continue where an earlier run stopped.

    Example: ptad benchmark run --data DIR --methods knn,iforest,ptad --datasets wine,glass --seeds 0-4 --out r.csv
    """
    from ptad.benchmark.ray_workers import cluster_executor
    from ptad.benchmark.runner import RunSettings, folder_loader, make_grid, run_grid
    from ptad.benchmark.selection import parse_datasets, parse_methods, parse_scalings, parse_seeds
    from ptad.benchmark.store import ResultStore
    from ptad.benchmark.workers import run_tasks
    from ptad.cli.settings import on_cluster

    execute = cluster_executor(address, workers) if on_cluster(engine, address, workers) else run_tasks
    grid = make_grid(parse_methods(methods), parse_datasets(datasets), parse_seeds(seeds), parse_scalings(scalings))
    settings = RunSettings(device, jobs, threads, time_limit, max_train, max_test, cells_per_worker, retry)
    rows = run_grid(grid, ResultStore(out), folder_loader(_folder(data)), settings, _announce, execute)
    typer.echo(_summary(rows, out), err=True)


@app.command()
def tables(
    results: ResultsArgument,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for tables.md, tables.tex and tables.html.")] = None,
    experiment: Annotated[str, typer.Option(help="Which experiment's rows; 'main' is the comparison.")] = "main",
    pages: Annotated[
        Path | None, typer.Option("--pages", help="Folder of the documentation whose generated parts to write anew.")
    ] = None,
) -> None:
    """Print the tables of a results file, and write them as Markdown, LaTeX and HTML.

    Example: ptad benchmark tables results.csv --out docs/benchmark
    """
    from ptad.benchmark.experiments import EXPERIMENTS, READERS, variant_order
    from ptad.benchmark.pages import update_pages
    from ptad.benchmark.report import experiment_tables, write_tables
    from ptad.benchmark.store import ResultStore
    from ptad.benchmark.tables import to_markdown

    rows = ResultStore(_existing(results)).read()
    made = experiment_tables(rows, experiment, variant_order(experiment))
    typer.echo("\n\n".join(to_markdown(table) for table in made))
    if out is not None:
        for path in write_tables(made, out):
            typer.echo(f"wrote {path}", err=True)
    if pages is not None:
        plans = {name: (variant_order(name), EXPERIMENTS[name].datasets) for name in EXPERIMENTS}
        for path in update_pages(results, pages, plans, READERS):
            typer.echo(f"wrote {path}", err=True)


@app.command()
def merge(
    into: Annotated[Path, typer.Argument(help="Results file that takes the rows.")],
    others: Annotated[list[Path], typer.Argument(help="Results files to take rows from, as of another machine.")],
) -> None:
    """Take over the rows of other results files; of a cell that both have, the last measured row counts.

    Example: ptad benchmark merge results.csv results-gpu.csv
    """
    from ptad.benchmark.store import ResultStore

    for path in others:
        typer.echo(f"{ResultStore(into).merge(ResultStore(_existing(path)))} rows from {path}", err=True)


@app.command()
def figures(
    results: ResultsArgument,
    out: Annotated[Path, typer.Option("--out", help="Folder for the images.")] = Path("figures"),
    suffix: Annotated[str, typer.Option(help="png, svg or pdf.")] = "png",
) -> None:
    """Draw the average and rank figures and the critical-difference diagrams.

    Example: ptad benchmark figures results.csv --out docs/benchmark
    """
    from ptad.benchmark.figures import draw_all
    from ptad.benchmark.store import ResultStore

    for path in draw_all(ResultStore(_existing(results)).read(), out, suffix):
        typer.echo(str(path))


@app.command()
def experiment(
    name: Annotated[str, typer.Argument(help="ablation, backbones, counts, weights, distance, anomaly-types, ...")],
    data: DataOption,
    out: OutOption = Path("results.csv"),
    datasets: Annotated[str | None, typer.Option(help="Other data sets than the experiment's own.")] = None,
    seeds: SeedsOption = "0-2",
    device: DeviceOption = "cpu",
    jobs: JobsOption = 1,
    threads: ThreadsOption = 1,
    time_limit: LimitOption = None,
    max_train: MaxTrainOption = None,
    max_test: MaxTestOption = None,
    cells_per_worker: CellsOption = 25,
    retry: RetryOption = False,
    part: Annotated[str, typer.Option(help="Only these parts of 'speed', separated by commas.")] = "",
) -> None:
    """Run one of the paper's further experiments and print its table.

    Example: ptad benchmark experiment ablation --data DIR --seeds 0-2 --out results.csv
    """
    from ptad.benchmark.experiments import run_experiment
    from ptad.benchmark.runner import RunSettings
    from ptad.benchmark.selection import parse_datasets, parse_seeds
    from ptad.benchmark.store import ResultStore
    from ptad.benchmark.tables import to_markdown

    settings = RunSettings(device, jobs, threads, time_limit, max_train, max_test, cells_per_worker, retry)
    chosen = parse_datasets(datasets) if datasets is not None else None
    parts = [word.strip() for word in part.split(",") if word.strip()]
    made = run_experiment(name, _folder(data), ResultStore(out), parse_seeds(seeds), settings, chosen, _announce, parts)
    typer.echo("\n\n".join(to_markdown(table) for table in made))


@app.command()
def data(
    directory: Annotated[Path, typer.Argument(help="Folder to look at.", envvar="PTAD_DATA")],
    check: Annotated[bool, typer.Option("--check/--list", help="Read and verify, or only list the catalogue.")] = True,
) -> None:
    """Check a folder of data sets: what is there, what is wrong, where the missing ones come from.

    Example: ptad benchmark data --check DIR
    """
    from ptad.benchmark.catalogue import catalogue, check_folder

    if not check:
        for info in catalogue().values():
            typer.echo(f"{info.name:18} {info.rows:>7} x {info.columns:<4} {info.anomalies:>6}  {info.origin}")
        return
    entries = check_folder(directory)
    for entry in entries:
        typer.echo(f"{entry.info.name:18} {entry.status:10} {entry.message}")
    bad = [entry.info.name for entry in entries if entry.status != "ok"]
    if bad:
        typer.echo(f"{len(bad)} of {len(entries)} data sets are not usable: {', '.join(bad)}", err=True)
        raise typer.Exit(2)


def _folder(path: Path) -> Path:
    from ptad.errors import DataError

    if not path.is_dir():
        raise DataError(f"There is no folder {str(path)!r}. Name the folder that holds the data sets.")
    return path


def _existing(path: Path) -> Path:
    from ptad.errors import DataError

    if not path.is_file():
        raise DataError(f"There is no results file {str(path)!r}. Make one with 'ptad benchmark run'.")
    return path


def _announce(row: dict[str, Any]) -> None:
    figures_ = ""
    if row.get("auc_pr") is not None:
        figures_ = f"AUC-PR {row['auc_pr']:.4f}  AUC-ROC {row['auc_roc']:.4f}  {row['fit_seconds']:.1f} s"
    typer.echo(
        f"{row['variant']:22} {row['dataset']:18} {row['seed']:>3} {row['scaling']:9} {row['status']:8} "
        f"{figures_} {row['reason']}".rstrip(),
        err=True,
    )


def _summary(rows: list[dict[str, Any]], out: Path) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    parts = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return f"{len(rows)} new cells in {out}" + (f": {parts}" if parts else "; nothing was left to do")
