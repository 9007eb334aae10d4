"""Streaming scores: the same as in memory, in order, and whole after a kill at any moment."""

import itertools
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from ptad import PTAD
from ptad.errors import DataError, SettingError
from ptad.jobs import batches
from ptad.jobs.score import score_table
from ptad.jobs.scored_batch import CellCounts
from ptad.tables import TableSource, read_table, write_table
from stopping import HANG

STEP = 40  # three batches: 40, 40 and 20 rows


@pytest.fixture
def model(folder):
    return PTAD.load(folder / "model", device="cpu")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".feather", ".csv.gz"])
def test_streamed_scores_are_those_of_the_whole_table(folder, model, rows, tmp_path, suffix):
    write_table(rows, tmp_path / f"in{suffix}")
    out = tmp_path / f"out{suffix}"
    summary = score_table(folder / "model", tmp_path / f"in{suffix}", out, batch_rows=STEP)
    found = read_table(out)
    assert found.column_names == ["a", "b", "n", "colour", "score", "p_value", "anomaly"]
    assert found["a"].to_pylist() == rows["a"].to_pylist() and found["colour"].to_pylist() == rows["colour"].to_pylist()
    assert np.array_equal(found["score"].to_numpy(), model.anomaly_score(rows))
    assert np.array_equal(found["p_value"].to_numpy(), model.p_value(rows))
    flagged = model.predict(rows) == -1
    assert found["anomaly"].to_pylist() == flagged.tolist()
    assert (summary.rows, summary.anomalies, summary.rows_resumed) == (100, flagged.sum(), 0)
    assert {p.name for p in tmp_path.iterdir()} == {f"in{suffix}", f"out{suffix}"}


def test_the_light_model_is_the_estimator(folder, model, rows):
    light = batches.load_model(
        folder / "model", TableSource("t"), batches.JobOptions(device="cpu", false_alarm_rate=0.1)
    )
    model.set_false_alarm_rate(0.1)
    assert np.array_equal(light.anomaly_score(rows), model.anomaly_score(rows))
    assert (light.false_alarm_rate_, light.offset_, light.preset) == (0.1, model.offset_, model.preset)
    light, full = light.explain(rows), model.explain(rows)
    assert np.array_equal(light.contribution_values, full.contribution_values) and light.reasons.equals(full.reasons)


def test_scoring_does_not_wait_for_scikit_learn(folder, tmp_path):
    code = (
        "import sys\n"
        "from ptad.jobs.score import score_table\n"
        "score_table(*sys.argv[1:], explain=1)\n"
        "slow = {'sklearn', 'scipy.stats', 'torch', 'polars', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported: {slow}' if slow else 0)"
    )
    files = [folder / "model", folder / "table.csv", tmp_path / "o.csv"]
    done = subprocess.run([sys.executable, "-c", code, *map(str, files)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_explained_columns(folder, model, rows, tmp_path):
    score_table(folder / "model", folder / "table.csv", tmp_path / "o.parquet", explain=5, append=False, prefix="x_")
    found = read_table(tmp_path / "o.parquet")
    assert found.column_names[:3] == ["x_score", "x_p_value", "x_anomaly"] and found.num_columns == 3 + 5 * 5
    explanation = model.explain(rows)
    assert list(zip(found["x_why_1"].to_pylist(), found["x_why_2"].to_pylist(), strict=True)) == [
        tuple(names) for names in explanation.top(2)
    ]
    assert found["x_why_5"].null_count == 100  # the table has four columns
    first = list(zip(found["x_why_1"].to_pylist(), found["x_why_1_contribution"].to_pylist(), strict=True))
    for i, (name, _) in enumerate(first):
        expected = explanation.expected[name][i].as_py()
        text = found["x_why_1_expected"][i].as_py()
        assert text == expected if isinstance(expected, str) else float(text) == pytest.approx(expected, rel=1e-5)
    reasons = [None if added <= 0 else explanation.reasons[name][i].as_py() for i, (name, added) in enumerate(first)]
    assert found["x_why_1_reason"].to_pylist() == reasons
    shares = np.column_stack([found[f"x_why_{k}_percentage"].to_numpy() for k in range(1, 5)])
    some = (explanation.contribution_values > 0.0).any(axis=1)
    np.testing.assert_allclose(shares.sum(axis=1), np.where(some, 100.0, 0.0), rtol=1e-5)
    total = sum(np.nan_to_num(found[f"x_why_{k}_contribution"].to_numpy().astype(float)) for k in range(1, 6))
    np.testing.assert_allclose(total, found["x_score"].to_numpy(), rtol=1e-4)


def test_model_without_threshold_has_scores_only(rows, tmp_path, folder):
    PTAD(config={"calibration.method": "none"}, verbose=0, device="cpu").fit(rows).save(tmp_path / "m")
    summary = score_table(tmp_path / "m", folder / "table.csv", tmp_path / "o.parquet")
    found = read_table(tmp_path / "o.parquet")
    assert summary.anomalies is None and summary.false_alarm_rate is None
    assert found["score"].null_count == 0 and found["p_value"].null_count == found["anomaly"].null_count == 100
    with pytest.raises(SettingError, match=r"no threshold.*Recalibrate it.*config=\{'calibration.method': 'auto'\}"):
        batches.operating_point(PTAD.load(tmp_path / "m", device="cpu"))


def crashing_score(folder, out, moment):
    """Score, and die without a word just before the n-th act that reaches the disk."""
    acts = itertools.count()

    def dying(act):
        def call(*args, **more):
            if next(acts) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*args, **more)

        return call

    for name in ("fsync", "replace", "mkdir", "unlink"):
        setattr(os, name, dying(getattr(os, name)))
    score_table(folder / "model", folder / "table.csv", out, batch_rows=STEP, explain=1)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.slow
def test_killed_at_every_moment(folder, tmp_path, monkeypatch):
    score_table(folder / "model", folder / "table.csv", tmp_path / "whole.csv", batch_rows=STEP, explain=1)
    whole = (tmp_path / "whole.csv").read_bytes()
    scored = []
    plain = batches.score_batch

    def counting(model, batch, explain=0, **more):
        scored.append(batch.num_rows)
        return plain(model, batch, explain, **more)

    monkeypatch.setattr(batches, "score_batch", counting)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ptad.jobs.score"])
    moments = 0
    for moment in itertools.count():
        home = tmp_path / str(moment)
        home.mkdir()
        process = context.Process(target=crashing_score, args=(folder, home / "o.csv", moment))
        process.start()
        process.join(HANG)
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        moments += 1
        left = list((home / ".o.csv.partial").glob("*.arrow"))
        complete = (home / "o.csv").exists()
        if complete:  # killed while it cleared up: the output is there, whole
            assert (home / "o.csv").read_bytes() == whole
        scored.clear()
        summary = score_table(folder / "model", folder / "table.csv", home / "o.csv", batch_rows=STEP, explain=1)
        assert (home / "o.csv").read_bytes() == whole
        assert [p.name for p in home.iterdir()] == ["o.csv"]
        assert sum(scored) + summary.rows_resumed == 100 == summary.rows  # nothing twice, nothing lost
        assert complete or len(scored) == 3 - len(left)
    assert moments >= 12


def test_results_of_another_model_table_or_setting_are_not_used(folder, tmp_path, monkeypatch):
    shutil.copy(folder / "table.csv", tmp_path / "t.csv")
    out = tmp_path / "o.csv"

    def interrupted(**more):
        def stop(rows, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            score_table(folder / "model", tmp_path / "t.csv", out, batch_rows=STEP, progress=stop, **more)
        assert (tmp_path / ".o.csv.partial").is_dir() and not out.exists()

    def resumed(**more):
        found = score_table(folder / "model", tmp_path / "t.csv", out, batch_rows=STEP, **more).rows_resumed
        out.unlink()
        return found

    interrupted()
    assert resumed() == STEP
    interrupted()
    assert resumed(append=False) == STEP  # the scores are the same with and without the other columns
    interrupted()
    assert resumed(false_alarm_rate=0.2) == 0
    interrupted()
    assert resumed(explain=1) == 0
    interrupted()
    os.utime(tmp_path / "t.csv", ns=(1, 1))
    assert resumed() == 0
    interrupted()
    part = next((tmp_path / ".o.csv.partial").glob("*.arrow"))
    part.write_bytes(part.read_bytes()[:100])  # a failing disk
    assert resumed() == 0


def test_mistakes_leave_nothing_behind(folder, tmp_path, rows):
    bad = rows.set_column(1, "b", pa.array([1.0] * 70 + [float("inf")] + [1.0] * 29))
    write_table(bad, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="'b', row 71"):  # the row of the table, not of its second batch
        score_table(folder / "model", tmp_path / "t.parquet", tmp_path / "o.csv", batch_rows=STEP)
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]
    write_table(rows.append_column("score", rows["a"]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"already has a column 'score'.*prefix=.*append=False"):
        score_table(folder / "model", tmp_path / "t.parquet", tmp_path / "o.csv")
    score_table(folder / "model", tmp_path / "t.parquet", tmp_path / "o.csv", prefix="new_")
    assert "new_score" in read_table(tmp_path / "o.csv").column_names


def test_the_table_is_never_overwritten(folder, tmp_path):
    shutil.copy(folder / "table.csv", tmp_path / "t.csv")
    before = (tmp_path / "t.csv").read_bytes()
    with pytest.raises(ValueError, match="is the table itself"):
        score_table(folder / "model", tmp_path / "t.csv", tmp_path / "." / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == before


def test_extra_columns_are_named_once(folder, rows, tmp_path, caplog):
    write_table(rows.append_column("more", rows["a"]).append_column("most", rows["b"]), tmp_path / "t.csv")
    score_table(folder / "model", tmp_path / "t.csv", tmp_path / "o.csv", batch_rows=STEP)
    assert [r.message for r in caplog.records if "ignored" in r.message] == [
        "columns that were not there in training are ignored: 'more', 'most'"
    ]


def test_memory_does_not_grow_with_the_rows(model):
    assert batches.rows_per_batch(model) == 16384
    model.detector_.pipeline.terms[0].batch_size = 1000  # whole batches where rows are scored together
    assert batches.rows_per_batch(model) == 17000


def test_counts_of_missing_and_unseen_cells_survive_an_interruption(folder, model, rows, tmp_path):
    colour = rows["colour"].to_pylist()
    colour[0], colour[50], colour[99] = None, "violet", "violet"
    write_table(rows.set_column(3, "colour", [colour]), tmp_path / "t.parquet")

    def stop(done, total):
        if done == 2 * STEP:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_table(folder / "model", tmp_path / "t.parquet", tmp_path / "o.csv", batch_rows=STEP, progress=stop)
    summary = score_table(folder / "model", tmp_path / "t.parquet", tmp_path / "o.csv", batch_rows=STEP)
    assert summary.rows_resumed == 2 * STEP
    assert (summary.cells.rows, summary.cells.rows_missing, summary.cells.rows_unseen) == (100, 1, 2)
    assert (summary.cells.missing_columns, summary.cells.unseen_columns) == ({"colour": 1}, {"colour": 2})
    whole = CellCounts.of(model.schema_.encode(read_table(tmp_path / "t.parquet")), model.schema_)
    assert whole.to_json() == summary.cells.to_json()
