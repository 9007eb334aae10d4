"""JSON lines with too many keys: an error before they become columns."""

from __future__ import annotations

import json

import pytest

from ptad.errors import DataError
from ptad.tables import json_lines, read_table, scan_table


@pytest.mark.parametrize(
    "line",
    ['{"k%d": 1}', '{"k%d"  :1}', '{"k\\"%d\\"x": 1}', '{"a": {"k%d": 1}}', '{"k%d\\\\": "\\\\"}'],
    ids=["plain", "blanks", "quotes", "nested", "backslashes"],
)
def test_too_many_keys_are_an_error_before_parsing(tmp_path, line):
    path = tmp_path / "keys.jsonl"
    path.write_text("".join(line % i + "\n" for i in range(300)) + "no JSON at all\n")
    with pytest.raises(DataError, match=r"keys.jsonl has more than 100 columns"):
        scan_table(path, most_columns=100)


def test_text_that_looks_like_keys_is_not_counted(tmp_path):
    rows = [{"a": f'say "k{i}": {i}', "b": f'{{"k{i}": ":"}}', "c": f':k{i}"', "d": "\\"} for i in range(300)]
    path = tmp_path / "text.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_table(path).to_pylist() == rows
    assert scan_table(path, most_columns=6).n_rows == 300


def test_rare_keys_are_read_in_short_blocks(tmp_path, monkeypatch):
    rows = [{"a": i, f"rare{i % 50}": i / 2} for i in range(500)]
    path = tmp_path / "rare.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    whole = read_table(path)
    sizes = []
    parsed = json_lines._parsed
    monkeypatch.setattr(json_lines, "BLOCK_CELLS", 1000)
    monkeypatch.setattr(
        json_lines, "_parsed", lambda s, block, *more: sizes.append(len(block)) or parsed(s, block, *more)
    )
    assert read_table(path).to_pylist() == whole.to_pylist()
    assert len(sizes) > 20 and max(sizes) < path.stat().st_size / 10
