"""The process that works on one job: ``python -m ptad.service.jobs.process FOLDER``.

It reads ``task.json``, appends to ``progress.jsonl``, and leaves ``result.json`` when it is done; killed at any
moment, it can be started again and goes on. It does not outlive the service.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ptad.errors import PtadError
from ptad.service.disk import EXIT_FULL, FULL, is_full
from ptad.service.logs import traced
from ptad.service.store import read_json, write_json
from ptad.service.words import http_words

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FITTED = "fitted.json"  # the summary of a fit whose model is saved
TOP_ROWS = 50


def main() -> None:
    """Do the job and leave a result, also when it is an error of the user."""
    folder = Path(sys.argv[1])
    _die_with_parent()
    with (folder / "lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a worker of a killed service may need a moment to notice
        if not (folder / "result.json").exists():
            task = read_json(folder / "task.json")
            limit_memory(task.get("memory", 0))
            try:
                write_json(folder / "result.json", _result(folder, task))
            except OSError as error:
                sys.exit(EXIT_FULL if is_full(error) else traced(error))


def _result(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    try:
        work = {"fit": _fit, "score": _score, "update": _renew, "recalibrate": _renew}[task["kind"]]
        return {"summary": work(folder, task)}
    except Exception as error:
        reason = _reason(error, task)
        if reason is None:
            sys.exit(traced(error))  # the service tries again; a traceback would quote values in the log of the worker
        return {"error": reason}


def _reason(error: Exception, task: dict[str, Any]) -> str | None:
    """Why a job ends, in words for its owner; None where another attempt may get further."""
    if is_full(error):
        return FULL
    if isinstance(error, PtadError):
        return http_words(str(error).replace(task["source"], task["source_name"]))
    if isinstance(error, MemoryError) or "allocate memory" in str(error):  # torch has no class for it
        return _too_little(task)
    return None


def limit_memory(n_bytes: int) -> None:
    """Bound the memory that this process may write to; beyond it, allocations fail and the job says so."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if n_bytes:
        # not the address space: libraries for GPUs reserve far more of it than they use
        resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))


def _too_little(task: dict[str, Any]) -> str:
    most = task.get("memory", 0)
    given = f" A job may use {most / 2**30:.1f} GiB (limit worker_memory)." if most else ""
    return f"There was not enough memory for this table.{given} Use fewer rows or columns."


def _fit(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Fit a model and, if that is asked for, score the training table; a kill in between loses no fit."""
    from ptad.jobs.fit import fit_table
    from ptad.service.jobs.table_scores import BAD_CELLS

    progress = Progress(folder / "progress.jsonl")
    summary: dict[str, Any] | None = read_json(folder / FITTED)
    if summary is None:
        with progress.of_training():
            found = fit_table(
                task["source"],
                folder / "model",
                {**task["parameters"], "device": task["device"], "verbose": 1},
                label=task["label"],
                normal=task["normal"],
                checkpoint=folder / "checkpoint",
                bad_cells=folder / BAD_CELLS,
            )
        summary = _shown(found)
        write_json(folder / FITTED, summary)
    if task.get("score"):  # a job of an older store has no such wish
        progress.phase("score")
        own = {name: task[name] for name in ("table", "label", "normal")}
        model = {"bundle": str(folder / "model"), "model_name": task["name"], "false_alarm_rate": None, "top": TOP_ROWS}
        try:
            summary["scores"] = _score(folder, {**task, **model, "fitted_on": own, "training_table": True}, progress)
        except Exception as error:
            reason = _reason(error, task)
            if reason is None:
                raise
            summary["scores_error"] = reason  # the model is there, and stays
    return summary


def _renew(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Update or recalibrate a model into a new folder; the old one is only read."""
    from ptad.jobs.fit import recalibrate_table, update_table

    renew = update_table if task["kind"] == "update" else recalibrate_table
    with Progress(folder / "progress.jsonl").of_training():
        found = renew(
            task["bundle"],
            task["source"],
            folder / "model",
            label=task["label"],
            normal=task["normal"],
            false_alarm_rate=task["false_alarm_rate"],
            device=task["device"],
        )
    return _shown(found)


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    """A summary in the words of this API, without a path."""
    renamed = {"left_out": "excluded"}
    return {renamed.get(name, name): value for name, value in found.items() if name != "model"}


def _score(folder: Path, task: dict[str, Any], progress: Progress | None = None) -> dict[str, Any]:
    from ptad.service.jobs.table_scores import score_table

    progress = progress or Progress(folder / "progress.jsonl")
    return score_table(folder, task, progress.rows, progress.note)


class Progress(logging.Handler):
    """Appends to the file of progress: what training logs at every interval, or the rows that are done."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._group, self._last, self._told = 0, 0, 0.0
        if path.exists() and (content := path.read_bytes()) and not content.endswith(b"\n"):
            os.truncate(path, content.rfind(b"\n") + 1)  # a line cut off by a kill

    @contextmanager
    def of_training(self) -> Iterator[None]:
        """Take what the library logs meanwhile for progress."""
        logger = logging.getLogger("ptad")
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Take the training loop's log lines ``step i of n: loss x`` for progress."""
        arguments = record.args
        text = str(record.msg)  # it may be a Message
        if isinstance(arguments, tuple) and len(arguments) == 3 and text.startswith("step "):
            step, n_steps, loss = arguments
            if int(step) <= self._last:  # type: ignore[call-overload]
                self._group += 1  # another fold: its training begins at the first step
            self._last = int(step)  # type: ignore[call-overload]
            self._append({"group": self._group, "step": step, "steps": n_steps, "loss": float(loss)})  # type: ignore[arg-type]
        elif text.startswith("resuming"):
            self.note("goes on from its checkpoint")
        elif record.levelno >= logging.WARNING:
            self.note(record.getMessage()[:300])

    def rows(self, done: int, total: int | None) -> None:
        """Note how many rows are done, a few times a second."""
        if done == total or time.monotonic() - self._told > 0.3:
            self._told = time.monotonic()
            self._append({"rows": done, "total": total})

    def note(self, text: str) -> None:
        """Note something that whoever waits should know."""
        self._append({"note": http_words(text)})

    def phase(self, name: str) -> None:
        """Note that another part of the job begins."""
        self._append({"phase": name})

    def _append(self, entry: dict[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")


def _die_with_parent() -> None:
    """End when the service ends, however it ended."""
    parent = int(os.environ.get("PTAD_PARENT", "0"))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(3)

    if parent:
        threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    os.nice(5)
    main()
