"""The generated parts of the documentation: tables between markers, a pure read of the results files.

A page holds text by hand and blocks like ``<!-- begin averages -->`` ... ``<!-- end averages -->``; only what is
between the markers is written here, so that text and figures cannot drift apart.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ptad.benchmark.averages import averages_table, full_size_table, twin_table
from ptad.benchmark.claims import claim_table
from ptad.benchmark.leaderboard import make_board, means_table
from ptad.benchmark.methods import methods_list
from ptad.benchmark.report import BESIDE_PUBLISHED, coverage_table, experiment_tables
from ptad.benchmark.store import ResultStore, Row
from ptad.benchmark.summary import experiment_rows
from ptad.benchmark.tables import Table, TableCell, to_markdown
from ptad.errors import DataError

_MARK = re.compile(r"<!-- begin ([a-z-]+) -->\n.*?<!-- end \1 -->", re.DOTALL)
NOT_YET = "*Not measured yet.*"


def update_page(path: Path, blocks: Mapping[str, str]) -> None:
    """Write the blocks of a page anew; a marker without a block is an error, since it would keep old figures."""
    text = path.read_text(encoding="utf-8")

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in blocks:
            raise DataError(f"{path} has a block {name!r} that nothing is generated for. Known: {', '.join(blocks)}.")
        return f"<!-- begin {name} -->\n{blocks[name]}\n<!-- end {name} -->"

    path.write_text(_MARK.sub(replacement, text), encoding="utf-8")


def update_pages(
    results: Path,
    docs: Path,
    experiments: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    readers: Mapping[str, Callable[[Path], Table]],
) -> list[Path]:
    """Write the blocks of ``benchmark.md`` and ``experiments/*.md``.

    Parameters
    ----------
    results : Path
        The results of the paper's tables; ``full.csv``, ``macro.csv`` and the files of the measurements are looked for
        beside it.
    docs : Path
        Folder of the documentation.
    experiments : mapping
        Variants of every experiment in the order of its table, and the tables that it is planned for.
    readers : mapping
        For experiments with a file of their own, how to read it as a table; a plain CSV otherwise.
    """
    rows, wide = ResultStore(results).read(), ResultStore(results.with_name("macro.csv")).read()
    main = docs / "benchmark.md"
    update_page(main, main_blocks(rows, results.with_name("full.csv")))
    written = [main]
    for page in sorted((docs / "experiments").glob("*.md")):
        own = results.with_name(f"{page.stem}.csv")
        blocks = [experiment_block(rows, page.stem, *experiments[page.stem])] if page.stem in experiments else []
        if any(row["experiment"] == page.stem for row in wide):
            title = "On the collection macro"
            blocks.append(to_markdown(means_table(make_board(wide, "macro", page.stem), title)))
        blocks += [to_markdown(readers.get(page.stem, csv_table)(own))] if own.is_file() else []
        for image in sorted(results.parent.glob(f"{page.stem}_*.png")):
            place = os.path.relpath(image, page.parent).replace(os.sep, "/")
            blocks.append(f"![{image.stem.replace('_', ', ')}]({place})")
        update_page(page, {"results": "\n\n".join(blocks) or NOT_YET})
        written.append(page)
    return written


def main_blocks(rows: Sequence[Row], full: Path) -> dict[str, str]:
    """The blocks of the page of the main comparison."""
    *tables, coverage = experiment_tables(rows)
    printed = [table for table in tables if table.title.endswith(BESIDE_PUBLISHED)]
    return {
        "methods": methods_list(),
        "averages": to_markdown(averages_table(rows, "main")),
        "claims": to_markdown(claim_table(rows)),
        "details": "\n\n".join(_folded(table) for table in tables if table not in printed),
        "published": "\n\n".join(_folded(table) for table in printed),
        "coverage": to_markdown(coverage),
        "full-size": to_markdown(full_size_table(rows, ResultStore(full).read())),
        "twins": to_markdown(twin_table(experiment_rows(rows, "main"))),
    }


def experiment_block(rows: Sequence[Row], name: str, order: Sequence[str], planned: Sequence[str]) -> str:
    """Averages beside the published ones, what is missing, then the figures of every table, folded."""
    chosen = experiment_rows(rows, name, order)
    if not chosen:
        return NOT_YET
    parts = [to_markdown(averages_table(rows, name, order))]
    measured = {(row["variant"], row["dataset"]) for row in chosen}
    holes = [
        f"{d} ({n} of {len(order)})" for d in planned if (n := sum((v, d) in measured for v in order)) < len(order)
    ]
    if holes:
        parts.append(f"Planned but not measured in full, with the variants that were: {', '.join(holes)}.")
    parts += [_folded(table) for table in experiment_tables(rows, name, order)[:2]]
    parts.append(to_markdown(coverage_table(chosen)))
    return "\n\n".join(parts)


def csv_table(path: Path) -> Table:
    """A measurement's own file as a table, numbers with four digits."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *body = list(csv.reader(file))
    return Table(path.stem, header, [[TableCell(_short(text)) for text in row] for row in body])


def _short(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    return text if value == int(value) or not np.isfinite(value) else f"{value:.4g}"


def _folded(table: Table) -> str:
    head, _, body = to_markdown(table).partition("\n\n")
    return f"<details><summary>{head.removeprefix('### ')}</summary>\n\n{body}\n\n</details>"
