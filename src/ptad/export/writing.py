"""A model folder in, a checked ONNX file out."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ptad._version import __version__
from ptad.arrays import Matrix
from ptad.attribution import final_contributions
from ptad.detector import Detector
from ptad.errors import Option, PtadError, SettingError, needs_extra
from ptad.estimator import PTAD
from ptad.explanation import REASONS, attribute_rows
from ptad.export.runner import FORMAT, FORMAT_VERSION, Runner
from ptad.files import NewFile, OutputLock, output_file, write_errors
from ptad.parallel import CHUNK_ROWS
from ptad.terms.base import Reason

logger = logging.getLogger("ptad")

BATCHES = (1, 7, 1024)  # sizes with which the file is compared with the model
TOLERANCE = 1e-6


class ParityError(PtadError, RuntimeError):
    """An exported model that differs from the model."""


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
        import torch  # noqa: F401
    from ptad.export.graph import TRACED_ON, make_graph

    target = output_file(out, SettingError)
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
        "torch_version": version("torch"),
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


def probe_rows(detector: Detector, n_rows: int = max(BATCHES)) -> Matrix:
    """Return encoded rows to compare on.

    Reference rows, neighbours of them, far outliers, missing cells, other and unseen categories, and an empty row.
    """
    rng = np.random.default_rng(0)
    known, features = detector.reference, detector.features
    rows = known[rng.integers(len(known), size=n_rows)]
    kind = np.arange(n_rows) % 8
    reach = np.select([kind < 2, kind < 6, kind == 6], [0.0, 0.1, 3.0], 1e6)
    numbers = features.numbers
    spread = np.std(np.nan_to_num(known[:, numbers]), axis=0)
    rows[:, numbers] += reach[:, None] * spread * rng.normal(size=(n_rows, len(numbers)))
    codes = rng.integers(0, features.n_categories + 1, size=rows.shape)  # the last one is that of unseen values
    other = (rng.random(rows.shape) < 0.2) & (kind > 3)[:, None] & (features.n_categories > 0)
    rows = np.where(other & ~np.isnan(rows), codes, rows)
    rows[(rng.random(rows.shape) < 0.2) & (kind % 2 == 1)[:, None]] = np.nan
    rows[n_rows // 2] = np.nan
    return rows


def check_parity(detector: Detector, path: str | os.PathLike[str]) -> dict[int, float]:
    """Return the largest difference per batch size, relative to the scores; above the tolerance, raise.

    Scores, terms and contributions are compared, and the reasons of all columns that contribute.
    """
    rows, runner = probe_rows(detector), Runner(path)
    score, terms, parts = attribute_rows(rows, detector)
    contributions = final_contributions(parts.contributions, parts.as_expected, score)
    scale = np.maximum(np.abs(score), np.median(np.abs(score)) + 1e-12)[:, None]
    result = {}
    for n in BATCHES:
        last = slice(len(rows) - n, None)
        out = runner.run(rows[last], chunk_rows=n)
        pairs = ((out.score[:, None], score[:, None]), (out.terms, terms), (out.contributions, contributions))
        worst = max(float((np.abs(a - b[last]) / scale[last]).max()) for a, b in pairs)
        contributing = contributions[last] > TOLERANCE * scale[last]
        same = (out.reasons == parts.reason[last]) & (out.partners == parts.partner[last])
        result[n] = worst if same[contributing].all() else np.inf
    worst_batch = max(result, key=lambda n: result[n] if np.isfinite(result[n]) else np.inf)
    if not result[worst_batch] <= TOLERANCE:
        what = f"by {result[worst_batch]:.1e} relative" if np.isfinite(result[worst_batch]) else "in its reasons"
        raise ParityError(
            f"The exported model differs from the model {what} at batch size {worst_batch}; at most {TOLERANCE:g} is "
            "allowed, and no file is left. Report it with the versions of torch and onnxruntime."
        )
    return result
