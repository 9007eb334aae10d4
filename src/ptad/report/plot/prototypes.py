"""What the paper's network keeps of normal rows: basis vectors and association prototypes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ptad.report.plot.canvas import grid_of_axes, name_ticks, network_of
from ptad.table_model import TableModel


class PrototypeDisplay:
    """Heat maps of the basis vectors (as strength per column) and of the association prototypes.

    For models of the ``paper`` preset, whose network has them.

    Parameters
    ----------
    basis_vectors : ndarray of shape (n_basis_vectors, n_columns)
        Length of each basis vector's part that belongs to each column; where the P-space is one of whole rows (the
        backbone ``mlp``), how far the row that it decodes to lies from the centre in each column.
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
    def from_estimator(cls, estimator: TableModel, *, ax: Any = None) -> Self:
        """Draw the atoms of the network."""
        term = network_of(estimator, "PrototypeDisplay")
        names = _encoded_names(estimator, term)
        return cls(basis_vectors=term.basis_strength, prototypes=term.prototypes, columns=names).plot(ax)

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


def _encoded_names(estimator: TableModel, term: Any) -> list[str]:
    """Return a name for every input of the network, which has one for each category."""
    schema, names = estimator.schema_, []
    for place, code in zip(term.encoding.source.tolist(), term.encoding.code.tolist(), strict=True):
        column = schema.columns[schema.features.column[place]]
        if code == code:
            names.append(f"{column.name}={[*column.values, 'unseen'][int(code)]}")
        else:
            names.append(schema.encoded_names[place])
    return names
