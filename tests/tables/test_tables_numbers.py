"""Number formats: the columns of a table decide together, and a guess is reported."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from messy_table import MARKERS, german, messy_table
from ptad import PTAD
from ptad.errors import DataError, SettingError
from ptad.tables import BadCells, Schema, TableSource, fit_schema, read_table

RNG = np.random.default_rng(0)
PRICES = np.round(RNG.uniform(0, 5000, 60), 2)
LARGE = RNG.integers(1000, 9_000_000, 60).astype(float)


def fitted(**columns):
    return fit_schema(pa.table(columns))


def text(values, digits):
    return [german(v, digits) for v in values]


def test_a_messy_file_is_read(tmp_path):
    made = messy_table(200)
    table = read_table(made.write(tmp_path / "t.csv"), missing=MARKERS)
    schema = fit_schema(table)
    assert schema.types == {
        "Datum": "date",
        "Erfasst": "datetime",
        "Tag": "date",
        "Menge": "numeric",
        "Betrag": "numeric",
        "Gewicht": "numeric",
        "Filiale": "categorical",
        "Status": "categorical",
    }
    (note,) = (n for n in schema.notes if "decimal" in n.text)
    assert "decimal comma and a thousands point, such as 1.234,56: Menge, Betrag, Gewicht" in note.text
    seen = schema.observed(table)
    assert seen["Menge"] == made.quantity.tolist() and seen["Gewicht"] == made.weight.tolist()
    gaps = {row for row, column in made.missing if column == "Betrag"}
    assert [v for i, v in enumerate(seen["Betrag"]) if i not in gaps] == np.delete(made.amount, list(gaps)).tolist()
    assert {i for i, v in enumerate(seen["Betrag"]) if v is None} == gaps
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    new = read_table(messy_table(50, seed=1).write(tmp_path / "new.csv"), missing=MARKERS, schema=again)
    assert again.observed(new)["Menge"] == messy_table(50, seed=1).quantity.tolist()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_in_memory_are_read_the_same_way(make):
    model = PTAD(config={"calibration.most_folds": 5}, verbose=0).fit(make({"p": text(PRICES, 2), "q": text(LARGE, 0)}))
    assert model.schema_.types == {"p": "numeric", "q": "numeric"}
    plain = pd.DataFrame({"p": PRICES[:5], "q": LARGE[:5]})
    assert np.array_equal(
        model.anomaly_score(make({"p": text(PRICES[:5], 2), "q": text(LARGE[:5], 0)})), model.anomaly_score(plain)
    )


def test_other_columns_decide_about_an_ambiguous_column():
    grouped = [f"{v:,.0f}" for v in RNG.integers(1000, 999_000, 60)]  # 1,234
    comma = fitted(x=grouped, y=text(PRICES, 2))
    assert comma.observed(pa.table({"x": ["1,234"], "y": ["0,5"]})) == {"x": [1.234], "y": [0.5]}
    point = fitted(x=grouped, y=[f"{v:,.2f}" for v in PRICES])
    assert point.observed(pa.table({"x": ["1,234"], "y": ["1,234.5"]})) == {"x": [1234], "y": [1234.5]}
    assert not any(note.doubtful for schema in (comma, point) for note in schema.notes)


def test_a_guess_is_a_note_with_the_option_to_change_it(tmp_path):
    grouped = [f"{v:,.0f}" for v in RNG.integers(1000, 999_000, 60)]
    schema = fitted(x=grouped, y=["a", "b"] * 30)
    (note,) = schema.notes
    assert note.doubtful and "read as a thousands comma" in note.text and "decimal=','" in str(note)
    assert fit_schema(pa.table({"x": grouped, "y": ["a", "b"] * 30}), decimal=",").notes == ()
    # semicolons come from where the comma is the decimal sign
    (tmp_path / "t.csv").write_text("x;y\n" + "".join(f"{v};{i % 3}\n" for i, v in enumerate(grouped)))
    (note,) = fit_schema(read_table(tmp_path / "t.csv")).notes
    assert note.doubtful and "read as a decimal comma" in note.text and "decimal='.'" in str(note)


def test_points_are_thousands_only_in_a_table_with_decimal_commas(tmp_path):
    lines = [f"{a};{b}\n" for a, b in zip(text(LARGE, 0), text(PRICES, 2), strict=True)]
    (tmp_path / "t.csv").write_text("q;p\n" + "".join(lines))
    table = read_table(tmp_path / "t.csv")
    assert fit_schema(table).observed(table)["q"] == LARGE.tolist()
    short = [f"{v / 1000:.3f};x{i % 3}\n" for i, v in enumerate(RNG.integers(1000, 99_000, 60))]
    (tmp_path / "plain.csv").write_text("q;p\n" + "".join(short))
    assert read_table(tmp_path / "plain.csv")["q"].type == pa.float64()
    wanted = TableSource(tmp_path / "plain.csv", thousands=".")
    assert fit_schema(read_table(wanted), thousands=".").observed(read_table(wanted))["q"][0] >= 1000


def test_contradicting_signs_are_a_note():
    schema = fitted(a=text(PRICES, 2), b=[f"{v:,.2f}" for v in PRICES])
    assert schema.observed(pa.table({"a": ["1,5"], "b": ["1.5"]})) == {"a": [1.5], "b": [1.5]}
    assert all(note.doubtful for note in schema.notes) and len(schema.notes) == 2
    (note,) = fitted(a=text(PRICES, 2), b=text(PRICES / 1000, 2), c=PRICES).notes  # numbers that another reader made
    assert note.doubtful and note.text.endswith("such as 1.234,56: a, b; but c has a decimal point")


def test_other_values_stay_text():
    columns = {
        "phone": [f"555 {i:03d} 123" for i in range(60)],
        "version": [f"1.{i % 5}.{i % 7}" for i in range(60)],
        "code": [f"0{i % 9},5" for i in range(60)],
        "list": [f"{i % 3},{i % 4},{i % 2}" for i in range(60)],
    }
    schema = fitted(**columns, n=PRICES)
    assert {schema.types.get(name, "excluded") for name in columns} <= {"text", "categorical", "excluded"}
    assert schema.notes == ()


@pytest.mark.parametrize(("decimal", "thousands"), [(",", " "), (".", "'"), (",", "\u00a0"), (",", "")])
def test_other_thousands_signs(decimal, thousands):
    signs = str.maketrans({",": thousands, ".": decimal})
    values = np.round(RNG.uniform(0.1, 90_000, 60), 2)
    schema = fitted(x=[f"{v:,.2f}".translate(signs) for v in values])
    assert schema.observed(pa.table({"x": [f"{1234.5:,.2f}".translate(signs)]}))["x"] == [1234.5]


@pytest.mark.parametrize(
    ("cells", "large", "value"),
    [
        (text(PRICES / 10, 2), "98.765,43", 98765.43),
        ([f"{v:.2f}" for v in PRICES / 10], "98,765.43", 98765.43),
        ([f"{i},00" for i in range(60)], "-1 234.567,00", None),
        ([f"{i},00" for i in range(60)], "-1.234.567,00", -1234567),
        ([f"{v:.2f}" for v in PRICES / 10], "98,765", None),  # it may mean 98.765
    ],
)
def test_a_thousands_sign_that_no_training_value_had(cells, large, value):
    schema = fitted(x=cells)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if value is not None else "ignore")
        encoded = schema.encode(pa.table({"x": [cells[0], large]}))
    assert np.array_equal(encoded[1], [np.nan if value is None else value], equal_nan=True)
    assert schema.observed(pa.table({"x": [large]})) == {"x": [value]}


def test_few_values_with_a_thousands_sign_decide():
    cells = [f"{i},25" for i in range(97)] + ["1.234", "2.345", "12.345,50"]
    schema = fitted(x=cells)
    assert schema.observed(pa.table({"x": cells}))["x"][97:] == [1234, 2345, 12345.5]


def test_options_override_the_signs_of_a_model(tmp_path):
    schema = fitted(p=text(PRICES, 2), q=text(LARGE, 0))
    plain = schema.with_signs(".", "")
    assert plain.formatted == () and schema.formatted == ("p", "q")
    assert plain.observed(pa.table({"p": ["1.5"], "q": ["1234"]})) == {"p": [1.5], "q": [1234]}
    back = fitted(p=PRICES, q=LARGE).with_signs(",")
    (tmp_path / "t.csv").write_text("p;q\n0,5;1,5\n")
    assert back.encode(read_table(tmp_path / "t.csv", schema=back)).tolist() == [[0.5, 1.5]]
    assert schema.with_signs(thousands=",").columns[0].form.decimal == "."


def test_a_cell_with_other_signs_is_an_error(caplog, tmp_path):
    strict = BadCells(strict=True)
    with pytest.raises(DataError, match=r"'0.5' is not a number, such as 1.234,56"):
        fitted(p=text(PRICES, 2), q=text(LARGE, 0)).encode(pa.table({"p": ["0.5"], "q": ["1.000"]}), strict)
    schema = fitted(p=PRICES, q=LARGE)
    (tmp_path / "t.csv").write_text("p;q\n0,5;1,5\n")
    read_table(tmp_path / "t.csv", schema=schema)
    assert "'p', 'q' have a decimal comma" in caplog.text and "decimal=','" in caplog.text


@pytest.mark.parametrize(
    ("signs", "message"),
    [({"decimal": ";"}, "decimal sign cannot be ';'"), ({"decimal": ",", "thousands": ","}, "both ','")],
)
def test_wrong_signs_are_an_error(signs, message):
    with pytest.raises(SettingError, match=message):
        fit_schema(pa.table({"a": [1, 2]}), **signs)
    with pytest.raises(SettingError, match=message):
        PTAD(**signs).fit(np.eye(5))


def test_a_column_with_many_words_among_numbers_with_a_comma():
    cells = [f"{i},25" for i in range(90)] + ["k.A."] * 10
    table = pa.table({"b": cells, "c": [i / 4 for i in range(100)]})
    (note,) = fit_schema(table).notes
    assert "10 % of its values ('k.A.') are not numbers" in note.text and "types={'b': 'numeric'}" in str(note.message)
    for more in ({}, {"decimal": ","}):
        with pytest.warns(UserWarning, match="10 cells cannot be read"):
            encoded = fit_schema(table, types={"b": "numeric"}, **more).encode(table)
        assert encoded[:3, 0].tolist() == [0.25, 1.25, 2.25] and np.isnan(encoded[90:, 0]).all()
