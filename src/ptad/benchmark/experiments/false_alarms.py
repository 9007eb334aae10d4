"""The paper preset with a calibrated threshold: observed false alarms beside those of the default.

In the main comparison the paper preset is fitted once, without calibration, as the paper does.
"""

from __future__ import annotations

from ptad.benchmark.experiments.variants import Experiment, Variant

FALSE_ALARMS = Experiment(
    "false-alarms",
    "Observed false alarms of both presets",
    (
        Variant("default", "ptad"),
        Variant("paper", "ptad-paper", {"config": {"calibration.method": "auto"}}),
    ),
)
