"""``ptad report``: what it writes, and what it says on the way."""

import json

from ptad.tables import write_table


def test_a_report_with_scores_over_time(ptad, model, make_table, tmp_path):
    table = make_table(160, 1)
    days = [f"2024-{1 + i // 40:02d}-{1 + i % 28:02d}" for i in range(160)]
    write_table(table.append_column("when", [days]), tmp_path / "new.csv")
    result = ptad(
        "report", model, tmp_path / "new.csv", "-o", tmp_path / "r.html", "--time", "when", "--json", "--quiet"
    )
    assert result.exit_code == 0 and (tmp_path / "r.html").exists()
    over = json.loads(result.stdout)["over_time"]
    assert over["column"] == "when" and over["period"] == "month" and len(over["buckets"]) == 4


def test_a_wrong_time_column_ends_with_2_and_writes_nothing(ptad, model, table, tmp_path):
    result = ptad("report", model, table, "-o", tmp_path / "r.html", "--time", "nope", "--quiet")
    assert result.exit_code == 2 and "no time column 'nope'" in result.stderr
    assert not (tmp_path / "r.html").exists()


def test_a_folder_is_refused_before_any_row_is_read(ptad, model, tmp_path):
    result = ptad("report", model, tmp_path / "no-such-table.csv", "-o", tmp_path)
    assert result.exit_code == 2 and result.stderr == f"error: {tmp_path} is a folder. Name a file to write to.\n"


def test_the_training_table_is_said_to_be_it(ptad, model, table, tmp_path, tiny):
    folder, training = tmp_path / "model", tmp_path / "training.csv"
    training.write_bytes(table.read_bytes())
    assert ptad("fit", training, "--out", folder, "--drop", "status", *tiny, "--quiet").exit_code == 0
    result = ptad("report", folder, training, "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr
    assert "note: Held-out scores of the training rows" in result.stderr
    assert "rows flagged; report in" in result.stderr
