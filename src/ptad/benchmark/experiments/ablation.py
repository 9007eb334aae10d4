"""The eight rows of the paper's ablation table: masks, prototypes, orthogonality, one after the other."""

from __future__ import annotations

from ptad.benchmark.experiments.variants import Experiment, paper_variant

_BARE = {"data_mask": False, "projection_mask": "none", "prototypes": False, "orthogonality": False}
_DATA_MASK = {**_BARE, "data_mask": True}

ABLATION = Experiment(
    "ablation",
    "Ablation of masks, association prototypes and orthogonality",
    (
        paper_variant("nothing", **_BARE),
        paper_variant("data mask", **_DATA_MASK),
        paper_variant("+ single mask", **{**_DATA_MASK, "projection_mask": "single"}),
        paper_variant(
            "+ multiple masks, orthogonal", **{**_DATA_MASK, "projection_mask": "multiple", "orthogonality": True}
        ),
        paper_variant("+ random mask", **{**_DATA_MASK, "projection_mask": "random"}),
        paper_variant("+ prototypes", **{**_DATA_MASK, "prototypes": True}),
        paper_variant(
            "+ multiple masks, prototypes", **{**_DATA_MASK, "projection_mask": "multiple", "prototypes": True}
        ),
        paper_variant("full"),
    ),
)
