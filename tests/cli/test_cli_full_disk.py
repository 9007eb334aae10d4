"""A full disk: one line, exit code 2, nothing half written, and what was there before is there still."""

import errno
import os
import subprocess
import sys

import pytest

FULL = "no space left on the device"


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


def refused(result):
    assert result.exit_code == 2, result.stderr
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert line.startswith("error: ") and FULL in line
    return line


def fill(disk):
    with (disk / "full").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(b"x" * 4096)


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.csv.gz", "o.jsonl", "o.arrow", "r.html", "m"])
def test_every_output(ptad, model, table, tiny, small_disk, name):
    out = small_disk / name
    fill(small_disk)
    # what is left takes a lock and a folder, but no result
    os.truncate(small_disk / "full", (small_disk / "full").stat().st_size - 3 * 4096)
    command = {"r.html": ["report", model, table], "m": ["fit", table, *tiny]}.get(name, ["score", model, table])
    line = refused(ptad(*command, "--out", out, "--quiet"))
    assert f"{out} cannot be written" in line
    assert [p.name for p in small_disk.iterdir()] == ["full"]
    (small_disk / "full").unlink()
    assert ptad(*command, "--out", out, "--quiet").exit_code == 0  # it goes on when there is room again
    assert [p.name for p in small_disk.iterdir()] == [name]


@pytest.mark.parametrize("command", ["score", "report"])
def test_list_of_bad_cells(ptad, model, table, small_disk, tmp_path, command):
    path, out = small_disk / "list.csv", tmp_path / "out"
    out.mkdir()
    path.write_text("old")
    fill(small_disk)
    name = out / ("o.csv" if command == "score" else "o.html")
    line = refused(ptad(command, model, table, "--out", name, "--bad-cells", path, "--quiet"))
    assert f"The list of bad cells, {path}, cannot be written" in line
    assert path.read_text() == "old" and sorted(p.name for p in small_disk.iterdir()) == ["full", "list.csv"]
    assert not any(out.iterdir())


@pytest.mark.parametrize("command", ["score", "report", "fit"])
def test_wherever_it_happens_the_old_output_stays(ptad, model, table, tiny, tmp_path, monkeypatch, command):
    """Every time that bytes are put on the disk may be the one that fails."""
    home = tmp_path / "home"
    home.mkdir()
    out = home / {"score": "o.csv", "report": "o.html", "fit": "m"}[command]
    args = {"score": [model, table, "--batch-rows", 60], "report": [model, table], "fit": [table, *tiny]}[command]
    assert ptad(command, *args, "--out", out, "--quiet").exit_code == 0
    before = {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}
    plain, failures = os.fsync, 0
    for failing in range(1, 100):
        calls = [0]

        def fsync(handle, calls=calls, failing=failing):
            calls[0] += 1
            if calls[0] == failing:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            plain(handle)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            result = ptad(command, *args, "--out", out, "--quiet")
        if calls[0] < failing:
            break
        if result.exit_code == 0:  # it only saw to it that a rename is on the disk
            continue
        failures += 1
        assert f"{out} cannot be written" in refused(result)
        assert {p: p.read_bytes() for p in home.rglob("*") if p.is_file()} == before
        assert not [p for p in home.iterdir() if p != out]
    assert failures >= {"score": 2, "report": 1, "fit": 2}[command]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("command", ["info", "score", "--version"])
def test_full_standard_output(model, table, environment, command):
    args = {"info": [command, model], "score": [command, model, table]}.get(command, [command])
    with open("/dev/full", "w") as full:  # noqa: PTH123
        call = [sys.executable, "-c", "from ptad.cli import main; main()", *map(str, args)]
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith("error: ") and FULL in line
