"""The process that works on one job: ``python -m ptad.service.jobs.process FOLDER``.

It reads ``task.json``, appends to ``progress.jsonl``, and leaves ``result.json`` when it is done; killed at any
moment, it can be started again and goes on. It does not outlive the service.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ptad.errors import PtadError
from ptad.service.disk import EXIT_FULL, FULL, is_full
from ptad.service.jobs.progress import ProgressFile
from ptad.service.logs import traced
from ptad.service.spelling import in_words_of_http, over_http
from ptad.service.store import read_json, write_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TASK, RESULT = "task.json", "result.json"
FITTED = "fitted.json"  # the summary of a fit whose model is saved
CHECKPOINT = "checkpoint"
TOP_ROWS = 50


def main() -> None:
    """Do the job and leave a result, also when it is an error of the user."""
    folder = Path(sys.argv[1])
    _die_with_parent()
    with (folder / "lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a worker of a killed service may need a moment to notice
        if not (folder / RESULT).exists():
            task = read_json(folder / TASK)
            limit_memory(task.get("memory", 0))
            try:
                write_json(folder / RESULT, _result(folder, task))
            except OSError as error:
                sys.exit(EXIT_FULL if is_full(error) else traced(error))


def _result(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    work = {"fit": _fit, "score": _score, "update": _renew, "recalibrate": _renew}[task["kind"]]
    progress = ProgressFile(folder)
    try:
        with progress.receiving():
            return {"summary": work(folder, task, progress)}
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
        return error.message.phrase(over_http)
    if isinstance(error, MemoryError) or "allocate memory" in str(error):  # torch has no class for it
        most = task.get("memory", 0)
        given = f" A job may use {most / 2**30:.1f} GiB (limit worker_memory)." if most else ""
        return f"There was not enough memory for this table.{given} Use fewer rows or columns."
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


def _fit(folder: Path, task: dict[str, Any], progress: ProgressFile) -> dict[str, Any]:
    """Fit a model and, if that is asked for, score the training table; a kill in between loses no fit."""
    from ptad.jobs.fit import fit_table
    from ptad.service.jobs.table_scores import BAD_CELLS
    from ptad.tables import TableSource

    summary: dict[str, Any] | None = read_json(folder / FITTED)
    if summary is None:
        if any((folder / CHECKPOINT).rglob("*.safetensors")):
            progress.note("It goes on from its checkpoint.")
        found = fit_table(
            TableSource(task["source"], label=task["source_name"]),
            folder / "model",
            {**task["parameters"], "device": task["device"]},
            label=task["label"],
            normal=task["normal"],
            checkpoint=folder / CHECKPOINT,
            bad_cells=folder / BAD_CELLS,
            reading=progress.reading,
        )
        summary = in_words_of_http(found)
        write_json(folder / FITTED, summary)
    if task.get("score"):  # a job of an older store has no such wish
        progress.stage("held-out scores", 0, 0, "rows")
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


def _renew(folder: Path, task: dict[str, Any], progress: ProgressFile) -> dict[str, Any]:
    """Update or recalibrate a model into a new folder; the old one is only read."""
    from ptad.jobs.fit import renew_table
    from ptad.tables import TableSource

    found = renew_table(
        task["kind"],
        task["bundle"],
        TableSource(task["source"], label=task["source_name"]),
        folder / "model",
        label=task["label"],
        normal=task["normal"],
        false_alarm_rate=task["false_alarm_rate"],
        device=task["device"],
        reading=progress.reading,
    )
    return in_words_of_http(found)


def _score(folder: Path, task: dict[str, Any], progress: ProgressFile) -> dict[str, Any]:
    from ptad.service.jobs.table_scores import score_table

    return score_table(folder, task, progress)


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
