"""What the report says: counts, highest scores, reasons and labels, against the estimator's own answers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ptad import PTAD, DataError, SettingError
from ptad.report import ReportSettings, write_report


def embedded(page: Path) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"), re.S)
    assert found
    return json.loads(found.group(1))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_counts_and_rows_agree_with_the_estimator(model, model_folder, table, tmp_path, suffix):
    path, out = tmp_path / f"new.{suffix}", tmp_path / "report.html"
    if suffix == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    content = write_report(model_folder, path, out, ReportSettings(top=10))
    assert embedded(out) == json.loads(json.dumps(content))
    scores = model.anomaly_score(table)
    assert content["n_rows"] == 120
    assert content["n_flagged"] == int((model.predict(table) < 0).sum()) > 0
    order = np.argsort(-scores, kind="stable")[:10]
    assert [row["row"] for row in content["top"]["rows"]] == order.tolist()
    np.testing.assert_allclose([row["score"] for row in content["top"]["rows"]], scores[order], rtol=1e-8)
    np.testing.assert_allclose([row["p"] for row in content["top"]["rows"]], model.p_value(table)[order], rtol=1e-4)
    for row in content["top"]["rows"]:
        amounts = [cell["contribution"] for cell in row["cells"]]
        assert sum(amounts) + row["rest"] == pytest.approx(row["score"], rel=1e-3)
        assert sum(row["terms"].values()) == pytest.approx(row["score"], rel=1e-3)
        assert sum(cell["percentage"] for cell in row["cells"]) == pytest.approx(100.0, rel=1e-3)
    assert content["fitted"]["excluded"] == [["constant", "constant: 'Atlantis'"]]
    assert content["fitted"]["n_reference"] == len(model.detector_.reference)
    assert [name for name, _ in content["fitted"]["terms"]] == [term.title() for term in model.config_.terms]


def test_batches_do_not_change_the_report(model, table, monkeypatch, tmp_path):
    from ptad.report import writing

    table.to_csv(tmp_path / "new.csv", index=False)
    whole = write_report(model, tmp_path / "new.csv", tmp_path / "a.html")
    scan = writing.scan_table
    monkeypatch.setattr(writing, "scan_table", lambda *a, **k: scan(*a, **{**k, "batch_rows": 7}))
    pieces = write_report(model, tmp_path / "new.csv", tmp_path / "b.html")
    for key in ("n_rows", "n_flagged", "missing", "unseen", "scores", "top", "drift"):
        assert pieces[key] == whole[key]
    for a, b in zip(pieces["drivers"], whole["drivers"], strict=True):
        assert (a["name"], a["share"]) == (b["name"], pytest.approx(b["share"]))


def test_planted_cell_is_the_reason_and_is_quoted(model, table, tmp_path):
    content = write_report(model, table.drop(index=[3, 5]), tmp_path / "r.html", ReportSettings(top=1))
    first = content["top"]["rows"][0]["cells"][0]
    assert content["top"]["names"][first["column"]] == "length"
    assert first["observed"] == "90" and first["reason"].startswith("unusual")
    assert 0.0 < float(first["expected"]) < 40.0


def test_missing_values_and_unseen_categories_are_counted_and_are_reasons(model, table, tmp_path):
    table.loc[[2, 4], "width"] = None
    table.loc[4, "day"] = None
    content = write_report(model, table, tmp_path / "r.html", ReportSettings(top=120))
    assert content["missing"] == {"rows": 2, "n_columns": 2, "columns": [["width", 2], ["day", 1]]}
    assert content["unseen"] == {"rows": 1, "n_columns": 1, "columns": [["city", 1]]}
    main = {row["row"]: row["cells"][0] for row in content["top"]["rows"]}
    names = content["top"]["names"]
    assert (names[main[5]["column"]], main[5]["reason"], main[5]["observed"]) == (
        "city",
        "unseen category",
        "Neverland",
    )
    assert (names[main[2]["column"]], main[2]["reason"], main[2]["observed"]) == ("width", "missing", None)


def test_drivers_share_out_the_whole_score(model, table, tmp_path):
    drivers = write_report(model, table, tmp_path / "r.html")["drivers"]
    assert sum(driver["share"] for driver in drivers) == pytest.approx(1.0, abs=1e-6)
    assert sum(driver["first"] for driver in drivers) == int((model.predict(table) < 0).sum())


def test_slider_data_hold_exact_counts_and_rates(model, table, tmp_path):
    scores = write_report(model, table, tmp_path / "r.html")["scores"]
    threshold = scores["edges"][scores["threshold_index"]]
    assert threshold == pytest.approx(-model.offset_, rel=1e-8)
    assert len(scores["counts"]) == len(scores["edges"]) + 1
    assert sum(scores["counts"]) == 120
    mine = model.anomaly_score(table)
    for i in (0, scores["threshold_index"], len(scores["edges"]) - 1):
        # an edge keeps nine digits, scores have seven: the comparison is the page's own
        assert sum(scores["counts"][i + 1 :]) == int((mine > scores["edges"][i] * (1 + 1e-9)).sum())
    assert scores["rates"][scores["threshold_index"]] <= model.false_alarm_rate_
    assert all(a >= b for a, b in zip(scores["rates"], scores["rates"][1:], strict=False))


def test_labels_are_counted_and_kept_out_of_the_model(model, table, tmp_path):
    truth = np.zeros(len(table), dtype=int)
    truth[[3, 5, 7]] = 1
    settings = ReportSettings(label="truth", normal=("0",))
    content = write_report(model, table.assign(truth=truth), tmp_path / "r.html", settings)
    labelled = content["scores"]["labelled"]
    assert sum(labelled["counts"]) == 3
    assert content["ignored"] == []
    from sklearn.metrics import roc_auc_score

    assert labelled["auc"] == pytest.approx(roc_auc_score(truth, model.anomaly_score(table)), abs=0.01)
    assert content["top"]["rows"][0]["anomaly"] is True
    with pytest.raises(DataError, match="'absent'"):
        write_report(model, table, tmp_path / "r.html", ReportSettings(label="absent"))
    with pytest.raises(DataError, match=r"'truth'.*'good'"):
        write_report(
            model, table.assign(truth=truth), tmp_path / "r.html", ReportSettings(label="truth", normal=("good",))
        )


def test_a_column_that_never_varied_and_does_now_is_named(model, table, tmp_path):
    assert write_report(model, table, tmp_path / "r.html")["drift"]["constants"] == []
    changed = table.assign(constant=["Atlantis"] * 119 + ["Lemuria"])
    assert write_report(model, changed, tmp_path / "r.html")["drift"]["constants"] == [["constant", "Lemuria"]]
    hidden = write_report(model, changed, tmp_path / "r.html", ReportSettings(rows=False))
    assert hidden["drift"]["constants"] == [["constant", None]]


def test_a_column_of_which_nothing_can_be_read_is_noted_first(model, table, tmp_path):
    content = write_report(model, table.assign(width="wide"), tmp_path / "r.html")
    (note,) = content["notes"]
    n = f"{len(table):,}"
    assert note["text"] == (
        f"Column 'width' counts as missing in every row: none of its {n} values can be read as numbers. Write it as in "
        "the training table."
    )


def test_another_rate_leaves_the_model_alone(model, table, tmp_path):
    before = model.offset_
    strict = write_report(model, table, tmp_path / "a.html")
    loose = write_report(model, table, tmp_path / "b.html", ReportSettings(false_alarm_rate=0.2))
    assert loose["rate"] == 0.2
    assert loose["n_flagged"] > strict["n_flagged"]
    assert model.offset_ == before


def test_values_are_left_out_on_request(model, table, tmp_path):
    table.loc[7, "note"] = "secret-4711"
    write_report(model, table, tmp_path / "with.html")
    assert "secret-4711" in (tmp_path / "with.html").read_text("utf-8")
    write_report(model, table, tmp_path / "without.html", ReportSettings(rows=False))
    page = (tmp_path / "without.html").read_text("utf-8")
    for value in ("secret-4711", "Neverland", "Bonn", "Atlantis", "note 1"):
        assert value not in page


def test_unknown_columns_are_named_and_missing_ones_refused(model, table, tmp_path):
    content = write_report(model, table.assign(extra=1), tmp_path / "r.html")
    assert content["ignored"] == ["extra"]
    with pytest.raises(DataError, match="'width'"):
        write_report(model, table.drop(columns="width"), tmp_path / "r.html")


def test_nothing_is_left_behind_when_it_fails(model, table, tmp_path):
    out = tmp_path / "report.html"
    out.write_text("older")
    with pytest.raises(DataError):
        write_report(model, table.drop(columns="width"), out)
    assert out.read_text() == "older"
    with pytest.raises(DataError, match="cannot be written"):
        write_report(model, table, tmp_path / "absent" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_wrong_input_is_named(model, tmp_path):
    with pytest.raises(SettingError, match="Give top= a number from 1 to 1,000"):
        ReportSettings(top=0)
    with pytest.raises(DataError, match="ndarray"):
        write_report(model, np.zeros((3, 3)), tmp_path / "r.html")
    bare = PTAD(config={"calibration.method": "none"}, verbose=0).fit(pd.DataFrame({"a": range(15)}))
    with pytest.raises(SettingError, match="no threshold"):
        write_report(bare, pd.DataFrame({"a": [1, 2]}), tmp_path / "r.html")


def test_wide_tables_are_cut_and_say_so(monkeypatch, tmp_path):
    from ptad.report import content as module

    monkeypatch.setattr(module, "MOST_COLUMNS", 5)
    monkeypatch.setattr(module, "CELLS_PER_ROW", 3)
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 12)), columns=[f"c{i}" for i in range(12)])
    content = write_report(PTAD(verbose=0).fit(x), x, tmp_path / "r.html", ReportSettings(top=4))
    assert (len(content["drift"]["columns"]), content["drift"]["n_columns"]) == (5, 12)
    assert (len(content["fitted"]["columns"]), content["fitted"]["n_columns"]) == (5, 12)
    for row in content["top"]["rows"]:
        assert len(row["cells"]) == 3
        assert sum(cell["contribution"] for cell in row["cells"]) + row["rest"] == pytest.approx(row["score"], rel=1e-3)


def test_command_line_writes_the_page_and_counts_on_stderr(model_folder, table, tmp_path):
    from typer.testing import CliRunner

    from ptad.cli import app

    table.to_csv(tmp_path / "new.csv", index=False)
    arguments = [
        "report",
        str(model_folder),
        str(tmp_path / "new.csv"),
        "--out",
        str(tmp_path / "r.html"),
        "--top",
        "5",
    ]
    result = CliRunner().invoke(app, [*arguments, "--no-rows", "--false-alarm-rate", "0.05"])
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    content = embedded(tmp_path / "r.html")
    assert content["rate"] == 0.05
    assert content["values_shown"] is False
    assert len(content["top"]["rows"]) == 5
    assert f"{content['n_flagged']} of 120 rows" in result.stderr
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["n_rows"] == 120


def test_a_table_in_memory_with_cells_that_cannot_be_read(model: PTAD, table: pd.DataFrame, tmp_path: Path) -> None:
    bad = table.astype({"length": object})
    bad.loc[5, "length"] = "abc"
    content = write_report(model, bad, tmp_path / "r.html")
    assert content["bad"] == {"cells": 1, "columns": [["length", 1]]}
    row = next(row for row in content["top"]["rows"] if row["row"] == 5)
    assert row["place"] == "row 5 (counted from 0)" and row["number"] == 5
    assert content["top"]["counting"] == {"first": 0, "note": "rows are counted from 0"}
    assert "not a number: 'abc'" in [cell["reason"] for cell in row["cells"]]
    hidden = write_report(model, bad, tmp_path / "r.html", ReportSettings(rows=False))
    row = next(row for row in hidden["top"]["rows"] if row["row"] == 5)
    assert "not a number" in [cell["reason"] for cell in row["cells"]] and "abc" not in json.dumps(hidden)
    with pytest.raises(DataError, match=r"'length', row 5 \(counted from 0\): 'abc' is not a number"):
        write_report(model, bad, tmp_path / "r.html", strict=True)


def test_rows_are_numbered_as_in_their_file(model: PTAD, table: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    table[:60].to_csv(tmp_path / "parts" / "1.csv", index=False)
    table[60:].to_csv(tmp_path / "parts" / "2.csv", index=False)
    top = write_report(model, tmp_path / "parts" / "1.csv", tmp_path / "r.html")["top"]
    assert top["counting"] == {"first": 2, "note": "rows are numbered as in the file (the header is row 1)"}
    assert all(row["number"] == row["row"] + 2 and row["file"] is None for row in top["rows"])
    rows = write_report(model, tmp_path / "parts", tmp_path / "r.html", ReportSettings(top=120))["top"]["rows"]
    assert {(row["file"], row["number"]) for row in rows} >= {("1.csv", 2), ("1.csv", 61), ("2.csv", 2), ("2.csv", 61)}
    assert str(tmp_path) not in json.dumps(rows)
