"""The generated parts of README and documentation: blocks between markers, made from the results alone.

A page is text written by hand with blocks like ``<!-- begin averages -->`` ... ``<!-- end averages -->``; only the
blocks are written here. A test renders all pages and fails if one is stale.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ptad.benchmark.collections import catalogue
from ptad.benchmark.experiments import EXPERIMENTS, MEASUREMENTS, variant_order
from ptad.benchmark.figures import draw_all, save_critical_difference
from ptad.benchmark.leaderboard import BASELINE, SAMPLE, leaderboard_page, rows_of_sample
from ptad.benchmark.markdown import Table, folded, to_markdown
from ptad.benchmark.metrics import RATES, wins
from ptad.benchmark.paper_tables import claim_table, duplicates_table, full_size_table, gap_table
from ptad.benchmark.peers import DEEP_PEERS, PEERS, make_peer
from ptad.benchmark.results import ALARM_COLUMNS, ResultsFile, ResultsFolder, Row
from ptad.benchmark.summary import METRICS, Board, Summary, experiment_rows, make_board
from ptad.benchmark.tables import averages_table, coverage_table, experiment_tables, published_table
from ptad.errors import DataError
from ptad.files import write_atomic

_MARK = re.compile(r"<!-- begin ([a-z-]+) -->\n.*?<!-- end \1 -->", re.DOTALL)
_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
NOT_YET = "*Not measured yet.*"
LEADERBOARDS = ("macro", "keel")  # collections with a page of their own
DEFAULT, PAPER = "ptad", "ptad-paper"
GROUPS = {
    "rare": "{n} tables of KEEL, used for no choice: a rare class",
    "class": "{n} tables of KEEL, used for no choice: one class against the rest",
    "odd": "Odd: {n} tables of macrOData, semantic anomalies",
    "ovr": "Ovr: {n} tables of macrOData, one class against the rest",
}


def write_pages(results: Path, docs: Path, readme: Path) -> list[Path]:
    """Write every generated part of README and documentation anew, tables and pictures; return the files."""
    for option, place in (("results", results), ("docs", docs), ("readme", readme)):
        if not place.exists():
            raise DataError(
                f"There is no {str(place)!r}.", f"Run this in a clone of ptad, or name it with {{{option}}}."
            )
    pages = render_pages(results, docs, readme)
    for path, text in pages.items():
        write_atomic(path, text.encode())
    return [*pages, *draw_all(results, docs / "images")]


def write_leaderboard(results: Path, out: Path, collection: str | None = None) -> None:
    """Write the leaderboard of a results file; its diagram goes into ``images`` beside it."""
    rows, name = ResultsFile(results).read_existing(), collection or results.stem
    image = out.parent / "images" / f"{name}_critical_difference.png"
    drawn = save_critical_difference(rows, name, image)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(out, leaderboard_page(rows, name, f"images/{image.name}" if drawn else "").encode())


def render_pages(results: Path, docs: Path, readme: Path) -> dict[Path, str]:
    """Return the text of every page with generated parts, without writing it."""
    folder = ResultsFolder(results)
    pages = {
        readme: fill(readme, {"figures": headline(folder)}),
        **{
            docs / f"{name}.md": leaderboard_page(folder.rows(name), name, f"images/{name}_critical_difference.png")
            for name in LEADERBOARDS
        },
        docs / "benchmark.md": fill(docs / "benchmark.md", main_blocks(folder)),
        docs / "typed-tables.md": fill(
            docs / "typed-tables.md", {"results": measurement_block(folder, "typed-tables")}
        ),
    }
    for page in sorted((docs / "experiments").glob("*.md")):
        pages[page] = fill(page, {"results": experiment_block(folder, page)})
    return pages


def fill(path: Path, blocks: Mapping[str, str]) -> str:
    """Return a page with new blocks; a marker without a block is an error, since it would keep stale values."""

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in blocks:
            raise DataError(f"{path} has a block {name!r} that nothing is generated for. Known: {', '.join(blocks)}.")
        return f"<!-- begin {name} -->\n{blocks[name]}\n<!-- end {name} -->"

    text, count = _MARK.subn(replacement, path.read_text(encoding="utf-8"))
    if not count:
        raise DataError(f"{path} has no block to write. Mark one with '<!-- begin {next(iter(blocks))} -->'.")
    return text


def main_blocks(results: ResultsFolder) -> dict[str, str]:
    """Return the blocks of the page of the main comparison."""
    rows = results.rows("paper")
    main = experiment_rows(rows, "main")
    summary = Summary(main)
    *tables, coverage = experiment_tables(rows)
    return {
        "methods": methods_list(),
        "averages": to_markdown(averages_table(rows, "main")),
        "claims": to_markdown(claim_table(rows)),
        "details": "\n\n".join(map(folded, tables)),
        "published": "\n\n".join(folded(published_table(summary, metric)) for metric in METRICS),
        "coverage": to_markdown(coverage),
        "gaps": to_markdown(gap_table(rows)),
        "full-size": to_markdown(full_size_table(rows, results.rows("full"))),
        "duplicates": to_markdown(duplicates_table(main)),
    }


def methods_list() -> str:
    """Return idea, references and departures of every method whose module lists departures from its original."""
    parts = []
    for name in PEERS:
        title, *sections = _SECTION.split(inspect.getdoc(inspect.getmodule(type(make_peer(name)))) or "")
        text_of = dict(zip(sections[::2], sections[1::2], strict=True))
        if "Departures" in text_of:
            head = f"**{name}**: {title.strip()} {' '.join(text_of.get('References', '').split())}".rstrip()
            points = re.split(r"^\* ", text_of["Departures"], flags=re.MULTILINE)  # a section without points is one
            parts.append(head + "\n\n" + "\n".join(f"- {' '.join(point.split())}" for point in points if point.strip()))
    return "\n\n".join(parts).replace("``", "`")


def experiment_block(results: ResultsFolder, page: Path) -> str:
    """Return the results of one experiment: its own page or its averages and tables, its measurement, its pictures."""
    name = page.stem
    experiment = EXPERIMENTS.get(name)
    blocks = []
    if experiment is not None and experiment.page is not None:
        blocks.append(experiment.page(results))
    elif experiment is not None:
        planned = experiment.datasets or tuple(catalogue())
        blocks.append(variant_block(results.experiment("paper", name), name, variant_order(name), planned))
    blocks.append(measurement_block(results, name))
    for image in sorted(results.path.glob(f"{name}_*.png")):
        place = os.path.relpath(image, page.parent).replace(os.sep, "/")
        blocks.append(f"![{image.stem.replace('_', ', ')}]({place})")
    return "\n\n".join(filter(None, blocks)) or NOT_YET


def variant_block(rows: Sequence[Row], name: str, order: Sequence[str], planned: Sequence[str]) -> str:
    """Return averages beside the published ones, what is missing, and the values of every table, folded."""
    members = experiment_rows(rows, name, order)
    if not members:
        return NOT_YET
    parts = [to_markdown(averages_table(rows, name, order))]
    measured = {(row["variant"], row["dataset"]) for row in members}
    counts = {table: sum((variant, table) in measured for variant in order) for table in planned}
    if incomplete := [f"{table} ({n} of {len(order)})" for table, n in counts.items() if n < len(order)]:
        parts.append(f"Planned but not measured in full, with the variants that were: {', '.join(incomplete)}.")
    parts += [folded(table) for table in experiment_tables(rows, name, order)[:2]]
    return "\n\n".join([*parts, to_markdown(coverage_table(members))])


def measurement_block(results: ResultsFolder, name: str) -> str:
    """Return the tables of a measurement; nothing if there is none of this name."""
    rows = results.measurement(name) if name in MEASUREMENTS else []
    return to_markdown(*MEASUREMENTS[name].tables(rows)) if rows else ""


def headline(results: ResultsFolder) -> str:
    """Return the table of the README and the sentences below it, Markdown."""
    keel, macro, paper = (experiment_rows(results.rows(name), "main") for name in ("keel", "macro", "paper"))
    folds = results.measurement("pretrained")
    body = [
        *_group_lines(keel, "keel"),
        *_group_lines(macro, "macro", folds),
        _paper_line(paper),
        _typed_line(results.measurement("typed-tables")),
    ]
    header = ["mean AUC-PR / AUC-ROC", "`default`", "first neighbour", "`paper`"]
    return f"{to_markdown(Table('', header, body))}\n\n{' '.join(_sentences(keel, macro, folds))}"


def _group_lines(rows: Sequence[Row], collection: str, folds: Sequence[dict[str, str]] = ()) -> list[list[str]]:
    """Return a line per group; with ``folds`` the default has weights that were not trained on the table."""
    board = make_board(_rows_of(rows, DEFAULT, BASELINE), collection)
    lines = []
    for group, title in GROUPS.items():
        if group not in board.groups:
            continue
        members = board.groups[group]
        fold_rows = [row for row in folds if row["table"].startswith(f"{group}_")]
        means = (np.mean([float(row[metric]) for row in fold_rows]) for metric in METRICS)
        default = " / ".join(f"{mean:.3f}" for mean in means) if fold_rows else _pair(board, DEFAULT, members)
        lines.append([title.format(n=int(members.sum())), default, _pair(board, BASELINE, members), ""])
    return lines


def _paper_line(rows: Sequence[Row]) -> list[str]:
    rows = _rows_of(rows, DEFAULT, BASELINE, PAPER)
    board = make_board(rows, "paper")
    max_train, max_test = (max(row[name] for row in rows) for name in ("max_train", "max_test"))
    last_seed = {method: max(row["seed"] for row in _rows_of(rows, method)) for method in (DEFAULT, PAPER)}
    title = (
        f"the paper's {len(board.datasets)} tables, at most {max_train:,} training and {max_test:,} test rows, seeds 0 "
        f"to {last_seed[DEFAULT]} (`paper`: to {last_seed[PAPER]})"
    )
    return [title, *(_pair(board, method) for method in (DEFAULT, BASELINE, PAPER))]


def _typed_line(rows: Sequence[dict[str, str]]) -> list[str]:
    max_train = max(int(row["n_train"]) for row in rows)
    default, knn = (np.mean([float(row[name]) for row in rows]) for name in ("auc_roc", "auc_roc_knn"))
    title = f"{len(rows)} tables of mixed type, at most {max_train:,} training rows, AUC-ROC"
    return [title, f"{default:.3f}", f"{knn:.3f} (kNN, one-hot)", ""]


def _sentences(keel: Sequence[Row], rows: Sequence[Row], folds: Sequence[dict[str, str]]) -> list[str]:
    sentences = [_standing(make_board(keel, "keel"), "KEEL")]
    if folds:
        means = [np.mean([float(row[f"{metric}_without"]) for row in folds]) for metric in METRICS]
        sentences.append(
            "On macrOData the term `pretrained`, trained on labels of other tables, is measured in five folds: "
            f"its weights never saw the table. Without it the default has {means[0]:.3f} / {means[1]:.3f} over all "
            f"{len(folds)} tables; all that follows is without it."
        )
    sentences.append(_standing(make_board(rows, "macro"), "macrOData"))
    if sample := rows_of_sample(rows):
        few = make_board(sample, "macro")
        deep = [method for method in few.methods if method in DEEP_PEERS]
        sentences.append(
            f"On the fixed sample of {SAMPLE} of them that {len(deep)} deep methods were measured on too, it has "
            f"{_pair(few, DEFAULT)}, the best deep method ({deep[0]}) {_pair(few, deep[0])}."
        )
    rates = [np.mean([row[name] for row in _rows_of(rows, DEFAULT) if row[name] is not None]) for name in ALARM_COLUMNS]
    sentences.append(
        f"Flagged normal rows at target rates of {_enumerate([f'{rate:.2f}' for rate in RATES])}: "
        f"{_enumerate([f'{rate:.4f}' for rate in rates])} on average over these tables."
    )
    return sentences


def _standing(board: Board, title: str) -> str:
    """Return how the default stands among the methods of a leaderboard."""
    gains = board.gains(BASELINE, "auc_pr")[:, board.methods.index(DEFAULT)]
    rank = 1 + board.methods.index(DEFAULT)
    return (
        f"On the {len(board.datasets)} tables of {title} the default wins against the first neighbour on "
        f"{wins(gains).mean():.0%} and has the {'best' if rank == 1 else f'{rank}. best'} mean AUC-PR of "
        f"{len(board.methods)} methods ([leaderboard](docs/{board.collection}.md))."
    )


def _rows_of(rows: Sequence[Row], *methods: str) -> list[Row]:
    return [row for row in rows if row["variant"] in methods]


def _pair(board: Board, method: str, members: Any = slice(None)) -> str:
    """Return mean AUC-PR and AUC-ROC of a method over some tables."""
    return " / ".join(f"{board.column(method, metric)[members].mean():.3f}" for metric in METRICS)


def _enumerate(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
