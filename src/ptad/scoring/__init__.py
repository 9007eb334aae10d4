"""Scores, their parts, calibration and explanation."""

from ptad.scoring.calibration import Calibration
from ptad.scoring.explanation import PART_NAMES, Explanation, make_explanation
from ptad.scoring.parts import Cells, Parts
from ptad.scoring.retrieval import Retrieval
from ptad.scoring.scorer import Context, Scorer

__all__ = [
    "PART_NAMES",
    "Calibration",
    "Cells",
    "Context",
    "Explanation",
    "Parts",
    "Retrieval",
    "Scorer",
    "make_explanation",
]
