"""A model folder in, a checked ONNX file out."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ptad._version import __version__
from ptad.errors import Option, SettingError, needs_extra
from ptad.estimator import PTAD
from ptad.explanation import REASONS
from ptad.export.graph import TRACED_ON, make_graph
from ptad.export.runner import FORMAT, FORMAT_VERSION
from ptad.files import NewFile, OutputLock, write_errors
from ptad.parallel import CHUNK_ROWS
from ptad.terms.base import Reason

logger = logging.getLogger("ptad")


@dataclass(frozen=True)
class Exported:
    """Result of an export."""

    path: Path
    bytes: int
    parity: dict[int, float]  # batch size to the largest difference from the model, relative to the scores


def export_model(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Exported:
    """Write the model of a folder as an ONNX file, which is compared with the model before it gets its name.

    The file holds the reference rows, that is training rows: treat it as you treat the data.
    """
    with needs_extra("onnx", "Exporting a model"):
        import onnx
        import onnxruntime  # type: ignore[import-untyped] # noqa: F401
    from ptad.export.parity import check_parity

    target = Path(out)
    if target.is_dir():
        raise SettingError(f"'{target}' is a folder. Name a file to write, such as '{target / 'model.onnx'}'.")
    with write_errors(target, SettingError):
        lock = OutputLock(target)  # before the work: a path that cannot be written to is refused at once
    with lock:
        model = PTAD.load(folder, device="cpu")
        _refuse_batches(model, folder)
        graph = make_graph(PTAD.load(folder, device=TRACED_ON).detector_)
        onnx.helper.set_model_props(graph, properties(model))
        with write_errors(target, SettingError), NewFile(target) as staging:
            staging.write_bytes(graph.SerializeToString())
            parity = check_parity(model.detector_, staging)
    logger.info("wrote %s; largest difference from the model %.1e", target, max(parity.values()))
    return Exported(target, target.stat().st_size, parity)


def properties(model: PTAD) -> dict[str, str]:
    """Return the file's metadata: schema, terms, threshold and versions, as text or JSON."""
    calibration = model.detector_.calibration
    content: dict[str, Any] = {
        "schema": model.schema_.to_json(),
        "terms": [term.title() for term in model.config_.terms],
        "reasons": [REASONS[reason] for reason in Reason],
        "threshold": None if calibration is None else -model.offset_,
        "false_alarm_rate": None if calibration is None else model.false_alarm_rate_,
        "calibration": [] if calibration is None else calibration.scores.tolist(),
        "chunk_rows": CHUNK_ROWS,
    }
    return {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "ptad_version": __version__,
        "torch_version": str(torch.__version__),
        "preset": model.preset,
        **{name: json.dumps(value, ensure_ascii=False) for name, value in content.items()},
    }


def _refuse_batches(model: PTAD, folder: str | os.PathLike[str]) -> None:
    if model.detector_.batch_size is not None:
        raise SettingError(
            f"The model '{folder}' scores rows in batches: a row's score depends on the rows beside it, which a graph "
            "over single rows cannot say.",
            "Fit with {config}.",
            options=(Option("config", ("network.context", "reference")),),
        )
