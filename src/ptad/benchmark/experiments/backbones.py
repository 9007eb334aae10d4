"""MLP, transformer and NPT; each plain, with the masking strategy, with prototypes, with both.

An MLP has no attention between columns and therefore no prototypes.
"""

from __future__ import annotations

from ptad.benchmark.experiments.variants import Experiment, Variant, paper_variant


def _variants() -> tuple[Variant, ...]:
    found = []
    for backbone in ("mlp", "transformer", "npt"):
        for masks in (False, True):
            for prototypes in (False,) if backbone == "mlp" else (False, True):
                parts = [name for name, on in (("masks", masks), ("prototypes", prototypes)) if on]
                found.append(
                    paper_variant(
                        f"{backbone}, {' and '.join(parts) or 'plain'}",
                        backbone=backbone,
                        data_mask=masks,
                        projection_mask="multiple" if masks else "none",
                        orthogonality=masks,
                        prototypes=prototypes,
                    )
                )
    return tuple(found)


BACKBONES = Experiment("backbones", "Backbones with and without masks and prototypes", _variants())
