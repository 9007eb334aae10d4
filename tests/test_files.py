"""Files: atomic writes, regular files only, one writer at a time."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from ptad.errors import BusyError, DataError
from ptad.files import NotRegularFileError, OutputLock, open_regular, output_file, write_atomic, write_error
from ptad.folders import exchange
from stopping import exit_code, in_child

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def test_a_second_writer_is_an_error_with_the_process_of_the_first(tmp_path: Path) -> None:
    out = tmp_path / "o.csv"
    with OutputLock(out), pytest.raises(BusyError, match=rf"o.csv' is being written .*\(process {os.getpid()}\)"):
        OutputLock(out)
    with OutputLock(out), OutputLock(tmp_path / "other.csv"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_output_replaces_files_only(tmp_path: Path) -> None:
    plain, link, loop, pipe = (tmp_path / name for name in ("plain", "link", "loop", "pipe"))
    link.symlink_to(plain)
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    assert output_file(plain, DataError) == output_file(link, DataError) == plain
    assert output_file(loop, DataError) == loop
    for other, why in (
        (pipe, "pipe or a device"),
        ("/dev/stdout", "pipe or a device"),
        (tmp_path, "folder"),
        ("", "folder"),
    ):
        with pytest.raises(DataError, match=f"is a {why}. Name a file to write to"):
            output_file(other, DataError)


def test_no_lock_outlives_its_process(tmp_path: Path) -> None:
    ready, tell = os.pipe()

    def hold() -> None:
        lock = OutputLock(tmp_path / "p.csv")
        os.write(tell, b"x")
        signal.pause()
        lock.release()

    child = in_child(hold)
    os.read(ready, 1)
    try:
        with pytest.raises(BusyError, match=rf"process {child}"):
            OutputLock(tmp_path / "p.csv")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(tell)
    (tmp_path / ".p.csv.0123abcd.part").write_text("half")
    with OutputLock(tmp_path / "p.csv"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_many_writers_take_turns_and_never_two_at_once(tmp_path: Path) -> None:
    """The lock file is removed and made again all the time: nobody holds one that has lost its name."""
    out, inside = tmp_path / "o.csv", tmp_path / "inside"

    def work() -> None:
        done = 0
        while done < 50:
            try:
                with OutputLock(out):
                    inside.touch(exist_ok=False)  # raises if another one is in there
                    inside.unlink()
                    done += 1
            except BusyError:
                continue

    assert [exit_code(child) for child in [in_child(work) for _ in range(3)]] == [0, 0, 0]


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    open_regular(tmp_path / "file").close()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "link", "folder"):
        with pytest.raises(NotRegularFileError):
            open_regular(tmp_path / name)
    with pytest.raises(NotRegularFileError):
        open_regular("/dev/zero")


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "o.html"
    write_atomic(out, b"old")
    for name in ("fsync", "replace"):

        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os if name == "fsync" else Path, name, fail)
            with pytest.raises(OSError):
                write_atomic(out, b"new")
        assert out.read_bytes() == b"old" and list(tmp_path.iterdir()) == [out]


def test_folders_are_exchanged(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this system has no such step")
    assert (tmp_path / "a" / "b").exists() and (tmp_path / "b" / "a").exists()
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "a", tmp_path / "none")


def test_write_errors() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(write_error("o.csv", full, DataError)).startswith(
        "o.csv cannot be written: no space left on the device."
    )
    assert str(write_error("-", full, DataError)).startswith("standard output cannot be written: no space")
    assert "Permission denied" in str(
        write_error("o.csv", PermissionError(errno.EACCES, "Permission denied"), DataError)
    )
