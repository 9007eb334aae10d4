"""What each term of the default preset adds: one taken away at a time, on any collection."""

from __future__ import annotations

from ptad.benchmark.experiments.variants import Experiment, Variant
from ptad.config import PRESETS

DEFAULT_PARTS = Experiment(
    "default-parts",
    "The default preset with one term taken away",
    (
        Variant("default", "ptad"),
        *(
            Variant(f"without {name.replace('_', ' ')}", "ptad", {"without": name})
            for name in (term.title() for term in PRESETS["default"].terms)
        ),
    ),
)
