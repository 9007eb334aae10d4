"""A histogram of scores, filled batch by batch, with bins that are fine enough to choose another threshold later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Matrix

STEP = 0.01  # between neighbouring edges: a hundredth of the spread of normal scores, far out 1 % of the score
REACH = 35.0  # the outermost edges, 1e15 spreads away; scores outside fall into the first or last bin
MOST_BINS = 1500  # in the page


@dataclass(frozen=True)
class ScoreScale:
    """A symmetric log scale: linear around the scores of normal rows, logarithmic far away on both sides.

    A score may be negative, and anomalies may lie thousands of spreads away: neither a linear nor a logarithmic axis
    shows both.
    """

    centre: float
    unit: float

    @classmethod
    def of(cls, scores: Matrix) -> ScoreScale:
        """Return the scale that is linear around these scores of normal rows."""
        low, centre, high = np.quantile(scores, [0.25, 0.5, 0.75])
        unit = high - low
        # the page has nine digits of a score: a smaller unit would be noise
        return cls(float(centre), float(max(unit, 1e-9 * max(abs(centre), 1.0))))

    def __call__(self, scores: Matrix) -> Matrix:
        return np.arcsinh((np.asarray(scores) - self.centre) / self.unit)

    def inverse(self, places: Matrix) -> Matrix:
        """Return the scores at these positions of the axis."""
        return self.centre + self.unit * np.sinh(places)


class ScoreHistogram:
    """Counts of scores between the edges of a scale, one of which is the threshold: counts beyond it are exact.

    Bin i holds the scores in (edges[i], edges[i + 1]].
    """

    def __init__(self, threshold: float, scale: ScoreScale) -> None:
        grid = scale.inverse(np.linspace(-REACH, REACH, round(2 * REACH / STEP) + 1))
        self.threshold = threshold
        self.edges: Matrix = np.unique(np.append(grid, threshold))
        self.counts = np.zeros(len(self.edges) + 1, dtype=np.int64)

    def add(self, scores: Matrix) -> None:
        """Count some scores."""
        places = np.searchsorted(self.edges, scores, side="left")
        self.counts += np.bincount(places, minlength=len(self.counts))

    @property
    def n_flagged(self) -> int:
        """Number of scores beyond the threshold."""
        return int(self.counts[np.searchsorted(self.edges, self.threshold) + 1 :].sum())


def common_edges(histograms: list[ScoreHistogram]) -> tuple[Matrix, list[NDArray[np.int64]]]:
    """Return at most ``MOST_BINS`` edges, and the counts of every histogram between them.

    Empty bins at both ends are removed and neighbours merged, but not across the threshold. There is one more count
    than edges: the first is for scores up to the first edge.
    """
    edges, threshold = histograms[0].edges, histograms[0].threshold
    total = np.sum([h.counts for h in histograms], axis=0)
    filled = np.flatnonzero(total)
    place = int(np.searchsorted(edges, threshold))
    first = max(min(int(filled[0]), place) - 1, 0) if len(filled) else place
    last = min(max(int(filled[-1]), place + 1), len(edges) - 1) if len(filled) else place
    step = -(-(last - first + 1) // MOST_BINS)
    # from the threshold outwards, so that it stays an edge
    index = np.unique(np.concatenate([np.arange(place, first - step, -step), np.arange(place, last + step, step)]))
    index = index[(index >= 0) & (index < len(edges))]
    starts = np.concatenate([[0], index + 1])
    return edges[index], [np.add.reduceat(h.counts, starts) for h in histograms]


def roc_auc(normal: NDArray[np.int64], anomalies: NDArray[np.int64]) -> float | None:
    """Return the area under the ROC curve from binned scores; a pair in one bin counts half."""
    if not normal.sum() or not anomalies.sum():
        return None
    below = np.cumsum(normal) - normal
    return float(np.sum(anomalies * (below + 0.5 * normal)) / (normal.sum() * anomalies.sum()))
