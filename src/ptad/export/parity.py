"""The check that an exported model gives the outputs of the model."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ptad.attribution import final_contributions
from ptad.detector import Detector
from ptad.errors import PtadError
from ptad.explanation import attribute_rows
from ptad.export.runner import Runner

BATCHES = (1, 7, 1024)
TOLERANCE = 1e-6


class ParityError(PtadError, RuntimeError):
    """An exported model that differs from the model."""


def probe_rows(detector: Detector, n_rows: int = max(BATCHES)) -> NDArray[np.float64]:
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


def check_parity(detector: Detector, path: str | PathLike[str]) -> dict[int, float]:
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
