"""The generated parts of README and documentation: blocks between markers, a pure read of the results.

A page holds text by hand and blocks like ``<!-- begin averages -->`` ... ``<!-- end averages -->``; only what is
between the markers is written here, so that text and figures cannot drift apart. A test renders all pages and compares.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ptad.benchmark.averages import averages_table, full_size_table, twin_table
from ptad.benchmark.catalogue import catalogue
from ptad.benchmark.claims import claim_table
from ptad.benchmark.experiments import EXPERIMENTS, READERS, variant_order
from ptad.benchmark.gaps import gap_table
from ptad.benchmark.headline import headline
from ptad.benchmark.leaderboard import leaderboard_page
from ptad.benchmark.methods import methods_list
from ptad.benchmark.report import coverage_table, experiment_tables, published_tables
from ptad.benchmark.results import Results
from ptad.benchmark.store import Row
from ptad.benchmark.summary import experiment_rows
from ptad.benchmark.tables import Table, plain_table, to_markdown
from ptad.errors import DataError

_MARK = re.compile(r"<!-- begin ([a-z-]+) -->\n.*?<!-- end \1 -->", re.DOTALL)
NOT_YET = "*Not measured yet.*"
LEADERBOARD = "macro"


def render_pages(results: Path, docs: Path, readme: Path) -> dict[Path, str]:
    """Return the text of every page with generated parts, as the results say; nothing is written.

    Parameters
    ----------
    results : Path
        Folder of results.
    docs : Path
        Folder of the documentation: ``benchmark.md``, ``typed-tables.md``, ``experiments/*.md`` have blocks;
        ``macro.md`` is generated as a whole.
    readme : Path
        Has the block ``figures``.
    """
    found = Results(results)
    pages = {
        readme: fill(readme, {"figures": headline(found)}),
        docs / f"{LEADERBOARD}.md": leaderboard_page(
            found.rows(LEADERBOARD), LEADERBOARD, f"images/{LEADERBOARD}_critical_difference.png"
        ),
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
    *tables, coverage = experiment_tables(rows)
    return {
        "methods": methods_list(),
        "averages": to_markdown(averages_table(rows, "main")),
        "claims": to_markdown(claim_table(rows)),
        "details": "\n\n".join(map(_folded, tables)),
        "published": "\n\n".join(map(_folded, published_tables(rows))),
        "coverage": to_markdown(coverage),
        "gaps": to_markdown(gap_table(rows)),
        "full-size": to_markdown(full_size_table(rows, results.rows("full"))),
        "duplicates": to_markdown(twin_table(experiment_rows(rows, "main"))),
    }


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
    holes = [
        f"{d} ({n} of {len(order)})" for d in planned if (n := sum((v, d) in measured for v in order)) < len(order)
    ]
    if holes:
        parts.append(f"Planned but not measured in full, with the variants that were: {', '.join(holes)}.")
    parts += [_folded(table) for table in experiment_tables(rows, name, order)[:2]]
    parts.append(to_markdown(coverage_table(chosen)))
    return "\n\n".join(parts)


def _measured(results: Results, name: str) -> str:
    """The tables of a measurement with a file of its own."""
    rows = results.measurement(name)
    tables = READERS.get(name, _plain)(rows) if rows else []
    return "\n\n".join(map(to_markdown, tables))


def _plain(rows: Sequence[Mapping[str, str]]) -> list[Table]:
    """A measurement's own file as a table, numbers with four digits."""
    return [plain_table("", list(rows[0]), [[_short(text) for text in row.values()] for row in rows])]


def _short(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    return text if value == int(value) or not np.isfinite(value) else f"{value:.4g}"


def _folded(table: Table) -> str:
    head, _, body = to_markdown(table).partition("\n\n")
    return f"<details><summary>{head.removeprefix('### ')}</summary>\n\n{body}\n\n</details>"
