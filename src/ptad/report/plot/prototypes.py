"""What the detector remembers of normal rows: basis vectors and association prototypes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ptad.estimator import PTAD
from ptad.report.plot.canvas import grid_of_axes, name_ticks


class PrototypeDisplay:
    """Heat maps of the basis vectors (as strength per column) and of the association prototypes.

    Parameters
    ----------
    basis_vectors : ndarray of shape (n_basis_vectors, n_columns)
        Length of each basis vector's part that belongs to each column; where the P-space is one of whole rows (the
        backbones ``dense`` and ``mlp``), how far the row that it decodes to lies from the centre in each column.
    prototypes : ndarray of shape (n_prototypes, n_columns), optional
        Normal patterns of how much attention each column draws.
    columns : sequence of str
        Names of the columns.

    Attributes
    ----------
    figure_, ax_
        The figure and the (n_panels, 1) array of axes, after ``plot``.
    """

    def __init__(self, *, basis_vectors: Any, prototypes: Any, columns: Any) -> None:
        self.basis_vectors = np.asarray(basis_vectors, dtype=np.float64)
        self.prototypes = None if prototypes is None else np.asarray(prototypes, dtype=np.float64)
        self.columns = [str(c) for c in columns]

    @classmethod
    def from_estimator(cls, estimator: PTAD, *, ax: Any = None) -> Self:
        """Draw the atoms of the first member."""
        check_is_fitted(estimator)
        network, names = estimator.scorer_.network, estimator.schema_.encoded_names
        vectors = network.projection.basis_vectors
        if network.config.backbone in ("mlp", "dense"):
            with torch.inference_mode():
                strength = network.backbone.decode(vectors.unsqueeze(1), None)[0][0, 0].abs().cpu().numpy()
        else:
            cells = vectors[0].cpu().numpy().reshape(vectors.shape[1], len(names), -1)
            strength = np.linalg.norm(cells, axis=2)
        atoms = None if network.prototypes is None else network.prototypes.prototypes[0].cpu().numpy()
        return cls(basis_vectors=strength, prototypes=atoms, columns=names).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on an array of one axes per panel or on a new figure."""
        panels = [("basis vector", self.basis_vectors, "strength", "viridis")]
        if self.prototypes is not None:
            panels.append(("prototype", self.prototypes, "attention", "RdBu_r"))
        rows = sum(len(values) for _, values, _, _ in panels)
        size = (min(max(7.0, 2.0 + 0.28 * len(self.columns)), 16.0), 2.2 + 0.3 * rows)
        self.figure_, self.ax_ = grid_of_axes(ax, (len(panels), 1), size, sharex=True)
        for drawn, (label, values, measure, colours) in zip(self.ax_[:, 0], panels, strict=True):
            # attention vectors have a sign: white is none
            limit = float(np.abs(values).max(initial=1e-12))
            image = drawn.imshow(
                values, aspect="auto", cmap=colours, vmin=-limit if colours == "RdBu_r" else 0.0, vmax=limit
            )
            drawn.set_yticks(range(len(values)), [f"{i}" for i in range(len(values))], fontsize="small")
            drawn.set_ylabel(label)
            drawn.tick_params(length=0)
            drawn.spines[:].set_visible(False)
            bar = self.figure_.colorbar(image, ax=drawn, pad=0.01)
            bar.set_label(measure, fontsize="small")
            bar.outline.set_visible(False)
        name_ticks(self.ax_[-1, 0].xaxis, self.columns, rotation=90, fontsize="small")
        return self
