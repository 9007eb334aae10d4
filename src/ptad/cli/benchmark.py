"""``ptad benchmark``: run the comparison, write its tables, figures and leaderboards, check the data."""

from __future__ import annotations

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
    Path | None,
    typer.Option("--data", envvar="PTAD_DATA", help="Folder with the tables (or the variable PTAD_DATA)."),
]
CollectionOption = Annotated[str, typer.Option(help="paper, macro, or a folder of npz, CSV or Parquet files.")]
LabelOption = Annotated[str, typer.Option(help="Label column of CSV and Parquet files in a folder.")]
NormalOption = Annotated[list[str] | None, typer.Option(help="Label value of normal rows; 0 unless told otherwise.")]
DatasetsOption = Annotated[str, typer.Option(help="Tables or groups separated by commas, or 'all'.")]
SampleOption = Annotated[
    int | None, typer.Option(min=1, help="Only so many of the tables, drawn at random, the same everywhere.")
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help=f"Results file; an existing one is continued. [default: {RESULTS}/COLLECTION.csv]"),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
JobsOption = Annotated[int, typer.Option(help="Worker processes.")]
ThreadsOption = Annotated[int, typer.Option(help="Threads per worker; small nets are slower with more than one.")]
LimitOption = Annotated[float | None, typer.Option(help="Seconds per cell; a longer one is stopped and marked.")]
MaxTrainOption = Annotated[int | None, typer.Option(help="At most this many training rows; recorded in the row.")]
MaxTestOption = Annotated[int | None, typer.Option(help="At most this many test rows; recorded in the row.")]
CellsOption = Annotated[
    int, typer.Option(help="Cells per worker process; 1 starts a fresh process for each (exact memory figures).")
]
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
    threads: ThreadsOption = 1,
    time_limit: LimitOption = None,
    max_train: MaxTrainOption = None,
    max_test: MaxTestOption = None,
    cells_per_worker: CellsOption = 500,
    retry: RetryOption = False,
    budget: Annotated[float | None, typer.Option(help="Seconds for the whole run; the next one goes on.")] = None,
    engine: options.Engine = "local",
    address: options.Address = None,
    workers: options.Workers = None,
) -> None:
    """Measure methods on the tables of a collection; continue where an earlier run stopped.

    Example: ptad benchmark run --data DIR --collection macro --methods cheap --jobs 2
    """
    from ptad.benchmark.collections import open_collection
    from ptad.benchmark.plan import RunSettings, make_grid
    from ptad.benchmark.ray_workers import cluster_executor
    from ptad.benchmark.runner import run_grid
    from ptad.benchmark.selection import parse_methods, parse_scalings, parse_seeds
    from ptad.benchmark.store import ResultStore
    from ptad.benchmark.workers import run_tasks
    from ptad.cli.settings import on_cluster

    execute = cluster_executor(address, workers) if on_cluster(engine, address, workers) else run_tasks
    tables = open_collection(collection, data, label, normal or ())
    chosen = parse_seeds(seeds or tables.seeds)
    grid = make_grid(parse_methods(methods), tables.select(datasets, sample), chosen, parse_scalings(scalings))
    settings = RunSettings(device, jobs, threads, time_limit, max_train, max_test, cells_per_worker, retry, budget)
    path = out or RESULTS / f"{tables.name}.csv"
    rows = run_grid(grid, ResultStore(path), tables.load, settings, _announce, execute)
    typer.echo(_summary(rows, path), err=True)


@app.command()
def leaderboard(
    results: ResultsArgument,
    out: Annotated[Path, typer.Option("--out", help="The page, Markdown; its diagram goes into 'images' beside it.")],
    collection: Annotated[
        str | None, typer.Option(help="Name of the collection; that of the results file unless told otherwise.")
    ] = None,
) -> None:
    """Write the leaderboard of a collection, from its results alone.

    Example: ptad benchmark leaderboard mine.csv --out mine.md
    """
    from ptad.benchmark.figures import save_critical_difference
    from ptad.benchmark.leaderboard import leaderboard_page
    from ptad.benchmark.store import ResultStore

    rows, name = ResultStore(_existing(results)).read(), collection or results.stem
    image = out.parent / "images" / f"{name}_critical_difference.png"
    drawn = save_critical_difference(rows, name, image)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(leaderboard_page(rows, name, f"images/{image.name}" if drawn else ""), encoding="utf-8")
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
    from ptad.benchmark.report import experiment_tables
    from ptad.benchmark.store import ResultStore
    from ptad.benchmark.tables import to_markdown

    made = experiment_tables(ResultStore(_existing(results)).read(), experiment, variant_order(experiment))
    typer.echo("\n\n".join(to_markdown(table) for table in made))


@app.command()
def pages(
    results: Annotated[Path, typer.Option(help="Folder of results.")] = RESULTS,
    docs: Annotated[Path, typer.Option(help="Folder of the documentation.")] = Path("docs"),
    readme: Annotated[Path, typer.Option(help="The README.")] = Path("README.md"),
) -> None:
    """Write every figure of README and documentation anew from the results, tables and pictures alike.

    Example: ptad benchmark pages
    """
    from ptad.benchmark.figures import draw_all
    from ptad.benchmark.pages import render_pages
    from ptad.errors import DataError

    for option, place in (("results", results), ("docs", docs), ("readme", readme)):
        if not place.exists():
            raise DataError(f"There is no {str(place)!r}. Run this in a clone of ptad, or name it with --{option}.")
    for path, text in render_pages(results, docs, readme).items():
        path.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}", err=True)
    for path in draw_all(results, docs / "images"):
        typer.echo(f"drew {path}", err=True)


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
    threads: ThreadsOption = 1,
    time_limit: LimitOption = None,
    max_train: MaxTrainOption = None,
    max_test: MaxTestOption = None,
    cells_per_worker: CellsOption = 500,
    retry: RetryOption = False,
) -> None:
    """Run one of the paper's further experiments, or one of the default's, and print its table.

    Example: ptad benchmark experiment default-parts --data DIR --collection macro --jobs 2
    """
    from ptad.benchmark.collections import open_collection
    from ptad.benchmark.experiments import run_experiment
    from ptad.benchmark.plan import RunSettings
    from ptad.benchmark.selection import parse_seeds
    from ptad.benchmark.store import ResultStore
    from ptad.benchmark.tables import to_markdown

    settings = RunSettings(device, jobs, threads, time_limit, max_train, max_test, cells_per_worker, retry)
    tables = open_collection(collection, data)
    chosen = None if datasets is None and sample is None else tables.select(datasets or "all", sample)
    store = ResultStore(out or RESULTS / f"{tables.name}.csv")
    made = run_experiment(name, tables, store, parse_seeds(seeds or tables.seeds), settings, chosen, _announce)
    typer.echo("\n\n".join(to_markdown(table) for table in made))


@app.command()
def data(
    directory: Annotated[Path | None, typer.Argument(help="Folder to look at.", envvar="PTAD_DATA")] = None,
    collection: Annotated[
        str | None, typer.Option(help="paper, macro, or a folder; the first two unless told otherwise.")
    ] = None,
    label: LabelOption = "label",
    normal: NormalOption = None,
    check: Annotated[bool, typer.Option("--check/--list", help="Read and verify, or only list the catalogue.")] = True,
) -> None:
    """Say what is there of the collections, what is missing or damaged, and where it comes from.

    Example: ptad benchmark data DIR
    """
    from ptad.benchmark.catalogue import catalogue
    from ptad.benchmark.collections import open_collection
    from ptad.errors import DataError

    if not check:
        for info in catalogue().values():
            typer.echo(f"{info.name:18} {info.rows:>7} x {info.columns:<4} {info.anomalies:>6}  {info.origin}")
        return
    unusable = 0
    for word in (collection,) if collection else ("paper", "macro"):
        tables = open_collection(word, directory, label, normal or ())
        try:
            entries = tables.check()
        except DataError as error:
            typer.echo(f"{tables.name}: {error}")
            unusable += 1
            continue
        bad = [entry for entry in entries if entry.status != "ok"]
        typer.echo(f"{tables.name}: {len(entries) - len(bad)} of {len(entries)} tables are usable")
        for entry in bad or entries[: 0 if len(entries) > 20 else None]:
            typer.echo(f"  {entry.name:24} {entry.status:10} {entry.message}")
        unusable += len(bad)
    if unusable:
        raise typer.Exit(2)


def _existing(path: Path) -> Path:
    from ptad.errors import DataError

    if not path.is_file():
        raise DataError(f"There is no results file {str(path)!r}. Make one with 'ptad benchmark run'.")
    return path


def _announce(row: dict[str, Any]) -> None:
    figures_ = ""
    if row.get("auc_pr") is not None:
        seconds = "" if row.get("fit_seconds") is None else f"  {row['fit_seconds']:.1f} s"
        figures_ = f"AUC-PR {row['auc_pr']:.4f}  AUC-ROC {row['auc_roc']:.4f}{seconds}"
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
