"""Scores, their parts, calibration and explanation."""

from ptad.scoring.calibration import Calibration
from ptad.scoring.explanation import PART_NAMES, Explanation, make_explanation
from ptad.scoring.parts import Cells, Parts
from ptad.scoring.retrieval import Retrieval, column_weights
from ptad.scoring.scorer import Context, Scorer
from ptad.scoring.space import Space

__all__ = [
    "PART_NAMES",
    "Calibration",
    "Cells",
    "Context",
    "Explanation",
    "Parts",
    "Retrieval",
    "Scorer",
    "Space",
    "column_weights",
    "make_explanation",
]
