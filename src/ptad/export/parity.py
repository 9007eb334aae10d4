"""The check that an exported model says what the model says."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ptad.errors import PtadError
from ptad.estimator import PTAD
from ptad.export.runner import Runner

BATCHES = (1, 7, 1024)
TOLERANCE = 1e-4


class ParityError(PtadError, RuntimeError):
    """An exported model that differs from the model."""


def probe_rows(model: PTAD, n_rows: int = max(BATCHES)) -> NDArray[np.float32]:
    """Return encoded rows to compare on: training rows, neighbours of them, gaps, far outliers, and an empty row."""
    rng = np.random.default_rng(0)
    scorer, schema = model.scorer_, model.schema_
    known = scorer.reference_rows[0] if scorer.retrieval is None else scorer.retrieval.rows
    rows = known.float().cpu().numpy()[rng.integers(len(known), size=n_rows)].astype(np.float64)
    kind = np.arange(n_rows) % 8
    reach = np.select([kind < 3, kind < 6, kind == 6], [0.0, 0.1, 3.0], 100.0)
    rows += reach[:, None] * rng.normal(size=rows.shape)
    rows[(rng.random(rows.shape) < 0.2) & (kind % 2 == 1)[:, None]] = np.nan
    rows[n_rows // 2] = np.nan
    if schema.clip is not None:  # no encoded value lies beyond
        rows = rows.clip(-schema.clip, schema.clip + (1.0 if schema.scaling == "minmax" else 0.0))
    return rows.astype(np.float32)


def check_parity(model: PTAD, path: str | PathLike[str]) -> dict[int, float]:
    """Return the largest difference per batch size, relative to the row's score; above the tolerance, raise.

    Scores, parts and contributions are compared.
    """
    rows, runner = probe_rows(model), Runner(path)
    scorer, found = model.scorer_, {}
    for n in BATCHES:
        x = rows[-n:]
        parts = scorer.parts(x)
        expected = (
            parts.score[:, None],
            np.stack([getattr(parts, name) for name in runner.part_names], axis=1),
            scorer.cells(x).contributions,
        )
        score, *others = runner.run(x, chunk_rows=n)
        differences = [np.abs(a - b).max(axis=1) for a, b in zip((score[:, None], *others), expected, strict=True)]
        found[n] = float((np.max(differences, axis=0) / np.maximum(np.abs(parts.score), 1e-12)).max())
    worst = max(found, key=lambda n: found[n] if np.isfinite(found[n]) else np.inf)
    if not found[worst] <= TOLERANCE:
        raise ParityError(
            f"The exported model differs from the model by {found[worst]:.1e} relative at batch size {worst}, more "
            f"than {TOLERANCE:g}; no file is left. Report it with the versions of torch and onnxruntime."
        )
    return found
