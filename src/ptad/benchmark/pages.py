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

from ptad.benchmark.collections import catalogue
from ptad.benchmark.experiments import EXPERIMENTS, MEASUREMENTS, variant_order
from ptad.benchmark.figures import draw_all, save_critical_difference
from ptad.benchmark.headline import headline
from ptad.benchmark.leaderboard import leaderboard_page
from ptad.benchmark.markdown import folded, to_markdown
from ptad.benchmark.paper_tables import claim_table, duplicates_table, full_size_table, gap_table
from ptad.benchmark.peers import PEERS, make_peer
from ptad.benchmark.store import Results, ResultStore, Row
from ptad.benchmark.summary import METRICS, Summary, experiment_rows
from ptad.benchmark.tables import averages_table, coverage_table, experiment_tables, published_table
from ptad.errors import DataError

_MARK = re.compile(r"<!-- begin ([a-z-]+) -->\n.*?<!-- end \1 -->", re.DOTALL)
_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
NOT_YET = "*Not measured yet.*"
LEADERBOARD = "macro"


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
    return "\n\n".join(map(to_markdown, MEASUREMENTS[name].tables(rows))) if rows else ""
