"""Tables, ranks, tests and figures are a pure read of the rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptad.benchmark.figures import draw_all, sweep_figure
from ptad.benchmark.report import beside_published, coverage_table, experiment_tables, value_table, write_tables
from ptad.benchmark.statistics import compare, mean_ranks
from ptad.benchmark.summary import summarise
from ptad.benchmark.tables import BEST, Table, TableCell, latex_input, to_html, to_latex, to_markdown
from ptad.errors import DataError, SettingError

NAMES = ("breastw", "cardio", "glass", "pima", "wbc", "wine")


def row(method: str, dataset: str, scaling: str, value: float | None, seed: int = 0, **changes: Any) -> dict[str, Any]:
    made = {"experiment": "main", "variant": method, "method": method, "dataset": dataset, "seed": seed}
    made |= {"scaling": scaling, "status": "ok", "reason": "", "config_hash": "x"}
    made |= dict.fromkeys(("auc_pr", "auc_roc", "auc_pr_at_1", "auc_pr_at_5"), value)
    return made | changes


def grid() -> list[dict[str, Any]]:
    rows = []
    for i, name in enumerate(NAMES):
        for seed in (0, 1):
            rows.append(row("lof", name, "standard", 0.3 + 0.05 * i + 0.02 * seed, seed))
            rows.append(row("knn", name, "standard", 0.2, seed))
            rows.append(row("knn", name, "minmax", 0.5 + 0.05 * i + 0.02 * seed, seed))
            rows.append(row("ptad", name, "own", 0.6 + 0.05 * i + 0.02 * seed, seed))
    return rows


def test_better_scaling_counts_and_seeds_are_averaged() -> None:
    summary = summarise(grid(), "auc_pr")
    assert summary.scaling == {"lof": "standard", "knn": "minmax", "ptad": "own"}
    figure = summary.figures["knn", "breastw"]
    assert figure.mean == pytest.approx(0.51) and figure.std == pytest.approx(np.std([0.5, 0.52], ddof=1))
    assert figure.n_seeds == 2


def test_one_scaling_for_all_tables_and_metrics() -> None:
    rows = [row("knn", "wine", "minmax", 0.9), row("knn", "glass", "minmax", 0.1)]
    rows += [row("knn", "wine", "standard", 0.2), row("knn", "glass", "standard", 0.3)]
    summary = summarise(rows, "auc_roc")
    assert summary.scaling["knn"] == "minmax"
    assert summary.value("knn", "glass") == 0.1  # not the better of the two


def test_scalings_are_compared_on_splits_that_both_have() -> None:
    rows = [row("mcm", "wine", "standard", 0.5), row("mcm", "wine", "minmax", 0.6)]
    rows += [row("mcm", "wine", "minmax", 0.1, seed) for seed in (1, 2)]  # harder splits, minmax only
    assert summarise(rows, "auc_pr").scaling["mcm"] == "minmax"


def test_configurations_of_one_cell_are_not_averaged() -> None:
    rows = [
        row("knn", "wine", "own", 0.1, config_hash="a", finished_at="2026-01-02"),
        row("knn", "wine", "own", 0.9, config_hash="b", finished_at="2026-01-03"),
        row("knn", "wine", "own", 0.5, config_hash="c", finished_at="2026-01-01"),
        row("knn", "wine", "own", None, config_hash="d", finished_at="2026-01-04", status="failed"),
    ]
    figure = summarise(rows, "auc_pr").figures["knn", "wine"]
    assert figure.mean == 0.9 and figure.n_seeds == 1 and figure.lost == 0


def test_mean_ranks_share_ties() -> None:
    assert mean_ranks(np.array([[0.9, 0.5, 0.5], [0.1, 0.2, 0.3]])).tolist() == [2.0, 2.25, 1.75]


def test_averages_use_shared_tables_only_and_failures_show() -> None:
    rows = [*grid(), row("gmm", "wine", "own", 0.9), row("gmm", "pima", "own", None, status="timeout", reason="late")]
    rows.append(row("gmm", "wbc", "own", 0.4, status="capped", reason="few rows"))
    summary = summarise(rows, "auc_pr")
    assert summary.complete() == (["lof", "knn", "ptad"], list(NAMES))  # gmm has too few tables to shorten the list
    rows += [row("gmm", name, "own", 0.5) for name in ("breastw", "cardio", "glass")]
    summary = summarise(rows, "auc_pr")
    assert summary.complete()[1] == ["breastw", "cardio", "glass", "wbc", "wine"]
    text = to_markdown(value_table(summary))
    assert "timeout: late" in text and "capped: few rows" in text and "over the 5 tables" in text
    pima = next(line for line in text.splitlines() if line.startswith("| Pima"))
    assert "– [" in pima
    coverage = coverage_table(rows)
    gmm = next(cells for cells in coverage.rows if cells[0].text == "gmm")
    assert [cell.text for cell in gmm[1:]] == ["6", "4", "1", "0", "1", "0"]


def test_beside_published_marks_suspects() -> None:
    text = to_markdown(beside_published(summarise(grid(), "auc_pr")))
    pima = next(line for line in text.splitlines() if line.startswith("| Pima"))
    assert "/ 0.9772 [" in pima and "/ 0.7308" in pima
    assert "swapped" in text and "over 6 tables" in text


def test_compare_orders_by_rank_and_corrects() -> None:
    result = compare(summarise(grid(), "auc_pr"))
    assert result.methods == ["ptad", "knn", "lof"]
    assert result.ranks.tolist() == [1.0, 2.0, 3.0]
    assert result.friedman < 0.01
    # Six of six differences have the same sign: p = 2 / 2^6, times three pairs.
    assert result.p_values[0, 1] == pytest.approx(3 * 2 / 2**6)
    assert np.diag(result.p_values).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(DataError, match="at least two methods"):
        compare(summarise([row("knn", "wine", "own", 0.5)], "auc_pr"))


def test_renderings_escape() -> None:
    table = Table("50 % & more", ["a_b", "c|d"], [[TableCell("x<y"), TableCell("0.5 ± 0.1", BEST, (1,))]], ["n & m"])
    assert "c\\|d" in to_markdown(table) and "**0.5 ± 0.1** [1]" in to_markdown(table)
    latex = to_latex(table)
    assert r"50 \% \& more" in latex and r"a\_b" in latex and r"\textbf{0.5 $\pm$ 0.1}$^{1}$" in latex
    assert "x&lt;y" in to_html(table) and "<strong>0.5 ± 0.1</strong><sup>1</sup>" in to_html(table)


def test_latex_is_sound_whatever_the_texts_hold() -> None:
    """Every row has its columns, and no sign keeps a meaning that LaTeX would give it."""
    nasty = r"a_b & 5% #1 $x {y} \z ~t ^u <v> – ± ≥"
    table = Table(nasty, ["m", nasty, "c"], [[TableCell(nasty), TableCell("1", BEST, (1, 2)), TableCell("")]], [nasty])
    latex = latex_input([table])
    plain = latex.replace(r"\\", "")
    body = plain.split(r"\toprule")[1].split(r"\bottomrule")[0]
    lines = [line for line in body.splitlines() if "&" in line]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in lines] == [2, 2]
    assert not re.search(r"(?<!\\)#|(?<!\\)_|[~–±≥]", plain)
    assert len(re.findall(r"(?<!\\)\$", plain)) % 2 == 0
    assert len(re.findall(r"(?<!\\)\{", plain)) == len(re.findall(r"(?<!\\)\}", plain))
    assert r"\textbackslash{}z" in latex and latex.startswith(r"% \usepackage{booktabs,graphicx}")


def test_html_is_a_page(browser: Any, tmp_path: Path) -> None:
    paths = write_tables(experiment_tables(grid()), tmp_path)
    page = browser.new_page()
    page.set_default_timeout(600_000)  # only against hanging
    page.goto(paths[2].as_uri())
    assert page.title() == "Benchmark tables"
    assert page.evaluate("[document.characterSet, document.compatMode]") == ["UTF-8", "CSS1Compat"]
    assert page.locator("figure").count() == page.locator("table").count() == 9
    cells = page.locator("figure").first.locator("tbody tr").first.locator("th, td").all_inner_texts()
    assert cells == ["Breastw", "0.5100 ± 0.014", "0.3100 ± 0.014", "0.6100 ± 0.014"]
    assert page.locator("figure").first.locator("tbody strong").first.inner_text() == "0.6100 ± 0.014"


def test_notes_give_the_first_sentence_only() -> None:
    reason = "OutOfMemoryError: CUDA out of memory. Tried to allocate 62.51 GiB. Process 594 has 66.00 MiB in use."
    rows = [*grid(), row("gmm", "wine", "own", None, status="failed", reason=reason)]
    assert coverage_table(rows).notes == ["failed: OutOfMemoryError: CUDA out of memory"]


def test_all_tables_and_figures(tmp_path: Path) -> None:
    rows = grid()
    tables = experiment_tables(rows)
    assert tables[0].header == ["Data set", "knn", "lof", "ptad"]  # the registry's order
    for path in write_tables(tables, tmp_path):
        assert path.stat().st_size > 1000
    figures = draw_all(rows, tmp_path)
    assert sorted(path.name for path in figures) == sorted(
        f"{metric}_{kind}.png"
        for metric in ("auc_pr", "auc_roc")
        for kind in ("average", "rank", "critical_difference")
    )
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in figures)
    swept = [row(f"K = {k}", name, "own", 0.1 * k, experiment="counts") for k in (1, 2, 9) for name in NAMES[:2]]
    drawn = sweep_figure(swept, "K = ", "K")
    assert [label.get_text() for label in drawn.axes[0].get_xticklabels()] == ["1", "2", "9"]
    assert list(drawn.axes[0].lines[0].get_ydata()) == pytest.approx([0.1, 0.2, 0.9])
    assert (tmp_path / "counts_basis.png") in draw_all([*rows, *swept], tmp_path)
    with pytest.raises(DataError, match="no experiment 'ablation'"):
        experiment_tables(rows, "ablation")
    with pytest.raises(SettingError, match="png, svg or pdf"):
        draw_all(rows, tmp_path, "gif")
