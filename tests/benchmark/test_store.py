"""The results file survives crashes, other writers and other versions."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from ptad.benchmark.results import COLUMNS, ResultsFile
from ptad.errors import DataError


def make_row(**changes: Any) -> dict[str, Any]:
    row = {"experiment": "main", "variant": "knn", "method": "knn", "dataset": "wine", "seed": 0, "scaling": "minmax"}
    row |= {"config_hash": "abc", "status": "ok", "reason": "", "auc_pr": 0.5, "auc_roc": 0.75, "n_train": 59}
    return row | changes


def test_round_trip_and_last_row_counts(tmp_path: Path) -> None:
    store = ResultsFile(tmp_path / "new" / "results.csv")
    assert store.read() == []
    store.path.parent.mkdir()
    store.path.touch()
    assert store.read() == []
    store.append(make_row(status="failed", reason='a "quoted", comma\nand line'))
    store.append(make_row(seed=1))
    store.append(make_row(auc_pr=0.123456789))
    rows = store.read()
    assert len(rows) == 2
    assert rows[0]["auc_pr"] == 0.123457 and rows[0]["seed"] == 0 and rows[0]["n_train"] == 59
    assert rows[0]["fit_seconds"] is None
    assert len(store.path.read_text().splitlines()) == 4
    with pytest.raises(DataError, match="no column 'colour'"):
        store.append(make_row(colour="red"))


def test_merge_takes_what_is_new_and_never_loses_a_figure(tmp_path: Path) -> None:
    here, there = ResultsFile(tmp_path / "here.csv"), ResultsFile(tmp_path / "there.csv")
    here.append(make_row(finished_at="2026-01-01", auc_pr=0.1))
    here.append(make_row(seed=1, status="failed", auc_pr=None, finished_at="2026-01-03"))
    here.append(make_row(seed=2, finished_at="2026-01-01", auc_pr=0.3))
    there.append(make_row(finished_at="2026-01-02", auc_pr=0.2))
    there.append(make_row(seed=1, finished_at="2026-01-02", auc_pr=0.4))
    there.append(make_row(seed=2, status="timeout", auc_pr=None, finished_at="2026-01-05"))
    there.append(make_row(seed=3, finished_at="2026-01-02", auc_pr=0.5))
    assert here.merge(there) == 3
    assert {row["seed"]: row["auc_pr"] for row in here.read()} == {0: 0.2, 1: 0.4, 2: 0.3, 3: 0.5}
    assert here.merge(there) == 0


def test_reasons_stay_on_one_line(tmp_path: Path) -> None:
    store = ResultsFile(tmp_path / "r.csv")
    store.append(make_row(status="failed", reason='a "quoted", comma\nand line'))
    assert store.read()[0]["reason"] == 'a "quoted", comma and line'


def test_torn_line_is_left_out_and_repaired(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = ResultsFile(tmp_path / "r.csv")
    store.append(make_row())
    with store.path.open("ab") as file:
        file.write(b"2,main,knn,kn")
    store.append(make_row(seed=1))
    assert [row["seed"] for row in store.read()] == [0, 1]
    assert "line 3 is incomplete" in caplog.text


def test_a_row_torn_inside_quotes_swallows_no_other(tmp_path: Path) -> None:
    store = ResultsFile(tmp_path / "r.csv")
    for seed in (0, 1):
        store.append(make_row(seed=seed, settings='{"k": 5, "scaling": "none"}'))
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[: whole.rindex(b"scaling")])
    for seed in (2, 3):
        store.append(make_row(seed=seed, settings='{"k": 5}'))
    assert [row["seed"] for row in store.read()] == [0, 2, 3]


def test_other_versions_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="not a results file"):
        ResultsFile(path).read()
    with pytest.raises(DataError, match="not a results file"):
        ResultsFile(path).append(make_row())
    path.write_text("format_version,method\n0,knn\n")
    with pytest.raises(DataError, match="another format than version 3"):
        ResultsFile(path).read()
    path.write_text(",".join(COLUMNS) + "\n" + ",".join(["7", *[""] * (len(COLUMNS) - 1)]) + "\n")
    with pytest.raises(DataError, match="line 2: format version '7'"):
        ResultsFile(path).read()


def write_many(path: Path, writer: int) -> None:
    for seed in range(25):
        ResultsFile(path).append(make_row(seed=seed, method=f"m{writer}", reason="x" * 500))


def test_a_writer_waits_for_the_lock(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    store = ResultsFile(tmp_path / "r.csv")
    store.append(make_row())
    writer = multiprocessing.get_context("fork").Process(target=store.append, args=(make_row(seed=1),))
    with store.path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer.start()
        writer.join(0.5)
        assert writer.is_alive() and len(store.read()) == 1
        fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough: the fork holds the same open file
    writer.join(60)
    assert writer.exitcode == 0 and len(store.read()) == 2


def test_two_writers_do_not_corrupt_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write_many, args=(path, n)) for n in range(3)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    rows = ResultsFile(path).read()
    assert len(rows) == 75
    assert all(row["reason"] == "x" * 500 for row in rows)
    assert path.read_text().count("format_version") == 1
