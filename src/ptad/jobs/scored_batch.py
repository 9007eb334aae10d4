"""Some rows scored: what every engine and the service do with a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptad.explanation import make_explanation
from ptad.jobs.cell_counts import CellCounts
from ptad.jobs.explain import why_columns
from ptad.tables import BadCells

if TYPE_CHECKING:
    from ptad.jobs.score import AnyModel


@dataclass(frozen=True)
class ScoredBatch:
    """What scoring says of some rows.

    Attributes
    ----------
    columns : dict of str to pyarrow.Array
        Score, p-value and flag, and the strongest columns if asked for.
    cells : CellCounts
        What is missing or unseen.
    bad : BadCells
        The cells that cannot be read.
    encoded : ndarray of shape (n_rows, n_features)
        The rows as the model sees them.
    """

    columns: dict[str, pa.Array]
    cells: CellCounts
    bad: BadCells
    encoded: NDArray[np.float64]


def score_batch(model: AnyModel, rows: Any, explain: int = 0, *, strict: bool = False) -> ScoredBatch:
    """Score rows and name their ``explain`` strongest columns; ``strict`` refuses a cell that cannot be read."""
    bad = BadCells(strict=strict)
    encoded = model.schema_.encode(rows, bad)
    explanation = make_explanation(rows, model.schema_, model.detector_, bad, encoded) if explain else None
    scores = model.detector_.scores(encoded) if explanation is None else explanation.score_values
    calibration = model.detector_.calibration
    nothing = np.ones(len(scores), dtype=bool) if calibration is None else None
    p_values = scores if calibration is None else calibration.p_value(scores)
    flagged = np.zeros(len(scores), dtype=bool) if calibration is None else scores > -model.offset_
    found = {
        "score": pa.array(scores, pa.float64()),
        "p_value": pa.array(p_values, pa.float64(), mask=nothing),
        "anomaly": pa.array(flagged, pa.bool_(), mask=nothing),
    }
    if explanation is not None:
        found |= why_columns(explanation, explain)
    return ScoredBatch(found, CellCounts.of(encoded, model.schema_, bad), bad, encoded)
