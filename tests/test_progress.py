"""Progress: silence on request, plain lines where there is no terminal, bars where there is one."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptad import PTAD
from ptad.progress import PAUSE, Bars, Lines, reported_to, shown_progress

Rows = NDArray[np.float64]
Make = Callable[..., PTAD]


class Clock:
    """A clock that goes on by ``step`` seconds whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything seems to take long: no line is held back."""
    monkeypatch.setattr("ptad.progress.time.monotonic", Clock(PAUSE))


@pytest.fixture
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything seems to take no time at all."""
    monkeypatch.setattr("ptad.progress.time.monotonic", Clock(0.0))


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_quiet() -> None:
    with shown_progress(0) as report:
        assert report is None


def test_quiet_fit_and_scores_write_nothing(
    make_detector: Make, rows: Rows, slow_clock: None, capfd: pytest.CaptureFixture[str]
) -> None:
    PTAD(verbose=0).fit(rows).update(np.tile(rows, (3, 1))).anomaly_score(np.tile(rows, (100, 1)))
    assert capfd.readouterr() == ("", "")


def test_lines_of_a_fit_name_stage_and_count(rows: Rows, slow_clock: None, capfd: pytest.CaptureFixture[str]) -> None:
    PTAD(config={"calibration.folds": 3, "calibration.most_folds": 3}).fit(rows)
    out, err = capfd.readouterr()
    assert out == "" and err.splitlines() == [
        "ptad: fitting on 100 rows and 4 columns",
        "ptad: calibration: 1 of 3 folds",
        "ptad: calibration: 2 of 3 folds",
        "ptad: calibration: 3 of 3 folds",
    ]


def test_lines_of_a_split_count_rows(
    rows: Rows, slow_clock: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ptad.detector.REPORTED_ROWS", 8)
    PTAD(config={"calibration.method": "split"}).fit(rows)
    lines = capfd.readouterr().err.splitlines()[1:]
    assert lines == [f"ptad: calibration: {n} of 20 rows" for n in (8, 16, 20)]


def test_quick_work_is_one_line(rows: Rows, still_clock: None, capfd: pytest.CaptureFixture[str]) -> None:
    model = PTAD().fit(rows)
    assert capfd.readouterr().err.splitlines() == ["ptad: fitting on 100 rows and 4 columns"]
    model.anomaly_score(rows)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("method", ["anomaly_score", "p_value", "predict", "decision_function"])
def test_scoring_of_a_large_table_counts_rows(
    rows: Rows, method: str, slow_clock: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    model = PTAD(verbose=0).fit(rows).set_params(verbose=1)
    quiet = model.score_samples(rows)
    monkeypatch.setattr("ptad.detector.REPORTED_ROWS", 30)
    monkeypatch.setattr("ptad.model.BLOCK_ROWS", 60)  # an array is also encoded in blocks
    capfd.readouterr()
    getattr(model, method)(rows)
    lines = capfd.readouterr().err.splitlines()
    assert lines == [f"ptad: scoring: {n} of 100 rows" for n in (30, 60, 90, 100)]
    assert np.array_equal(model.score_samples(rows), quiet)


def test_training_says_step_and_loss(slow_clock: None, capfd: pytest.CaptureFixture[str]) -> None:
    with shown_progress(1) as report:
        assert report is not None
        report.step(5, 2_000, {"total": 1.25})
    assert capfd.readouterr().err == "ptad: training: 5 of 2,000 steps, loss 1.25\n"


def test_where_the_log_is_shown_lines_go_there(
    slow_clock: None, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ptad"), shown_progress(1, "fitting") as report:
        assert isinstance(report, Lines)
        report.step(5, 20, {"total": 1.25})
        report.stage("calibration", 1, 10, "folds")
    assert caplog.messages == ["fitting", "training: 5 of 20 steps, loss 1.25", "calibration: 1 of 10 folds"]
    assert capfd.readouterr() == ("", "")


class Events(list[tuple[Any, ...]]):
    """A reporter that keeps what it is told."""

    def stage(self, *event: Any) -> None:
        self.append(event)

    step = stage


@pytest.mark.parametrize("verbose", [0, 1])
def test_whoever_asks_gets_the_events(rows: Rows, verbose: int, capfd: pytest.CaptureFixture[str]) -> None:
    events = Events()
    with reported_to(events):
        PTAD(config={"calibration.folds": 3, "calibration.most_folds": 3}, verbose=verbose).fit(rows)
    assert events == [("calibration", n, 3, "folds") for n in (1, 2, 3)] and capfd.readouterr() == ("", "")
    with shown_progress(0) as report:
        assert report is None


def test_a_total_that_is_not_known_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with shown_progress(1) as report:
        assert report is not None
        report.stage("reading", 2_000, 0, "rows")
    assert "2,000 rows" in terminal.getvalue() and " of " not in terminal.getvalue()


def test_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with shown_progress(1, "fitting") as report:
        assert isinstance(report, Bars)
        report.stage("calibration", 3, 10, "folds")
        report.step(5, 20, {"total": 1.25})
    shown = terminal.getvalue()
    assert "3 of 10 folds" in shown and "5 of 20 steps, loss 1.25" in shown


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "dumb")
    with shown_progress(1, "fitting") as report:
        assert isinstance(report, Lines)
    assert terminal.getvalue() == "ptad: fitting\n"


SCRIPT = """
import numpy as np, ptad.progress
from ptad import PTAD
ptad.progress.PAUSE = 0.0
PTAD(verbose={verbose}).fit(np.random.default_rng(0).normal(size=(40, 3)))
print("done")
"""


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_script_whose_output_is_a_file(verbose: Any) -> None:
    """No control characters, no log needed, nothing on stdout."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(verbose=verbose)], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout == "done\n"
    assert all(c.isprintable() or c == "\n" for c in done.stderr)
    lines = done.stderr.splitlines()
    if verbose:
        assert lines[0] == "ptad: fitting on 40 rows and 3 columns" and lines[-1] == "ptad: calibration: 40 of 40 folds"
    else:
        assert lines == []
