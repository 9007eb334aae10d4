"""Generated pages: only what lies between markers changes, and the figures are those of the results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptad.benchmark.experiments import EXPERIMENTS, MEASUREMENTS, variant_order
from ptad.benchmark.experiments.default_parts import parts_page
from ptad.benchmark.experiments.paper_grid import PRESET, grid_page
from ptad.benchmark.pages import LEADERBOARDS, NOT_YET, experiment_block, fill, main_blocks, render_pages
from ptad.benchmark.paper_tables import claim_table, claims, full_size_table, gap_table
from ptad.benchmark.results import ResultsFile, ResultsFolder
from ptad.benchmark.tables import averages_table, published
from ptad.errors import DataError

ROOT = Path(__file__).parents[2]
NAMES = ("breastw", "cardio", "glass", "pima", "wbc", "wine", "thyroid")


def row(method: str, dataset: str, value: float, experiment: str = "main", **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"experiment": experiment, "variant": method, "method": method, "dataset": dataset}
    made |= {"seed": 0, "scaling": "own", "status": "ok", "reason": "", "config_hash": "x", "finished_at": "2026-01-01"}
    made |= {"n_train": 10, "n_test": 20, "n_features": 3, "prevalence": 0.5, "duplicate_share": 0.25}
    made |= {"fit_seconds": 1.0, "score_seconds": 2.0}
    made |= dict.fromkeys(("auc_pr", "auc_roc", "auc_pr_at_1", "auc_pr_at_5"), value)
    return made | changes


def grid() -> list[dict[str, Any]]:
    # Not in the order of the registry: rows come as parallel workers finish.
    rows = [row("ptad-paper", name, 0.6 + 0.02 * i) for i, name in enumerate(NAMES)]
    rows += [row("knn", name, 0.5 + 0.01 * i) for i, name in enumerate(NAMES)]
    rows += [row("full", name, 0.4, "ablation") for name in NAMES]
    rows += [row("nothing", name, 0.5, "ablation") for name in NAMES]
    return rows


def folder_of(folder: Path, rows: list[dict[str, Any]]) -> ResultsFolder:
    store = ResultsFile(folder / "paper.csv")
    for one in rows:
        store.append(one)
    return ResultsFolder(folder)


def test_averages_stand_beside_the_published_ones() -> None:
    table = averages_table(grid(), "main")
    knn, ptad = ([cell.strip("*") for cell in cells] for cells in table.rows)
    assert knn == ["knn", "own", "0.5300", "0.6761", "2.00", "0.5300", "0.8780", "2.00", "1"]
    assert ptad[:4] == ["ptad-paper", "own", "0.6600", "0.7513"]
    ablation = averages_table(grid(), "ablation", variant_order("ablation"))
    assert [cells[0] for cells in ablation.rows] == ["nothing", "full"]
    assert [cells[3] for cells in ablation.rows] == ["0.6381", "0.7513"]


def test_published_experiments_name_real_variants() -> None:
    found = [key for key in published() if key[0] != "main"]
    assert len(found) == 56
    for experiment, variant, dataset in found:
        assert variant in variant_order(experiment)
        assert dataset == "average" or dataset in EXPERIMENTS[experiment].datasets


def test_claims_name_real_variants_and_get_a_verdict() -> None:
    for _, experiment, better, worse in claims():
        if experiment != "main":
            assert {better, worse} <= set(variant_order(experiment)), (better, worse)
    found = {cells[0]: cells for cells in claim_table(grid()).rows}
    assert found["PTAD beats knn"][2:] == ["+0.0752", "+0.1300", 7, 7, "0.016", "holds"]
    assert found["the whole beats the bare net"][2:] == ["+0.1132", "-0.1000", 7, 0, "0.016", "the opposite holds"]
    assert found["PTAD beats MCM on four types of anomalies"][2] == "+0.0379" and found["masks help an MLP"][2] == ""
    assert found["PTAD beats mcm"][-1] == "not measured"


def test_full_size_beside_capped() -> None:
    table = full_size_table(grid(), [row("knn", "wine", 0.9), row("knn", "fraud", 0.7)])
    assert table.rows[0][5:7] == ["0.7000 / 0.7000", ""]
    assert table.rows[1][5:7] == ["0.9000 / 0.9000", "0.5500 / 0.5500"]


def test_only_blocks_change(tmp_path: Path) -> None:
    page = tmp_path / "p.md"
    page.write_text("# Mine\n<!-- begin a -->\nold\n<!-- end a -->\ntail\n", encoding="utf-8")
    assert fill(page, {"a": "new", "b": "unused"}) == "# Mine\n<!-- begin a -->\nnew\n<!-- end a -->\ntail\n"
    with pytest.raises(DataError, match=r"block 'a'.*Known: c"):
        fill(page, {"c": ""})
    page.write_text("nothing", encoding="utf-8")
    with pytest.raises(DataError, match="no block to write"):
        fill(page, {"a": ""})


def test_blocks_of_the_main_page(tmp_path: Path) -> None:
    main = main_blocks(folder_of(tmp_path, grid()))
    assert "| ptad-paper | own | **0.6600** | 0.7513 |" in main["averages"]
    for name in ("deepsvdd", "goad", "neutralad", "icl", "dte-c", "npt-ad", "mcm", "mcm-npt", "autoencoder"):
        assert re.search(rf"^\*\*{name}\*\*: .+\n\n- .+", main["methods"], re.MULTILINE), name
    assert "| Data set | knn | ptad-paper |" in main["published"].split("ours / published")[1]
    assert main["details"].count("<details>") == main["details"].count("</details>") == 4


def test_blocks_of_experiments(tmp_path: Path) -> None:
    results = folder_of(tmp_path, grid())
    (tmp_path / "masks.csv").write_text("a,b\n1,0.123456\n", encoding="utf-8")
    (tmp_path / "context.csv").write_text("Variant,change\nbatch,0.31\n", encoding="utf-8")
    (tmp_path / "masks_soft.png").write_bytes(b"")
    block = {
        name: experiment_block(results, tmp_path / "docs" / f"{name}.md")
        for name in ("ablation", "weights", "context", "masks", "default-parts", "paper-grid")
    }
    assert "| full |" in block["ablation"] and "wine (2 of 8), " not in block["ablation"].split("census (0 of 8)")[1]
    assert block["weights"] == block["default-parts"] == block["paper-grid"] == NOT_YET
    assert "| batch | 0.31 |" in block["context"]
    assert "| 1 | 0.1235 |" in block["masks"] and "![masks, soft](../masks_soft.png)" in block["masks"]


def test_rows_of_several_files_are_one_collection(tmp_path: Path) -> None:
    results = folder_of(tmp_path, grid()[:3])
    ResultsFile(tmp_path / "paper-gpu.csv").append(grid()[5])
    assert len(results.rows("paper")) == 4 and results.rows("macro") == []
    assert results.measurement("masks") == []


def test_default_parts_page(tmp_path: Path) -> None:
    order = variant_order("default-parts")
    rows = [row(v, name, 0.5 - 0.01 * (i == 1), "default-parts") for i, v in enumerate(order) for name in NAMES]
    text = parts_page(folder_of(tmp_path, rows))
    assert f"| {order[1]} | -0.0100 (-0.0100 to -0.0100) | -0.0100 (-0.0100 to -0.0100) |" in text
    assert f"| {order[2]} | +0.0000 (+0.0000 to +0.0000) |" in text and f"| {order[1]} | -0.0100 |" in text


def test_paper_grid_page_marks_what_was_picked_with_labels(tmp_path: Path) -> None:
    names = ("wine", "glass")
    figures = {PRESET: (0.3, 0.3), "steady": (0.5, 0.5), "for wine": (0.8, 0.1), "for glass": (0.1, 0.8)}
    rows = []
    for variant, values in figures.items():
        for name, value in zip(names, values, strict=True):
            for seed in (0, 1):
                rows.append(row(variant, name, value, "paper-grid", seed=seed, auc_pr=value + 0.02 * seed))
    text = grid_page(folder_of(tmp_path, rows))
    assert "preset 0.3100, best single setting (steady) 0.5100" in text
    assert "picked with test labels per table 0.8100, per table and seed 0.8100" in text
    printed = np.mean([published()["main", "ptad-paper", name].auc_pr for name in names])
    assert 0.51 < printed < 0.81 and "is enough to reach the printed mean" in text
    wine_line = next(line for line in text.splitlines() if line.startswith("| Wine"))
    assert "| 0.3100 / 0.3000 | 0.5100 / 0.5000 | 0.8100 / 0.8000 |" in wine_line


@pytest.fixture(scope="module")
def rendered() -> dict[Path, str]:
    return render_pages(ROOT / "benchmarks" / "results", ROOT / "docs", ROOT / "README.md")


def test_every_page_holds_what_the_results_say(rendered: dict[Path, str]) -> None:
    """Fails when results, code or pages change without ``make figures``."""
    stale = [str(path.relative_to(ROOT)) for path, text in rendered.items() if path.read_text("utf-8") != text]
    assert stale == []
    marked = {path for path in (ROOT / "docs").rglob("*.md") if "<!-- begin " in path.read_text("utf-8")}
    assert {*marked, ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in LEADERBOARDS)} == set(rendered)


def test_every_experiment_has_a_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "experiments").glob("*.md")} | {"typed-tables"}
    assert {*EXPERIMENTS, *MEASUREMENTS} == pages


def test_planned_cells_without_a_figure_are_listed() -> None:
    measured = [row("mcm", "wine", 0.5, seed=seed) for seed in (0, 1)]
    lost = row("mcm", "wine", 0.5, seed=2, status="failed", reason="out of memory. More.", scaling="minmax")
    found = {cells[:2]: cells[2] for cells in gap_table([*measured, lost]).rows}
    assert found["main", "Wine"].startswith("mcm (seed 2; failed: out of memory); dte-c (seed 0, 1, 2)")
    assert ("ablation", "Census") in found and "(seed 0)" in found["ablation", "Census"]
    again = row("mcm", "wine", 0.5, seed=2, scaling="standard")
    cells = next(cells for cells in gap_table([*measured, lost, again]).rows if cells[1] == "Wine")
    assert cells[2].startswith("dte-c (seed 0, 1, 2)")
