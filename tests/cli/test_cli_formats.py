"""Tables as people send them, through the commands: local dates, decimal commas, workbooks."""

import csv
import json

import numpy as np
import pytest

from messy_table import MARKERS, messy_table
from ptad import PTAD
from ptad.tables import read_table
from workbooks import write_xlsx

MISSING = [word for marker in MARKERS for word in ("--missing", marker)]


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A folder with normal.csv, new.csv and the same new rows written as in programs."""
    folder = tmp_path_factory.mktemp("messy")
    messy_table(300).write(folder / "normal.csv")
    new = messy_table(60, seed=1, n_unseen=3)
    new.write(folder / "new.csv")
    with (folder / "new.csv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    for row, day, quantity, amount, weight in zip(rows, new.days, new.quantity, new.amount, new.weight, strict=True):
        moment = f"{day}T{row['Erfasst'].split()[1]}"
        plain = {"Datum": str(day), "Erfasst": moment, "Menge": quantity, "Betrag": amount, "Gewicht": weight}
        row |= {name: value for name, value in plain.items() if row[name] not in MARKERS}
    with (folder / "plain.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return folder


@pytest.fixture(scope="module")
def fitted(messy, tiny):
    from typer.testing import CliRunner

    from ptad.cli import app

    args = ["fit", messy / "normal.csv", "--out", messy / "model", *MISSING, *tiny, "--json"]
    result = CliRunner().invoke(app, [*map(str, args)])
    assert result.exit_code == 0, result.stderr
    return result


def scores(path):
    return read_table(path)["score"].to_numpy()


def test_a_messy_file_is_fitted_as_what_it_is_and_says_how(fitted):
    summary = json.loads(fitted.stdout)
    assert summary["columns_by_type"] == {"numeric": 3, "date": 2, "categorical": 2, "datetime": 1}
    for text in ("decimal comma and a thousands point", "'Datum' is read as dates in the format %d.%m.%Y"):
        assert text in fitted.stderr and any(text in note["text"] for note in summary["notes"])


def test_new_tables_are_read_with_the_signs_and_formats_of_the_model(ptad, messy, fitted):
    done = ptad("score", messy / "model", messy / "new.csv", "--out", messy / "s.csv")
    assert done.exit_code == 0, done.stderr
    with (messy / "s.csv").open(newline="") as file, (messy / "new.csv").open(newline="") as before:
        kept, sent = next(csv.DictReader(file)), next(csv.DictReader(before, delimiter=";"))
    assert {name: kept[name] for name in sent} == sent  # cells come back as they were
    done = ptad(
        "score", messy / "model", messy / "plain.csv", "--out", messy / "p.csv", "--decimal", ".", "--thousands", ""
    )
    assert done.exit_code == 0, done.stderr
    assert np.array_equal(scores(messy / "s.csv"), scores(messy / "p.csv"))


def test_every_command_takes_the_signs(ptad, messy, fitted, tmp_path):
    signs = ["--decimal", ".", "--thousands", ""]
    plain, model = messy / "plain.csv", messy / "model"
    found = ptad("explain", model, plain, "--top", "1", "--json", *signs)
    assert found.exit_code == 0 and json.loads(found.stdout)[0]["columns"][0]["column"] == "Filiale"
    assert ptad("report", model, plain, "--out", tmp_path / "r.html", *signs).exit_code == 0
    shown = ptad("evaluate", model, plain, "--label", "Filiale", "--anomaly", "Paris", "--json", *signs)
    assert shown.exit_code == 0 and json.loads(shown.stdout)["auc_roc"] > 0.9
    for command in ("update", "recalibrate"):
        done = ptad(command, model, plain, "--out", tmp_path / command, "--false-alarm-rate", "0.1", "-q", *signs)
        assert done.exit_code == 0, done.stderr
        assert PTAD.load(tmp_path / command).schema_.formatted == PTAD.load(model).schema_.formatted  # signs are kept


def test_without_the_sign_the_warning_names_the_option(ptad, table, model, tmp_path):
    rows = read_table(table).slice(0, 5).to_pylist()
    lines = [";".join(str(v).replace(".", ",") for v in row.values()) for row in rows]
    (tmp_path / "t.csv").write_text("\n".join([";".join(rows[0]), *lines, ""]))
    warned = ptad("score", model, tmp_path / "t.csv", "--out", tmp_path / "s.csv")
    assert "numbers of 'a', 'b' have a decimal comma" in warned.stderr and "--decimal ," in warned.stderr
    done = ptad("score", model, tmp_path / "t.csv", "--out", tmp_path / "s.csv", "--decimal", ",")
    assert done.exit_code == 0, done.stderr
    assert np.array_equal(scores(tmp_path / "s.csv"), PTAD.load(model).anomaly_score(read_table(table).slice(0, 5)))


def test_workbooks(ptad, make_table, tiny, tmp_path):
    rows = make_table(160)
    cells = [rows.column_names, *map(list, zip(*rows.to_pydict().values(), strict=True))]
    book = write_xlsx(tmp_path / "t.xlsx", {"notes": [["a"], [1]], "data": cells})
    args = ("--label", "status", "--normal", "ok")
    done = ptad("fit", book, "--sheet", "data", "--out", tmp_path / "model", *args, *tiny, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["columns_by_type"] == {"numeric": 3, "categorical": 1}
    done = ptad("score", tmp_path / "model", book, "--sheet", "2", "--out", tmp_path / "s.parquet")
    assert done.exit_code == 0, done.stderr
    assert np.array_equal(scores(tmp_path / "s.parquet"), PTAD.load(tmp_path / "model").anomaly_score(rows))
    assert ptad("evaluate", tmp_path / "model", book, "--sheet", "data", *args).exit_code == 0
    wrong = ptad("score", tmp_path / "model", book, "--sheet", "x", "--out", tmp_path / "o.csv")
    assert wrong.exit_code == 2 and "has no sheet 'x'. Its sheets are: 1 'notes', 2 'data'" in wrong.stderr
    wrong = ptad("score", tmp_path / "model", book, "--sheet", "2", "--out", tmp_path / "o.xlsx")
    assert wrong.exit_code == 2 and "names no format that can be written" in wrong.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--type", "a=date:%d/%m"], "needs day, month and year"),
        (["--kind", "a=number"], "There is no option --kind. The type of a column is set with --type"),
        (["--type", "a=number"], "cannot be of type 'number'. Choose one of: numeric"),
        (["--decimal", "x"], "decimal sign cannot be 'x'"),
        (["--decimal", ",", "--thousands", ","], "both ','"),
        (["--sheet", "1"], "is not a workbook and has no sheets. Leave out --sheet."),
    ],
)
def test_wrong_wishes(ptad, table, tmp_path, args, message):
    done = ptad("fit", table, "--out", tmp_path / "m", *args)
    assert done.exit_code == 2 and message in done.stderr and not (tmp_path / "m").exists()
