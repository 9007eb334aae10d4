"""Progress of a fit: silence on request, log lines elsewhere than on a terminal."""

from __future__ import annotations

import logging

import pytest

from ptad.progress import fit_progress


def test_quiet() -> None:
    with fit_progress(0) as report:
        assert report is None


def test_logging_elsewhere_than_on_a_terminal(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ptad"), fit_progress(1) as report:
        assert report is not None
        report(5, 20, {"total": 1.25})
    assert "step 5 of 20: loss 1.25" in caplog.text
    assert capfd.readouterr().out == ""
