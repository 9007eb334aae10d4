"""Inference of date formats from all values, and their use on new tables."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ptad.errors import DataError, SettingError
from ptad.tables import BadCells, Schema, fit_schema, read_table
from ptad.tables.date_format import CLOCK, ISO, ISO_ZONED, parse_dates

DAYS = np.datetime64("2013-01-01") + np.random.default_rng(0).integers(0, 900, 80)
MOMENTS = [d.astype(object) for d in DAYS]


def table(cells, name="day"):
    return pa.table({name: cells, "g": np.arange(len(cells)) % 7 + 0.5})


def written(form):
    return [(dt.datetime(d.year, d.month, d.day, 8 + d.day % 9, 30)).strftime(form) for d in MOMENTS]


@pytest.mark.parametrize(
    ("form", "type_"),
    [
        ("%d/%m/%Y", "date"),
        ("%m/%d/%y", "date"),
        ("%d.%m.%Y %H:%M", "datetime"),
        ("%Y/%m/%d", "date"),
        ("%d-%b-%Y", "date"),
        ("%m/%d/%Y %I:%M %p", "datetime"),
        ("%Y%m%d", "date"),
        ("%d.%m.%Y, %H:%M:%S", "datetime"),
    ],
)
def test_date_formats_are_inferred_and_saved(form, type_):
    schema = fit_schema(table(written(form)))
    column = schema.columns[0]
    assert (column.type, column.formats) == (type_, (form,))
    assert any(form in note.text for note in schema.notes) and not any(note.doubtful for note in schema.notes)
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    new = table([dt.datetime(2014, 10, 5, 9, 30).strftime(form)])
    native = table(pa.array([dt.datetime(2014, 10, 5, 9, 30) if type_ == "datetime" else dt.date(2014, 10, 5)]))
    assert np.array_equal(again.encode(new), schema.encode(native))
    assert again.observed(new)["day"] == native["day"].to_pylist()


def test_iso_8601_is_read_with_and_without_a_format():
    zoned = fit_schema(table([f"2014-10-{d:02d}T08:30Z" for d in range(1, 29)]))
    assert zoned.columns[0].zoned and zoned.columns[0].formats == () and zoned.notes == ()
    local = fit_schema(table(written("%d/%m/%Y")))
    assert np.array_equal(local.encode(table(["2014-10-17"])), local.encode(table(["17/10/2014"])))


def test_pandas_reads_the_same_way():
    schema = fit_schema(pd.DataFrame({"day": written("%d/%m/%Y"), "g": np.arange(80) % 3}))
    assert schema.columns[0].formats == ("%d/%m/%Y",)


def test_one_value_decides_the_order_of_day_and_month():
    cells = ["01/02/2014", "03/04/2014", "05/06/2014"] * 10
    assert fit_schema(table([*cells, "12/31/2013"])).columns[0].formats == ("%m/%d/%Y",)
    assert fit_schema(table([*cells, "31/12/2013"])).columns[0].formats == ("%d/%m/%Y",)


def test_a_guess_is_a_note_with_the_option_to_change_it():
    cells = ["01/02/2014", "03/04/2014", "05/06/2014"] * 10
    schema = fit_schema(table(cells))
    (note,) = schema.notes
    assert note.doubtful and "read as %d/%m/%Y" in note.text and "types={'day': 'date:%m/%d/%Y'}" in str(note)
    chosen = fit_schema(table(cells), types={"day": "date:%m/%d/%Y"})
    assert chosen.notes == () and chosen.observed(table(["01/02/2014"]))["day"] == [dt.date(2014, 1, 2)]


def test_several_formats_in_a_column_are_named_and_all_read():
    schema = fit_schema(table([*written("%d/%m/%Y"), "17/10/2014 08:30", "2014-10-17"]))
    assert schema.columns[0].formats[0] == "%d/%m/%Y" and len(schema.columns[0].formats) == 3
    assert "3 formats, all read: %d/%m/%Y (80)" in schema.notes[0].text and schema.notes[0].doubtful
    # day first and month first contradict each other: nobody knows what 01/02/2014 is
    mixed = fit_schema(table([*written("%d/%m/%Y"), *written("%m/%d/%Y")]))
    assert "day" not in mixed.types or mixed.types["day"] in ("text", "categorical")
    assert "looks like dates" in mixed.notes[0].text and mixed.notes[0].doubtful


def test_eight_digits_are_days_only_if_name_or_values_say_so():
    rng = np.random.default_rng(0)
    some = [int(d.strftime("%Y%m%d")) for d in MOMENTS]
    assert fit_schema(table(some[:30], "order_date")).types["order_date"] == "date"
    assert fit_schema(table(some[:30], "orderDate")).types["orderDate"] == "date"
    assert fit_schema(table(some, "x")).types["x"] == "date"  # 80 different valid days are no chance
    gaps = fit_schema(pd.DataFrame({"day": [*some[:30], None], "g": np.arange(31) % 7}))  # floats, since there is a gap
    assert gaps.types["day"] == "date"
    assert gaps.observed(pd.DataFrame({"day": [20141017.0, None], "g": [1, 2]}))["day"] == [dt.date(2014, 10, 17), None]
    assert fit_schema(table(some[:30], "x"), types={"x": "numeric"}).types["x"] == "numeric"
    numbers = {
        "few of unknown meaning": ("x", some[:30]),
        "running numbers": ("date_id", list(range(20140101, 20140181))),
        "amounts": ("update", rng.integers(19_000_000, 21_000_000, 80).tolist()),
        "amounts in a range of dates": ("data", rng.integers(20_140_101, 20_150_101, 80).tolist()),
        "another range": ("date", [30140101, 30140102] * 40),
        "unlike days": ("date", [20140101, 20140132] * 40),
    }
    for name, values in numbers.values():
        doubled = pa.table({name: [*values, values[0]], "g": np.arange(len(values) + 1) % 7})
        assert fit_schema(doubled).types[name] == "numeric", name


def test_days_as_numbers_in_files(tmp_path):
    lines = "".join(f"{d:%Y%m%d},{i % 7}\n" for i, d in enumerate(MOMENTS))
    (tmp_path / "t.csv").write_text("day,g\n" + lines)
    schema = fit_schema(read_table(tmp_path / "t.csv"))
    assert schema.types["day"] == "date"
    (tmp_path / "new.csv").write_text("day,g\n20141017,1\n")
    (tmp_path / "new.jsonl").write_text('{"day": 20141017, "g": 1}\n')
    expected = schema.encode(pa.table({"day": [dt.date(2014, 10, 17)], "g": [1]}))
    for name in ("new.csv", "new.jsonl"):
        assert np.array_equal(schema.encode(read_table(tmp_path / name, schema=schema)), expected), name


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("date:%d/%m", "needs day, month and year"),
        ("date:%d/%m/%Q", "holds %Q, which is not known"),
        ("date:%d/%m/%Y %d", "names a part twice"),
        ("numeric:%d", "only date and datetime take a format"),
        ("day", "cannot be of type 'day'"),
    ],
)
def test_wrong_formats_are_an_error(chosen, message):
    with pytest.raises(SettingError, match=message):
        fit_schema(table(written("%d/%m/%Y")), types={"day": chosen})


def test_error_about_a_cell_in_another_format_has_an_example():
    schema = fit_schema(table(written("%d/%m/%Y")))
    for cell in ("10/17/2014", "31/02/2014", "soon"):
        with pytest.raises(DataError, match=f"'day'.*'{cell}' is not a date, such as 31/01/2024"):
            schema.encode(table(["17/10/2014", cell]), BadCells(strict=True))


def test_parts_of_a_moment():
    cells = pa.array(["17.10.2014 12:05:01.25 AM +02:00", "29.02.2013 01:00:00.0 PM Z", None, "x"], pa.large_string())
    found = parse_dates(cells, "%d.%m.%Y %I:%M:%S.%f %p %z")
    assert found.type == pa.timestamp("us", "UTC")
    assert found.to_pylist()[0] == dt.datetime(2014, 10, 16, 22, 5, 1, 250_000, dt.UTC) and found.null_count == 3
    years = parse_dates(pa.array(["1/2/68", "1/2/69"], pa.large_string()), "%d/%m/%y").to_pylist()
    assert [y.year for y in years] == [2068, 1969]


@pytest.mark.parametrize(
    ("form", "good", "wrong"),
    [
        (ISO, {"2024-02-29": 0.0, "2024-02-29 23:59:59.5": 86399.5, "2024-02-29T12:30": 45000.0}, "2024-02-30"),
        (ISO_ZONED, {"2024-02-29T02:00+02": 0.0, "2024-02-28 23:30-0030": 0.0}, "2024-02-29T10:00+25:00"),
        (CLOCK, {"12:30": 45000.0, "00:00:01.25": 1.25}, "24:00"),
    ],
)
def test_optional_parts_of_dates(form, good, wrong):
    """Alone, and beside a cell that no calendar has: then every cell is taken apart."""
    start = 0 if form == CLOCK else dt.datetime(2024, 2, 29, tzinfo=dt.UTC).timestamp()
    for more in ([], [wrong]):
        read = parse_dates(pa.array([*good, None, *more], pa.large_string()), form)
        found = [None if v is None else v / 1e6 - start for v in read.cast(pa.int64()).to_pylist()]
        assert found == [*good.values(), None, *(None for _ in more)]
