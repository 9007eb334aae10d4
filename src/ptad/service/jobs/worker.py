"""The process that does one job: ``python -m ptad.service.jobs.worker FOLDER``.

It reads ``task.json``, appends to ``progress.jsonl``, and writes ``result.json`` at the end. Killed at any moment, it
can be started again and resumes. It does not outlive the service.
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
from ptad.service.error_messages import is_disk_full, short_traceback, summary_for_http, user_message
from ptad.service.jobs import table_scores
from ptad.service.jobs.progress import ProgressFile
from ptad.service.process_limits import limit_process
from ptad.service.store import BUNDLE
from ptad.tables import TableSource

TASK, RESULT = "task.json", "result.json"
FITTED = "fitted.json"  # the summary of a fit whose model is saved
CHECKPOINT = "checkpoint"
MODEL = "model"  # the folder that will be moved to the models of the store
EXIT_DISK_FULL = 75  # the exit code of a worker that could not even write its result
TOP_ROWS = 50


def main() -> None:
    """Do the job and write a result, which may be an error of the user."""
    folder = Path(sys.argv[1])
    _exit_with_parent()
    with (folder / "lock").open("w") as file:
        lock(file.fileno(), wait=True)  # the worker of a killed service may need a moment to exit
        if not (folder / RESULT).exists():
            task = read_json(folder / TASK)
            # not the address space (AS): libraries for GPUs reserve far more of it than they use
            limit_process(**({"DATA": task["memory"]} if task.get("memory") else {}))
            try:
                write_json(folder / RESULT, _result(folder, task))
            except OSError as error:
                sys.exit(EXIT_DISK_FULL if is_disk_full(error) else short_traceback(error))


def _result(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    functions = {"fit": _fit, "score": table_scores.score_upload, "update": _renew, "recalibrate": _renew}
    progress = ProgressFile(folder)
    try:
        with progress.receiving():
            return {"summary": functions[task["kind"]](folder, task, progress)}
    except Exception as error:
        message = _message(error, task)
        if message is None:
            sys.exit(short_traceback(error))  # the service tries again; a whole traceback would quote data in the log
        return {"error": message}


def _message(error: Exception, task: dict[str, Any]) -> str | None:
    """Return why a job ends, for its owner; None if another attempt may succeed."""
    if (message := user_message(error)) is not None:
        return message
    if isinstance(error, MemoryError) or "allocate memory" in str(error):  # torch has no class for it
        most = task.get("memory", 0)
        problem = "There was not enough memory for this table."
        if not most:
            return f"{problem} Use fewer rows or columns."
        remedy = "Use fewer rows or columns, or ask the operator of the service to raise worker_memory."
        return f"{problem} A job may use {most / 2**30:.1f} GiB. {remedy}"
    return None


def _fit(folder: Path, task: dict[str, Any], progress: ProgressFile) -> dict[str, Any]:
    """Fit a model and, if requested, score the training table; a kill in between does not lose the fit."""
    summary: dict[str, Any] | None = read_json(folder / FITTED)
    if summary is None:
        if any((folder / CHECKPOINT).rglob("*.safetensors")):
            progress.note("The fit resumes from its checkpoint.")
        (folder / MODEL).mkdir(exist_ok=True)
        fit_summary = fit_table(
            TableSource(task["source"], label=task["source_name"]),
            folder / MODEL / BUNDLE,
            {**task["parameters"], "device": task["device"]},
            label=task["label"],
            normal=task["normal"],
            checkpoint=folder / CHECKPOINT,
            bad_cells=folder / table_scores.BAD_CELLS,
            reading=progress.reading,
        )
        summary = summary_for_http(fit_summary)
        write_json(folder / FITTED, summary)
    if task.get("score"):  # absent in jobs of older stores
        progress.stage("held-out scores", 0, 0, "rows")
        scoring = {
            **task,
            "bundle": str(folder / MODEL / BUNDLE),
            "model_name": task["name"],
            "false_alarm_rate": None,
            "top": TOP_ROWS,
            "fitted_on": {name: task[name] for name in ("table", "label", "normal")},
            "training_table": True,
        }
        try:
            summary["scores"] = table_scores.score_upload(folder, scoring, progress)
        except Exception as error:
            message = _message(error, task)
            if message is None:
                raise
            summary["scores_error"] = message  # the model is kept
    return summary


def _renew(folder: Path, task: dict[str, Any], progress: ProgressFile) -> dict[str, Any]:
    """Update or recalibrate a model into a new folder; the old one is only read."""
    (folder / MODEL).mkdir(exist_ok=True)
    summary = renew_table(
        task["kind"],
        task["bundle"],
        TableSource(task["source"], label=task["source_name"]),
        folder / MODEL / BUNDLE,
        label=task["label"],
        normal=task["normal"],
        false_alarm_rate=task["false_alarm_rate"],
        device=task["device"],
        bad_cells=folder / table_scores.BAD_CELLS,
        reading=progress.reading,
    )
    return summary_for_http(summary)


def _exit_with_parent() -> None:
    """Exit when the service has ended, however it ended."""
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
