"""Lines of JavaScript, CSS and HTML: the formatter leaves long strings and templates as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 120


@pytest.mark.parametrize("suffix", ["js", "css", "html"])
def test_no_line_is_longer_than_the_others_may_be(suffix):
    files = [*ROOT.glob(f"src/**/*.{suffix}"), *ROOT.glob(f"tests/**/*.{suffix}")]
    files = [file for file in files if file.parent.name != "vendor"]
    assert files
    for file in files:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            assert len(line) <= LONGEST, f"{file.relative_to(ROOT)}:{number} has {len(line)} columns"
