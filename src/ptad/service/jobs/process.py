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

from ptad.files import lock, read_json, write_json
from ptad.jobs.fit import fit_table, renew_table
from ptad.service.jobs import table_scores
from ptad.service.jobs.progress import ProgressFile
from ptad.service.reasons import disk_is_full, in_words_of_http, reason_of, traced
from ptad.service.store import BUNDLE
from ptad.tables import TableSource

TASK, RESULT = "task.json", "result.json"
FITTED = "fitted.json"  # the summary of a fit whose model is saved
CHECKPOINT = "checkpoint"
MODEL = "model"  # as it will be among the models of the store
EXIT_FULL = 75  # the exit code of a worker that could not even write down that the disk is full
TOP_ROWS = 50


def main() -> None:
    """Do the job and leave a result, also when it is an error of the user."""
    folder = Path(sys.argv[1])
    _die_with_parent()
    with (folder / "lock").open("w") as file:
        lock(file.fileno(), wait=True)  # a worker of a killed service may need a moment to notice
        if not (folder / RESULT).exists():
            task = read_json(folder / TASK)
            limit_memory(task.get("memory", 0))
            try:
                write_json(folder / RESULT, _result(folder, task))
            except OSError as error:
                sys.exit(EXIT_FULL if disk_is_full(error) else traced(error))


def _result(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    kinds = {"fit": _fit, "score": table_scores.score_upload, "update": _renew, "recalibrate": _renew}
    progress = ProgressFile(folder)
    try:
        with progress.receiving():
            return {"summary": kinds[task["kind"]](folder, task, progress)}
    except Exception as error:
        reason = _reason(error, task)
        if reason is None:
            sys.exit(traced(error))  # the service tries again; a traceback would quote values in the log of the worker
        return {"error": reason}


def _reason(error: Exception, task: dict[str, Any]) -> str | None:
    """Why a job ends, in words for its owner; None where another attempt may get further."""
    if (reason := reason_of(error)) is not None:
        return reason
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
    summary: dict[str, Any] | None = read_json(folder / FITTED)
    if summary is None:
        if any((folder / CHECKPOINT).rglob("*.safetensors")):
            progress.note("It goes on from its checkpoint.")
        (folder / MODEL).mkdir(exist_ok=True)
        found = fit_table(
            TableSource(task["source"], label=task["source_name"]),
            folder / MODEL / BUNDLE,
            {**task["parameters"], "device": task["device"]},
            label=task["label"],
            normal=task["normal"],
            checkpoint=folder / CHECKPOINT,
            bad_cells=folder / table_scores.BAD_CELLS,
            reading=progress.reading,
        )
        summary = in_words_of_http(found)
        write_json(folder / FITTED, summary)
    if task.get("score"):  # a job of an older store has no such wish
        progress.stage("held-out scores", 0, 0, "rows")
        own = {name: task[name] for name in ("table", "label", "normal")}
        model = {
            "bundle": str(folder / MODEL / BUNDLE),
            "model_name": task["name"],
            "false_alarm_rate": None,
            "top": TOP_ROWS,
        }
        try:
            wish = {**task, **model, "fitted_on": own, "training_table": True}
            summary["scores"] = table_scores.score_upload(folder, wish, progress)
        except Exception as error:
            reason = _reason(error, task)
            if reason is None:
                raise
            summary["scores_error"] = reason  # the model is there, and stays
    return summary


def _renew(folder: Path, task: dict[str, Any], progress: ProgressFile) -> dict[str, Any]:
    """Update or recalibrate a model into a new folder; the old one is only read."""
    (folder / MODEL).mkdir(exist_ok=True)
    found = renew_table(
        task["kind"],
        task["bundle"],
        TableSource(task["source"], label=task["source_name"]),
        folder / MODEL / BUNDLE,
        label=task["label"],
        normal=task["normal"],
        false_alarm_rate=task["false_alarm_rate"],
        device=task["device"],
        reading=progress.reading,
    )
    return in_words_of_http(found)


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
