"""Scores, their parts, calibration and explanation."""

from ptad.scoring.calibration import Calibration
from ptad.scoring.explanation import Explanation, make_explanation
from ptad.scoring.parts import Cells, Parts
from ptad.scoring.scorer import Context, Scorer

__all__ = ["Calibration", "Cells", "Context", "Explanation", "Parts", "Scorer", "make_explanation"]
