"""The paper preset over what the paper leaves open, on its ten smallest tables: does a choice explain its figures?

The text gives no learning rate, number of steps, batch size or scaling. Rates and steps are those that NPT-AD's authors
chose between on the same tables. The cosine of the rate ends with the last step, so a short training is no prefix of a
long one: the number of steps is a setting like the others, and picking it per table stands for picking the epoch.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from ptad.benchmark.catalogue import catalogue
from ptad.benchmark.experiments.variants import Experiment, Variant, paper_variant

N_TABLES = 10
STEPS = (100, 500, 1000)
SCALINGS = ("standard", "minmax")
#: What is crossed with steps and scaling: a name, and the settings that differ from the preset.
TRAININGS: dict[str, dict[str, Any]] = {
    "LAMB 0.01": {"learning_rate": 0.01},
    "LAMB 0.001": {"learning_rate": 0.001},
    "LAMB 0.01, context batch": {"learning_rate": 0.01, "context": "batch"},
    "LAMB 0.001, context batch": {"learning_rate": 0.001, "context": "batch"},
    "LAMB 0.01, batches of 64": {"learning_rate": 0.01, "batch_size": 64},
    "AdamW 0.001": {"optimizer": "adamw", "learning_rate": 0.001},
}


def smallest_tables(n_tables: int = N_TABLES) -> tuple[str, ...]:
    """The tables with the fewest rows."""
    return tuple(sorted(catalogue(), key=lambda name: catalogue()[name].rows)[:n_tables])


def _variants() -> tuple[Variant, ...]:
    return tuple(
        paper_variant(f"{training}, {scaling}, {steps} steps", scaling=scaling, n_steps=steps, **settings)
        for steps, scaling, (training, settings) in product(STEPS, SCALINGS, TRAININGS.items())
    )


PAPER_GRID = Experiment(
    "paper-grid", "The paper preset over what the paper leaves open", _variants(), smallest_tables()
)
