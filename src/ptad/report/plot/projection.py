"""A two-dimensional view of the P-space."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.decomposition import PCA

from ptad.errors import DataError
from ptad.report.plot.canvas import ANOMALY, INK, NORMAL, QUIET, bare, known_anomalies, network_of, one_axes, rows_text
from ptad.table_model import TableModel


class ProjectionDisplay:
    """Rows and basis vectors in the plane of the P-space in which the reference rows vary most.

    For models of the ``paper`` preset, whose network has a P-space.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, 2)
        Coordinates of the rows.
    reference : ndarray of shape (n_reference, 2)
        Coordinates of the training rows kept in the model.
    basis_vectors : ndarray of shape (n_basis_vectors, 2)
        Coordinates of the basis vectors.
    anomalous : ndarray of bool
        Which rows are anomalies.
    explained : tuple of two floats
        Share of the reference rows' variance along each axis.

    Attributes
    ----------
    figure_, ax_
        The figure and the axes, after ``plot``.
    """

    def __init__(
        self, *, rows: Any, reference: Any, basis_vectors: Any, anomalous: Any, explained: tuple[float, float]
    ) -> None:
        self.rows, self.reference = np.asarray(rows), np.asarray(reference)
        self.basis_vectors, self.anomalous = np.asarray(basis_vectors), np.asarray(anomalous, dtype=bool)
        self.explained = explained

    @classmethod
    def from_estimator(cls, estimator: TableModel, X: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Project the rows and draw. Red are rows with a true ``y``, or without one those that are flagged."""
        term = network_of(estimator, "ProjectionDisplay")
        detector = estimator.detector_
        rows = estimator.schema_.encode(X)
        latent = detector.pipeline.transform(rows)
        reference = detector.pipeline.transform(detector.reference[term.reference_index])
        if min(reference.shape) < 2:
            raise DataError("A view of the P-space needs at least two reference rows and two dimensions.")
        # PCA has a sign of its own choosing; it is fixed by the data, so the figure is the same every time
        plane = PCA(n_components=2, svd_solver="full").fit(reference.astype(np.float64))
        vectors = term.basis_vectors
        if y is not None:
            anomalous = known_anomalies(y, len(rows))
        elif detector.calibration is not None:
            anomalous = detector.scores(rows) > -estimator.offset_
        else:
            anomalous = np.zeros(len(latent), dtype=bool)
        return cls(
            rows=plane.transform(latent),
            reference=plane.transform(reference),
            basis_vectors=plane.transform(vectors),
            anomalous=anomalous,
            explained=(float(plane.explained_variance_ratio_[0]), float(plane.explained_variance_ratio_[1])),
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax`` or on a new figure."""
        self.figure_, self.ax_ = one_axes(ax, (6.4, 5.0))
        ax = self.ax_
        ax.scatter(*self.reference.T, s=14, color=QUIET, linewidths=0, label="reference rows")
        normal, anomalous = self.rows[~self.anomalous], self.rows[self.anomalous]
        ax.scatter(*normal.T, s=14, color=NORMAL, alpha=0.7, linewidths=0, label=f"normal: {rows_text(len(normal))}")
        ax.scatter(
            *anomalous.T, s=34, marker="^", color=ANOMALY, alpha=0.85, linewidths=0, zorder=2.5,
            label=f"anomalous: {rows_text(len(anomalous))}",
        )  # fmt: skip
        ax.scatter(
            *self.basis_vectors.T, s=150, marker="*", color="#f2b705", edgecolors=INK, linewidths=0.8,
            label="basis vectors", zorder=3,
        )  # fmt: skip
        ax.set(
            xlabel=f"first principal axis of the P-space ({100.0 * self.explained[0]:.0f} %)",
            ylabel=f"second principal axis ({100.0 * self.explained[1]:.0f} %)",
        )
        bare(ax)
        ax.legend(frameon=False, fontsize="small")
        return self
