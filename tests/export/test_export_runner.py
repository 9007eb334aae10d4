"""The runner encodes, scores and flags as the model does, where neither torch nor ptad can be imported."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ptad import PTAD
from ptad.export import runner as runner_module
from ptad.export.runner import Runner, RunnerError
from ptad.tables import fit_schema
from ptad.tables.delimited import NULL_WORDS
from ptad.tables.number_format import NUMBER_TEXT
from ptad.tables.values import FALSE_TEXT, TRUE_TEXT
from stopping import HANG

Exported = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def runner(exported: Exported) -> Runner:
    return Runner(exported[0])


def test_scores_flags_and_p_values_are_the_model_s(runner: Runner, mixed_model: PTAD, new_rows: pd.DataFrame) -> None:
    scored = runner.score(new_rows)
    np.testing.assert_array_equal(runner.encode(new_rows), mixed_model.schema_.encode(new_rows))
    np.testing.assert_allclose(scored.score, mixed_model.anomaly_score(new_rows), rtol=1e-6)
    np.testing.assert_allclose(scored.p_value, mixed_model.p_value(new_rows))
    np.testing.assert_array_equal(scored.anomaly, mixed_model.predict(new_rows) == -1)
    assert scored.anomaly is not None and scored.anomaly[[3, 8]].all() and not scored.anomaly.all()
    for name, term in mixed_model.term_scores(new_rows).items():
        np.testing.assert_allclose(scored.terms[name], term, rtol=1e-6, atol=1e-6)
    assert list(scored.contributions) == list(mixed_model.schema_.names)
    np.testing.assert_allclose(sum(scored.contributions.values()), scored.score, rtol=1e-6)


def test_contributions_and_reasons_are_the_model_s(runner: Runner, mixed_model: PTAD, new_rows: pd.DataFrame) -> None:
    scored, explained = runner.score(new_rows), mixed_model.explain(new_rows)
    scale = np.abs(explained.score).max()
    for name in explained.names:
        expected = explained.contributions[name].to_numpy()
        np.testing.assert_allclose(scored.contributions[name], expected, rtol=1e-6, atol=1e-6 * scale)
        telling = expected > 1e-6 * scale
        assert scored.reasons[name][telling].tolist() == explained.reasons[name][telling].tolist()
    assert scored.reasons["mode"][5] == "unseen category"
    assert scored.reasons["load"][11] == "missing"
    assert any(
        reason.startswith("unusual combination with ") for column in scored.reasons.values() for reason in column
    )


def test_every_library_gives_the_same_rows(runner: Runner, new_rows: pd.DataFrame) -> None:
    expected = runner.encode(new_rows)
    records = {name: [None if pd.isna(v) else v for v in new_rows[name]] for name in new_rows}
    for table in (records, pl.DataFrame(records), pa.table(records), new_rows.convert_dtypes(), new_rows[::-1][::-1]):
        np.testing.assert_array_equal(runner.encode(table), expected)


def test_needs_neither_torch_nor_ptad(
    exported: Exported, mixed_model: PTAD, new_rows: pd.DataFrame, tmp_path: Path
) -> None:
    shutil.copy(str(runner_module.__file__), tmp_path / "runner.py")
    new_rows.to_csv(tmp_path / "new.csv", index=False)
    program = "import sys; sys.modules['torch'] = sys.modules['ptad'] = sys.modules['pandas'] = None\n"
    program += "import runner; runner.main(sys.argv[1:])"
    command = [sys.executable, "-c", program, str(exported[0]), "new.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    np.testing.assert_allclose([float(r["score"]) for r in rows], mixed_model.anomaly_score(new_rows), rtol=1e-6)
    np.testing.assert_allclose([float(r["p_value"]) for r in rows], mixed_model.p_value(new_rows))
    assert [r["anomaly"] == "True" for r in rows] == (mixed_model.predict(new_rows) == -1).tolist()


def test_the_command_ends_with_one_line_and_2(exported: Exported, tmp_path: Path, capsys: Any) -> None:
    model, empty, text = str(exported[0]), tmp_path / "empty.csv", tmp_path / "text.csv"
    empty.write_text("")
    text.write_text("speed,load\nfast,1\n")
    for given, message in [
        ([model, "none.csv"], "none.csv"),
        ([model, str(empty)], "has no rows"),
        ([model, str(text)], "error: "),
        ([str(text), str(text)], "cannot be read as an ONNX file"),
    ]:
        with pytest.raises(SystemExit) as left:
            runner_module.main(given)
        said = capsys.readouterr()
        assert left.value.code == 2 and said.out == "" and message in said.err and said.err.count("\n") == 1
    with pytest.raises(SystemExit, match="usage: "):
        runner_module.main([model])


def test_encoded_rows_of_another_width_are_refused(runner: Runner) -> None:
    with pytest.raises(RunnerError, match=r"shape \(1 or more, 6\). Got \(2, 3\)"):
        runner.run(np.zeros((2, 3)))


def test_metadata_holds_schema_threshold_and_versions(runner: Runner, mixed_model: PTAD) -> None:
    assert runner.schema == json.loads(json.dumps(mixed_model.schema_.to_json()))
    assert runner.threshold == -mixed_model.offset_
    assert runner.false_alarm_rate == mixed_model.false_alarm_rate_
    assert {"ptad_version", "torch_version", "preset"} <= runner.properties.keys()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("speed", "fast", "Column 'speed', row 2 .*'fast' is not a number"),
        ("speed", float("inf"), "Column 'speed', row 2 .* infinite"),
        ("on", 3, "Column 'on', row 2 .*3 is not true or false"),
        ("mode", 1e300, "Column 'mode', row 2 .*text"),
    ],
)
def test_wrong_cells_are_named(runner: Runner, new_rows: pd.DataFrame, column: str, value: Any, message: str) -> None:
    table = {name: list(new_rows[name]) for name in new_rows}
    table[column][2] = value
    with pytest.raises(RunnerError, match=message):
        runner.encode(table)


def test_columns_are_matched_by_name(runner: Runner, new_rows: pd.DataFrame) -> None:
    expected = runner.encode(new_rows)
    np.testing.assert_array_equal(runner.encode(new_rows[new_rows.columns[::-1]]), expected)
    with pytest.raises(RunnerError, match="no column 'mode'"):
        runner.encode(new_rows.drop(columns="mode"))
    with pytest.warns(UserWarning, match="'extra'"):
        np.testing.assert_array_equal(runner.encode(new_rows.assign(extra=1)), expected)


def test_the_words_of_numbers_truths_and_missing_values_are_the_schema_s() -> None:
    """The runner stands alone, so that it holds its own copy of them."""
    assert f"^({runner_module.NUMBER.pattern})$" == NUMBER_TEXT
    assert runner_module.NULL_WORDS == NULL_WORDS
    assert dict.fromkeys(TRUE_TEXT, 1.0) | dict.fromkeys(FALSE_TEXT, 0.0) == runner_module.TRUTHS


def test_encoding_is_the_schema_s(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that holds numbers, numbers that are categories, words that are truth values, names of missing values."""
    n = 60
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "number text": [f" {v:.3f} " for v in rng.normal(size=n)],
            "commas": [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in rng.uniform(-5e3, 5e6, n)],
            "spaces": [f"{v:,.1f}".replace(",", "\u202f") for v in rng.uniform(0, 5e6, n)],
            "grade": rng.choice([1.0, 2.0, 2.5, -0.0, np.nan], n),
            "code": rng.choice(["007", "x", "?"], n),
            "truth": rng.choice(["True", "FALSE", "?"], n),
        }
    )
    schema = fit_schema(table, missing=["?"], types={"grade": "categorical", "truth": "boolean"})
    monkeypatch.setattr(runner, "schema", json.loads(json.dumps(schema.to_json())))
    np.testing.assert_array_equal(runner.encode(table), schema.encode(table))
    assert schema.types["commas"] == schema.types["spaces"] == "numeric"
    with pytest.raises(RunnerError, match=r"Column 'commas', row 0 .*'1.5' is not a number"):
        runner.encode(table.assign(commas="1.5"))


def test_files_with_semicolons(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("speed;load;mode\n0,5;NA;a\n")
    assert runner_module.read_csv(tmp_path / "t.csv") == {"speed": ["0,5"], "load": [None], "mode": ["a"]}


def test_types_that_it_does_not_encode_are_refused_by_name(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=30), "a": np.arange(30.0)})
    monkeypatch.setattr(runner, "schema", fit_schema(table).to_json())
    with pytest.raises(RunnerError, match=r"Column 'day' is of type 'datetime'.*Runner\.run"):
        runner.encode(table)
