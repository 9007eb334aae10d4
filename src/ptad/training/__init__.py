"""Loss, optimiser, schedule, the loop, and the plan of who learns from which rows."""

from ptad.training.checkpoint import Checkpoint
from ptad.training.loop import Data, History, Progress, Trainer
from ptad.training.parallel import Parallel, data_parallel
from ptad.training.plan import MAX_CALIBRATION_ROWS, Member, plan_members

__all__ = [
    "MAX_CALIBRATION_ROWS",
    "Checkpoint",
    "Data",
    "History",
    "Member",
    "Parallel",
    "Progress",
    "Trainer",
    "data_parallel",
    "plan_members",
]
