"""The runner encodes, scores and flags as the model does, where torch cannot be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ptad import PTAD, BundleError, DataError, MissingExtraError
from ptad.export.runner import Runner
from ptad.export.writing import export_model
from ptad.tables import BadCellsWarning
from stopping import HANG

Exported = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def runner(exported: Exported) -> Runner:
    return Runner(exported[0])


def test_scores_flags_and_p_values_are_the_model_s(runner: Runner, mixed_model: PTAD, new_rows: pd.DataFrame) -> None:
    scored = runner.score(new_rows)
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


def test_every_library_gives_the_same_scores(runner: Runner, new_rows: pd.DataFrame) -> None:
    expected = runner.score(new_rows).score
    records = {name: [None if pd.isna(v) else v for v in new_rows[name]] for name in new_rows}
    for table in (records, pl.DataFrame(records), pa.table(records), new_rows.convert_dtypes()):
        np.testing.assert_array_equal(runner.score(table).score, expected)


def test_columns_of_every_type_are_encoded_as_by_the_model(tmp_path: Path) -> None:
    """Also numbers as people write them, numbers that are categories, and names of missing values."""
    n = 120
    rng = np.random.default_rng(0)
    words = np.array(["pump", "valve", "leaks", "replaced", "checked", "noise", "again", "no", "fault", "found"])
    table = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "number text": [f" {v:.3f} " for v in rng.normal(size=n)],
            "commas": [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in rng.uniform(-5e3, 5e6, n)],
            "grade": rng.choice([1.0, 2.0, 2.5, -0.0, np.nan], n),
            "code": rng.choice(["007", "x", "?"], n),
            "truth": rng.choice(["True", "FALSE", "?"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D"),
            "local day": [f"{d:02}.{m:02}.2024" for d, m in rng.integers((1, 1), (29, 13), (n, 2))],
            "delay": pd.to_timedelta(rng.integers(0, 5000, n), unit="s"),
            "note": [" ".join(rng.choice(words, 6)) for _ in range(n)],
        }
    )
    types = {"grade": "categorical", "truth": "boolean", "note": "text"}
    model = PTAD(missing=["?"], types=types, config={"reference.neighbours": 8}, verbose=0, device="cpu").fit(table)
    assert len(set(model.schema_.types.values())) == 7
    model.save(tmp_path / "model")
    runner = Runner(export_model(tmp_path / "model", tmp_path / "model.onnx").path)
    new = table.sample(frac=1.0, random_state=0).assign(number=np.linspace(-9, 9, n))
    scored = runner.score(new)
    np.testing.assert_allclose(scored.score, model.anomaly_score(new), rtol=1e-6)
    np.testing.assert_allclose(scored.p_value, model.p_value(new))


def test_needs_no_torch(exported: Exported, mixed_model: PTAD, new_rows: pd.DataFrame, tmp_path: Path) -> None:
    new_rows.to_csv(tmp_path / "new.csv", index=False)
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from ptad.export.runner import Runner\n"
        "from ptad.tables import read_table\n"
        "print(Runner(sys.argv[1]).score(read_table('new.csv')).score.tolist())"
    )
    command = [sys.executable, "-c", program, str(exported[0])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), mixed_model.anomaly_score(new_rows), rtol=1e-6)


def test_metadata_holds_schema_threshold_and_versions(runner: Runner, mixed_model: PTAD) -> None:
    assert runner.schema.to_json() == mixed_model.schema_.to_json()
    assert runner.threshold == -mixed_model.offset_
    assert runner.false_alarm_rate == mixed_model.false_alarm_rate_
    assert {"ptad_version", "torch_version", "preset", "reasons"} <= runner.properties.keys()


def test_encoded_rows_of_another_width_are_refused(runner: Runner) -> None:
    with pytest.raises(DataError, match=r"shape \(1 or more, 6\). Got \(2, 3\)"):
        runner.run(np.zeros((2, 3)))


def test_cells_that_cannot_be_read_are_named_and_missing(runner: Runner, new_rows: pd.DataFrame) -> None:
    wrong = new_rows.astype({"speed": object})
    wrong.loc[2, "speed"] = "fast"
    with pytest.warns(BadCellsWarning, match="'fast'"):
        scored = runner.score(wrong)
    assert scored.reasons["speed"][2] == "not a number: 'fast'"
    wrong.loc[2, "speed"] = None
    np.testing.assert_array_equal(scored.score, runner.score(wrong).score)


def test_files_that_are_no_exported_models_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.onnx").write_text("speed,load\nfast,1\n")
    with pytest.raises(BundleError, match=r"text\.onnx' cannot be read as an ONNX file"):
        Runner(tmp_path / "text.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"ptad\[onnx\]"):
        Runner(tmp_path / "text.onnx")
