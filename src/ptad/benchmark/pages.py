"""The generated parts of README and documentation: blocks between markers, a pure read of the results.

A page holds text by hand and blocks like ``<!-- begin averages -->`` ... ``<!-- end averages -->``; only what is
between the markers is written here, so that text and figures cannot drift apart. A test renders all pages and compares.
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
from ptad.benchmark.leaderboard import BASELINE, SAMPLE, leaderboard_page, rows_of_sample, won
from ptad.benchmark.markdown import Table, folded, to_markdown
from ptad.benchmark.metrics import RATES
from ptad.benchmark.paper_tables import claim_table, duplicates_table, full_size_table, gap_table
from ptad.benchmark.peers import DEEP_PEERS, PEERS, make_peer
from ptad.benchmark.store import ALARM_COLUMNS, Results, ResultStore, Row
from ptad.benchmark.summary import METRICS, Board, Summary, experiment_rows, make_board
from ptad.benchmark.tables import averages_table, coverage_table, experiment_tables, published_table
from ptad.errors import DataError

_MARK = re.compile(r"<!-- begin ([a-z-]+) -->\n.*?<!-- end \1 -->", re.DOTALL)
_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
NOT_YET = "*Not measured yet.*"
LEADERBOARD = "macro"
DEFAULT, PAPER = "ptad", "ptad-paper"
GROUPS = {
    "odd": "Odd: {n} tables of macrOData, semantic anomalies",
    "ovr": "Ovr: {n} tables of macrOData, one class against the rest",
}


def write_pages(results: Path, docs: Path, readme: Path) -> list[Path]:
    """Write every generated part of README and documentation anew, tables and pictures; return the files."""
    for option, place in (("results", results), ("docs", docs), ("readme", readme)):
        if not place.exists():
            raise DataError(f"There is no {str(place)!r}. Run this in a clone of ptad, or name it with --{option}.")
    pages = render_pages(results, docs, readme)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return [*pages, *draw_all(results, docs / "images")]


def write_leaderboard(results: Path, out: Path, collection: str | None = None) -> None:
    """Write the leaderboard of a results file; its diagram goes into ``images`` beside it."""
    rows, name = ResultStore(results).existing(), collection or results.stem
    image = out.parent / "images" / f"{name}_critical_difference.png"
    drawn = save_critical_difference(rows, name, image)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(leaderboard_page(rows, name, f"images/{image.name}" if drawn else ""), encoding="utf-8")


def render_pages(results: Path, docs: Path, readme: Path) -> dict[Path, str]:
    """Return the text of every page with generated parts, as the results say; nothing is written."""
    found = Results(results)
    image = f"images/{LEADERBOARD}_critical_difference.png"
    pages = {
        readme: fill(readme, {"figures": headline(found)}),
        docs / f"{LEADERBOARD}.md": leaderboard_page(found.rows(LEADERBOARD), LEADERBOARD, image),
        docs / "benchmark.md": fill(docs / "benchmark.md", main_blocks(found)),
        docs / "typed-tables.md": fill(docs / "typed-tables.md", {"results": _measured(found, "typed-tables")}),
    }
    for page in sorted((docs / "experiments").glob("*.md")):
        pages[page] = fill(page, {"results": experiment_block(found, page)})
    return pages


def fill(path: Path, blocks: Mapping[str, str]) -> str:
    """Return a page with its blocks written anew; a marker without a block is an error: it would keep old figures."""

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in blocks:
            raise DataError(f"{path} has a block {name!r} that nothing is generated for. Known: {', '.join(blocks)}.")
        return f"<!-- begin {name} -->\n{blocks[name]}\n<!-- end {name} -->"

    text, count = _MARK.subn(replacement, path.read_text(encoding="utf-8"))
    if not count:
        raise DataError(f"{path} has no block to write. Mark one with '<!-- begin {next(iter(blocks))} -->'.")
    return text


def main_blocks(results: Results) -> dict[str, str]:
    """The blocks of the page of the main comparison."""
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
    """One paragraph per method whose module lists departures from its original: idea, sources, departures."""
    parts = []
    for name in PEERS:
        title, *sections = _SECTION.split(inspect.getdoc(inspect.getmodule(type(make_peer(name)))) or "")
        found = dict(zip(sections[::2], sections[1::2], strict=True))
        if "Departures" in found:
            head = f"**{name}**: {title.strip()} {' '.join(found.get('References', '').split())}".rstrip()
            # a section without points is one
            points = re.split(r"^\* ", found["Departures"], flags=re.MULTILINE)
            parts.append(head + "\n\n" + "\n".join(f"- {' '.join(point.split())}" for point in points if point.strip()))
    return "\n\n".join(parts).replace("``", "`")


def experiment_block(results: Results, page: Path) -> str:
    """What is known of one experiment: its own page, or its averages and tables; its file, its pictures."""
    name = page.stem
    experiment = EXPERIMENTS.get(name)
    blocks = []
    if experiment is not None and experiment.page is not None:
        blocks.append(experiment.page(results))
    elif experiment is not None:
        planned = experiment.datasets or tuple(catalogue())
        blocks.append(variant_block(results.experiment("paper", name), name, variant_order(name), planned))
    blocks.append(_measured(results, name))
    for image in sorted(results.folder.glob(f"{name}_*.png")):
        place = os.path.relpath(image, page.parent).replace(os.sep, "/")
        blocks.append(f"![{image.stem.replace('_', ', ')}]({place})")
    return "\n\n".join(filter(None, blocks)) or NOT_YET


def variant_block(rows: Sequence[Row], name: str, order: Sequence[str], planned: Sequence[str]) -> str:
    """Averages beside the published ones, what is missing, then the figures of every table, folded."""
    chosen = experiment_rows(rows, name, order)
    if not chosen:
        return NOT_YET
    parts = [to_markdown(averages_table(rows, name, order))]
    measured = {(row["variant"], row["dataset"]) for row in chosen}
    counts = {table: sum((variant, table) in measured for variant in order) for table in planned}
    if holes := [f"{table} ({n} of {len(order)})" for table, n in counts.items() if n < len(order)]:
        parts.append(f"Planned but not measured in full, with the variants that were: {', '.join(holes)}.")
    parts += [folded(table) for table in experiment_tables(rows, name, order)[:2]]
    return "\n\n".join([*parts, to_markdown(coverage_table(chosen))])


def _measured(results: Results, name: str) -> str:
    """The tables of a measurement with a file of its own."""
    rows = results.measurement(name) if name in MEASUREMENTS else []
    return to_markdown(*MEASUREMENTS[name].tables(rows)) if rows else ""


def headline(results: Results) -> str:
    """Return the table of the README and the sentences below it, Markdown."""
    macro, paper = (experiment_rows(results.rows(name), "main") for name in ("macro", "paper"))
    folds = results.measurement("pretrained")
    body = [*_macro_lines(macro, folds), _paper_line(paper), _typed_line(results.measurement("typed-tables"))]
    header = ["mean AUC-PR / AUC-ROC", "`default`", "first neighbour", "`paper`"]
    return f"{to_markdown(Table('', header, body))}\n\n{' '.join(_sentences(macro, folds))}"


def _macro_lines(rows: Sequence[Row], folds: Sequence[dict[str, str]]) -> list[list[str]]:
    """The default was trained on these tables: its figures are those of weights that never saw the table."""
    board = make_board(_of(rows, DEFAULT, BASELINE), "macro")
    lines = []
    for group, title in GROUPS.items():
        chosen = board.groups[group]
        own = [row for row in folds if row["table"].startswith(f"{group}_")]
        means = (np.mean([float(row[metric]) for row in own]) for metric in METRICS)
        default = " / ".join(f"{mean:.3f}" for mean in means) if own else _pair(board, DEFAULT, chosen)
        lines.append([title.format(n=int(chosen.sum())), default, _pair(board, BASELINE, chosen), ""])
    return lines


def _paper_line(rows: Sequence[Row]) -> list[str]:
    own = _of(rows, DEFAULT, BASELINE, PAPER)
    board = make_board(own, "paper")
    most = [max(row[name] for row in own) for name in ("max_train", "max_test")]
    seeds = {method: [row["seed"] for row in own if row["variant"] == method] for method in (DEFAULT, PAPER)}
    title = (
        f"the paper's {len(board.datasets)} tables, at most {most[0]:,} training and {most[1]:,} test rows, seeds 0 to "
        f"{max(seeds[DEFAULT])} (`paper`: to {max(seeds[PAPER])})"
    )
    return [title, *(_pair(board, method) for method in (DEFAULT, BASELINE, PAPER))]


def _typed_line(rows: Sequence[dict[str, str]]) -> list[str]:
    most = max(int(row["n_train"]) for row in rows)
    ours, theirs = (np.mean([float(row[name]) for row in rows]) for name in ("auc_roc", "auc_roc_knn"))
    title = f"{len(rows)} tables of mixed type, at most {most:,} training rows, AUC-ROC"
    return [title, f"{ours:.3f}", f"{theirs:.3f} (kNN, one-hot)", ""]


def _sentences(rows: Sequence[Row], folds: Sequence[dict[str, str]]) -> list[str]:
    board = make_board(rows, "macro")
    gains = board.gains(BASELINE, "auc_pr")[:, board.methods.index(DEFAULT)]
    place = 1 + board.methods.index(DEFAULT)
    found = []
    if folds:
        means = [np.mean([float(row[f"{metric}_without"]) for row in folds]) for metric in METRICS]
        found.append(
            "On macrOData the term `pretrained`, trained on labels of other tables, is measured in five folds: "
            f"its weights never saw the table. Without it the default has {means[0]:.3f} / {means[1]:.3f} over all "
            f"{len(folds)} tables; all that follows is without it."
        )
    found.append(
        f"On the {len(board.datasets)} tables it wins against the first neighbour on {won(gains):.0%} "
        f"and has the {'best' if place == 1 else f'{place}. best'} mean AUC-PR of {len(board.methods)} methods "
        "([leaderboard](docs/macro.md))."
    )
    if sample := rows_of_sample(rows):
        few = make_board(sample, "macro")
        deep = [method for method in few.methods if method in DEEP_PEERS]
        found.append(
            f"On the fixed sample of {SAMPLE} of them that {len(deep)} deep methods were measured on too, it has "
            f"{_pair(few, DEFAULT)}, the best deep method ({deep[0]}) {_pair(few, deep[0])}."
        )
    alarms = [np.mean([row[name] for row in _of(rows, DEFAULT) if row[name] is not None]) for name in ALARM_COLUMNS]
    found.append(
        f"Flagged normal rows at target rates of {_listed([f'{rate:.2f}' for rate in RATES])}: "
        f"{_listed([f'{share:.4f}' for share in alarms])} on average over these tables."
    )
    return found


def _of(rows: Sequence[Row], *methods: str) -> list[Row]:
    return [row for row in rows if row["variant"] in methods]


def _pair(board: Board, method: str, chosen: Any = slice(None)) -> str:
    """Mean AUC-PR and AUC-ROC of a method over some tables."""
    return " / ".join(f"{board.column(method, metric)[chosen].mean():.3f}" for metric in METRICS)


def _listed(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
