"""The paper's two mask figures: P-space masks and soft data-space masks of a normal and an anomalous cardio row.

The two rows of the first figure are chosen to have the same masking rate, as in the paper, so that they differ only in
which columns are masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptad.arrays import Mask, Matrix
from ptad.benchmark.collections import load_dataset
from ptad.benchmark.experiments.base import Measurement
from ptad.benchmark.figures import pyplot_for_files, save
from ptad.benchmark.loading import half_split
from ptad.benchmark.plan import RunSettings


def mask_rows(directory: Path, out: Path, settings: RunSettings) -> Iterator[dict[str, str]]:
    """Fit the paper preset on cardio and draw ``masks_pspace.png`` and ``masks_soft.png`` beside ``out``."""
    data = load_dataset(directory, "cardio")
    split = half_split(data.y, 0)
    hidden, soft = row_masks(data.X[split.train], data.X[split.test], settings.device)
    return describe_masks(hidden, soft, data.y[split.test], out)


def describe_masks(hidden: Matrix, soft: Matrix, labels: Mask, out: Path) -> Iterator[dict[str, str]]:
    """Draw a pair of rows and yield the statistics of all normal and all anomalous ones, which ``labels`` marks."""
    normal, anomaly = equal_rate_pair(hidden.mean(axis=(1, 2)), labels)
    draw_pair(hidden[normal], hidden[anomaly], "share hidden in the P-space", out.with_name("masks_pspace.png"))
    draw_pair(soft[normal][None], soft[anomaly][None], "soft mask in the data space", out.with_name("masks_soft.png"))
    for name, members in (("normal", ~labels), ("anomalous", labels)):
        rate = hidden[members].mean(axis=(1, 2))
        yield {
            "Test rows": name,
            "masking rate": f"{rate.mean():.4f}",
            "its deviation": f"{rate.std():.4f}",
            "columns hidden by more than half": f"{(hidden[members].mean(axis=1) > 0.5).mean():.4f}",
            "mean soft mask": f"{soft[members].mean():.4f}",
        }


def row_masks(
    train: npt.NDArray[np.float32], test: npt.NDArray[np.float32], device: str, **options: Any
) -> tuple[Matrix, Matrix]:
    """Fit the paper preset; return the hidden share per row, branch and column (n, K, d), and soft masks (n, d)."""
    import torch

    from ptad.estimator import PTAD

    config = {"calibration.method": "none", **{f"network.{key}": value for key, value in options.items()}}
    model = PTAD(preset="paper", config=config, device=device, random_state=0, verbose=0).fit(train)
    term: Any = model.detector_.pipeline.terms[0]
    encoded = term.encoding.encode(model.schema_.encode(test)).double()
    with torch.inference_mode():
        output = term.scorer.network(encoded, term.scorer.reference)
    visible = output.projection_masks.double().unflatten(-1, (encoded.shape[1], -1)).mean(-1)
    return (1.0 - visible.transpose(0, 1)).cpu().numpy(), output.data_mask.double().cpu().numpy()


def equal_rate_pair(rates: Matrix, labels: Mask) -> tuple[int, int]:
    """Return a normal and an anomalous row with nearly equal masking rates, near the median rate."""
    normal, anomalous = np.flatnonzero(~labels), np.flatnonzero(labels)
    gap = np.abs(rates[normal][:, None] - rates[anomalous][None, :])
    from_median = np.abs(rates[normal][:, None] - np.median(rates))
    best = np.unravel_index(np.argmin(gap + 0.1 * from_median), gap.shape)
    return int(normal[best[0]]), int(anomalous[best[1]])


def draw_pair(left: Matrix, right: Matrix, label: str, path: Path) -> None:
    """Draw two heat maps (branches x columns) side by side."""
    size = (10, 2.6 + 0.25 * len(left))
    figure, axes = pyplot_for_files().subplots(1, 2, figsize=size, layout="constrained", sharey=True)
    for axis, values, title in ((axes[0], left, "normal row"), (axes[1], right, "anomalous row")):
        image = axis.imshow(values, aspect="auto", cmap="magma_r", vmin=0.0, vmax=1.0)
        axis.set_title(f"{title}, mean {values.mean():.2f}", fontsize=10)
        axis.set_xlabel("column", fontsize=9)
        axis.locator_params(axis="x", integer=True)
        axis.set_yticks(range(len(values)), [str(k + 1) for k in range(len(values))])
    if len(left) > 1:
        axes[0].set_ylabel("basis vector", fontsize=9)
    else:
        axes[0].set_yticks([])
    figure.colorbar(image, ax=axes, label=label)
    save(figure, path)


MASKS = Measurement("P-space and data-space masks on cardio", mask_rows)
