"""Generated pages: only what lies between markers changes, and the figures are those of the results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ptad.benchmark.averages import averages_table, full_size_table, published_experiments
from ptad.benchmark.claims import CLAIMS, claim_table
from ptad.benchmark.experiments import EXPERIMENTS, READERS, variant_order
from ptad.benchmark.pages import NOT_YET, csv_table, update_page, update_pages
from ptad.benchmark.store import ResultStore
from ptad.errors import DataError

NAMES = ("breastw", "cardio", "glass", "pima", "wbc", "wine", "thyroid")


def row(method: str, dataset: str, value: float, experiment: str = "main", **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"experiment": experiment, "variant": method, "method": method, "dataset": dataset}
    made |= {"seed": 0, "scaling": "own", "status": "ok", "reason": "", "config_hash": "x", "finished_at": "2026-01-01"}
    made |= {"n_train": 10, "n_test": 20, "n_features": 3, "prevalence": 0.5, "twin_share": 0.25}
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


def test_averages_stand_beside_the_published_ones() -> None:
    table = averages_table(grid(), "main")
    knn, ptad = ([cell.text for cell in cells] for cells in table.rows)
    assert knn == ["knn", "own", "0.5300", "0.6761", "2.00", "0.5300", "0.8780", "2.00", "1"]
    assert ptad[:4] == ["ptad-paper", "own", "0.6600", "0.7513"]
    ablation = averages_table(grid(), "ablation", variant_order("ablation"))
    assert [cells[0].text for cells in ablation.rows] == ["nothing", "full"]
    assert [cells[3].text for cells in ablation.rows] == ["0.6381", "0.7513"]


def test_published_experiments_name_real_variants() -> None:
    for experiment, variant, dataset in published_experiments():
        assert variant in variant_order(experiment)
        assert dataset == "average" or dataset in EXPERIMENTS[experiment].datasets


def test_claims_name_real_variants_and_get_a_verdict() -> None:
    for claim in CLAIMS:
        if claim.experiment != "main":
            assert {claim.better, claim.worse} <= set(variant_order(claim.experiment)), claim
    found = {cells[0].text: [cell.text for cell in cells] for cells in claim_table(grid()).rows}
    assert found["PTAD beats knn"][3:] == ["+0.1300", "7", "7", "0.016", "holds"]
    assert found["the whole beats the bare net"][3:] == ["-0.1000", "7", "0", "0.016", "the opposite holds"]
    assert found["PTAD beats mcm"][-1] == "not measured"


def test_full_size_beside_capped() -> None:
    table = full_size_table(grid(), [row("knn", "wine", 0.9), row("knn", "fraud", 0.7)])
    texts = [[cell.text for cell in cells] for cells in table.rows]
    assert texts[0][5:7] == ["0.7000 / 0.7000", ""]
    assert texts[1][5:7] == ["0.9000 / 0.9000", "0.5500 / 0.5500"]


def test_only_blocks_change(tmp_path: Path) -> None:
    page = tmp_path / "p.md"
    page.write_text("# Mine\n<!-- begin a -->\nold\n<!-- end a -->\ntail\n", encoding="utf-8")
    update_page(page, {"a": "new", "b": "unused"})
    assert page.read_text(encoding="utf-8") == "# Mine\n<!-- begin a -->\nnew\n<!-- end a -->\ntail\n"
    update_page(page, {"a": "newer"})
    assert "newer" in page.read_text(encoding="utf-8")
    with pytest.raises(DataError, match=r"block 'a'.*Known: c"):
        update_page(page, {"c": ""})


def test_all_pages(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "main.csv")
    for one in grid():
        store.append(one)
    docs = tmp_path / "docs"
    (docs / "experiments").mkdir(parents=True)
    names = ("methods", "averages", "claims", "details", "published", "coverage", "full-size", "twins")
    text = "".join(f"<!-- begin {name} -->\n<!-- end {name} -->\n" for name in names)
    (docs / "benchmark.md").write_text(text, encoding="utf-8")
    for name in ("ablation", "context", "weights", "cost", "masks"):
        (docs / "experiments" / f"{name}.md").write_text("<!-- begin results -->\n<!-- end results -->\n", "utf-8")
    (tmp_path / "masks.csv").write_text("a,b\n1,0.123456\n", encoding="utf-8")
    (tmp_path / "context.csv").write_text("Variant,change\nbatch,0.31\n", encoding="utf-8")
    (tmp_path / "masks_soft.png").write_bytes(b"")
    plans = {name: (variant_order(name), (*NAMES, "census")) for name in EXPERIMENTS}
    written = update_pages(store.path, docs, plans, READERS)
    assert len(written) == 6
    assert "| batch | 0.31 |" in (docs / "experiments" / "context.md").read_text(encoding="utf-8")
    main = (docs / "benchmark.md").read_text(encoding="utf-8")
    assert "| ptad-paper | own | **0.6600** | 0.7513 |" in main
    for name in ("deepsvdd", "goad", "neutralad", "icl", "dte-c", "npt-ad", "mcm", "mcm-npt", "autoencoder"):
        assert re.search(rf"^\*\*{name}\*\*: .+\n\n- .+", main, re.MULTILINE), name
    assert "| Data set | knn | ptad-paper |" in main.split("ours / published")[1]
    assert main.count("<details>") == main.count("</details>") >= 4
    assert NOT_YET in (docs / "experiments" / "weights.md").read_text(encoding="utf-8")
    assert "| full |" in (docs / "experiments" / "ablation.md").read_text(encoding="utf-8")
    assert "wine (2 of 8), " in (docs / "experiments" / "ablation.md").read_text(encoding="utf-8")
    assert "census (0 of 8)." in (docs / "experiments" / "ablation.md").read_text(encoding="utf-8")
    masks = (docs / "experiments" / "masks.md").read_text(encoding="utf-8")
    assert "| 1 | 0.1235 |" in masks and "![masks, soft](../../masks_soft.png)" in masks


def test_csv_table(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("name,n,value\na,3,0.000012345\n", encoding="utf-8")
    table = csv_table(tmp_path / "x.csv")
    assert [cell.text for cell in table.rows[0]] == ["a", "3", "1.234e-05"]
