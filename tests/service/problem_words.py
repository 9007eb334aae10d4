"""No answer of the service speaks of the command line, or says where on the machine its files are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx

COMMAND_LINE = re.compile(r"(?<![\w-])--[a-z]|\bptad [a-z]+ |command line|in Python")


def check_words(text: str, store: Path) -> None:
    assert not COMMAND_LINE.search(text), text
    assert str(store) not in text and str(store.parent) not in text, text


def check_problem(answer: httpx.Response, store: Path) -> None:
    """Look at every detail that a test is answered with."""
    if answer.headers.get("content-type") == "application/problem+json":
        answer.read()
        check_words(answer.json()["detail"], store)


def check_job(job: dict[str, Any], store: Path) -> None:
    """Look at the end of every job that a test has waited for."""
    summary = job["summary"] or {}
    for text in (job["error"], summary.get("scores_error"), *summary.get("notes", ())):
        check_words(text or "", store)
