"""Pretrained: a small network over a row's columns and its neighbours, whose weights were trained on other tables.

The weights come with the package; nothing is trained on the user's table. No weight belongs to a column: every column
is described by the same few numbers (how far out the value is, how far from the neighbours', how well they rebuild
it), as they are and in units of what is usual for normal rows of the table. The network gives every column g_j; the
value of the term is log mean exp g_j. The order of columns and of reference rows plays no part, and neither do other
rows. It was trained on numbers, in tables that are hardly ever wider than ``most_features``: wider tables, and those
with categories, get nothing from it.

Shape
-----
cells    (n, n_features, 2 x N_CELL)
summary  (n, 2 x N_SUMMARY)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, ClassVar, Self

import numpy as np

from ptad.arrays import Array, Matrix, count_below, floats, largest, like, namespace, on_device, softplus, to_numpy
from ptad.layout import ArrayLayout
from ptad.reference import Batch, Reference
from ptad.settings import setting
from ptad.tables.features import Features
from ptad.terms.base import FitContext, Layouts, State, TermSettings, TermValues
from ptad.terms.local_reconstruction import FIRM_RIDGE, LocalReconstruction, LocalReconstructionSettings
from ptad.terms.neighbour_term import NeighbourTerm
from ptad.terms.tail_probability import log_mean_exp

N_CELL, N_SUMMARY, WIDTH = 10, 13, 32
SHAPES: dict[str, tuple[int, ...]] = {
    "cell.0": (2 * N_CELL, 2 * WIDTH),
    "cell.1": (2 * WIDTH, WIDTH),
    "row.0": (2 * N_SUMMARY, 2 * WIDTH),
    "row.1": (2 * WIDTH, WIDTH),
    "context": (2 * WIDTH, WIDTH),
    "head.0": (WIDTH, WIDTH),
    "head.1": (WIDTH, 1),
}
MOST = 1e3  # of a weight that is read from a bundle
N_LEFT_OUT = 256  # rows, at most a quarter of the reference rows, that show what is usual
FEW_NEIGHBOURS = 8


@dataclass(frozen=True)
class PretrainedSettings(TermSettings):
    """Settings of :class:`Pretrained`."""

    name: ClassVar[str] = "pretrained"

    most_features: int = setting(32, low=1, high=10_000)  # the tables of its training are hardly ever wider

    @classmethod
    def term(cls) -> type[Pretrained]:
        return Pretrained


class Pretrained(NeighbourTerm):
    """Logarithm of the mean exponential of what the network says about every column."""

    settings: PretrainedSettings

    def __init__(self, state: State, reference: Reference, settings: PretrainedSettings) -> None:
        super().__init__(state, reference, settings)
        self._silent = is_silent(reference.features, settings)
        self.standardised = not self._silent  # where it says nothing, it adds nothing
        self._local = LocalReconstruction({}, reference, LocalReconstructionSettings())
        if not self._silent:
            self._usual_row  # noqa: B018  made here, once, and not by several threads of a scoring

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Take the weights of the package; a saved model keeps its scores when the package brings others."""
        return cls({} if is_silent(reference.features, settings) else weights(), reference, settings)

    def _described(self, batch: Batch) -> tuple[Array, Array]:
        """Return (n, d, N_CELL) and (n, N_SUMMARY): what the network reads, the same for tables of any kind.

        Logarithms have a least amount added that counts as none; factors bring all to the same size.
        """
        xp: Any = namespace(batch.rows)
        found, coordinates = batch.neighbourhood, batch.reference.coordinates
        k, m = found.differences.shape[1], found.differences.shape[2] // 2
        # A row's differences to its neighbours: every feature by value, then every feature by rank.
        apart, nearest_by_rank = found.differences[:, :, :m], found.differences[:, 0, m:]
        size = xp.abs(apart)
        gap = -largest(-size)  # to the neighbour that is nearest in the column
        spread = ((apart - apart.mean(axis=1)[:, None]) ** 2).mean(axis=1) ** 0.5
        distances = xp.einsum("nkc,nkc->nk", found.differences, found.differences)
        by_value = xp.einsum("nkc,nkc->nk", apart, apart)
        # Where the value stands among all reference rows, and among the neighbours.
        n_knots = coordinates.knots.shape[1]
        below, up_to = (floats(count) / n_knots for count in count_below(coordinates.knots, batch.points[:, :m]))
        tail = _surprise(up_to, 1.0 - below, n_knots)
        local_tail = _surprise(floats(apart <= 0.0).mean(axis=1), floats(apart >= 0.0).mean(axis=1), k)
        # How well the neighbours rebuild the row: y as in local_reconstruction.py, and what is missed by column.
        y_squared = self._local.factor(found, self._local.settings.ridge)[:, -1, :-1] ** 2
        squared = self._local.reconstructed(found, FIRM_RIDGE)[1] ** 2
        missed = squared[:, :m] + squared[:, m:]
        cells = {
            "tail": tail / 3.0,  # how far out the value is in its column
            "equal rows": xp.log(up_to - below + 1e-3) / 3.0,  # a value that many rows have is not new
            "agreement": self._agreement + 0.0 * tail,  # where rows usually agree, a new value tells more
            "gap": xp.log(gap + 1e-4) / 3.0 + 1.0,  # whether any neighbour comes near the value
            "missed": xp.log(missed + 1e-6) / 4.0 + 1.0,  # what all neighbours together cannot rebuild
            "local tail": local_tail,  # how far out the value is among the neighbours'
            "equal neighbours": floats(apart == 0.0).mean(axis=1),  # a code that the neighbours share is usual
            "spread": xp.log(spread + 1e-3) / 3.0 + 1.0,  # a gap tells more where the neighbours agree
            "nearest by value": 3.0 * size[:, 0],  # where the row differs from the one most like it
            "nearest by rank": 3.0 * xp.abs(nearest_by_rank),  # the same, whatever the tails of the column
        }
        summary = {
            "local reconstruction": -xp.log(
                y_squared.sum(axis=1)
            ),  # the four strongest terms, for the network to weigh
            "nearest row": xp.log(1e-6 - largest(-by_value)),
            "unmatched columns": xp.log(floats(gap > 0.0).sum(axis=1) + 0.5),
            "tail probability": log_mean_exp(tail),
            # y is found from the nearest neighbour on: its first entries are those of a fit with the nearest alone
            "few neighbours": -xp.log(y_squared[:, :FEW_NEIGHBOURS].sum(axis=1)),
            "nearest": xp.log(distances[:, 0] + 1e-6),  # how dense it is around the row, at three distances
            "fifth": xp.log(distances[:, min(4, k - 1)] + 1e-6),
            "farthest": xp.log(distances[:, k - 1] + 1e-6),
            "local tails": log_mean_exp(local_tail),  # the columns that are farthest out among the neighbours
            "missed": xp.log(missed.sum(axis=1) + 1e-6),  # what is missed by a firm fit, which cannot follow an anomaly
            "mean gap": xp.log(gap.mean(axis=1) + 1e-4),  # whether the row is new in most columns
            "mean tail": tail.mean(axis=1),  # whether all columns are a little out,
            "largest tail": largest(tail),  # or one is far out
        }
        return xp.stack(list(cells.values()), axis=2), xp.stack(list(summary.values()), axis=1)

    @cached_property
    def _agreement(self) -> Array:
        """Return (n_features,): the chance that two reference rows have the same value."""
        knots = to_numpy(self.reference.coordinates.knots)
        shares = [np.unique(values, return_counts=True)[1] / len(values) for values in knots]
        return on_device(np.array([(share**2).sum() for share in shares]), self.reference.device)

    @cached_property
    def _usual_row(self) -> tuple[Array, Array, Array, Array]:
        """Return mean and spread of what describes normal rows, held out of those that they are compared with."""
        rows, n = self.reference.rows, len(self.reference.rows)
        along = np.argsort(to_numpy(self.reference.search.points).sum(axis=1))  # whatever the order of the rows
        count = min(N_LEFT_OUT, n // 4)
        places = along[((np.arange(count) + 0.5) * n / max(count, 1)).astype(np.int64)]
        others = np.ones(n, dtype=bool)
        others[places] = False
        if len(places) < 2:  # too few rows to leave some out
            places, others = np.arange(n), np.ones(n, dtype=bool)
        rest = Reference(rows[others], self.features, self.reference.settings, self.reference.device)
        cells, summary = self._described(Batch(on_device(rows[places], self.reference.device), rest))
        spreads = [((x - x.mean(axis=0)) ** 2).mean(axis=0) ** 0.5 for x in (cells, summary)]
        return cells.mean(axis=0), spreads[0] + 0.1, summary.mean(axis=0), spreads[1] + 0.05

    def inputs(self, batch: Batch) -> tuple[Array, Array]:
        """Return the cells and the summary of every row, as they are and in units of what is usual."""
        xp: Any = namespace(batch.rows)
        cells, summary = self._described(batch)
        cell_mean, cell_spread, mean, spread = self._usual_row
        unusual = xp.clip((cells - cell_mean) / cell_spread, -5.0, 8.0) / 2.0
        z = xp.clip((summary - mean) / spread, -4.0, 12.0) / 3.0
        return xp.concatenate([cells, unusual], axis=2), xp.concatenate([z, xp.log1p(softplus(6.0 * z))], axis=1)

    def _said(self, batch: Batch) -> Array:
        """Return (n, d): what the network says about every feature."""
        return forward(self._state, *self.inputs(batch))

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the mean over the columns."""
        if self._silent:
            return namespace(batch.rows).zeros_like(batch.points[:, 0])
        return log_mean_exp(self._said(batch))

    def explain(self, batch: Batch) -> TermValues:
        """Return the values; columns share them as they share what the neighbours cannot rebuild.

        What the network says about a column tells of the whole row too: it is no measure of the column's part.
        """
        found = self._local.explain(batch)
        shares = found.shares * 0.0 if self._silent else found.shares
        return TermValues(value=self.value(batch), shares=shares, reason=found.reason, partner=found.partner)

    @classmethod
    def layouts(cls, features: Features, settings: PretrainedSettings, n_reference: int) -> Layouts:
        if is_silent(features, settings):
            return {}
        found = {f"{name}.weight": shape for name, shape in SHAPES.items()}
        found |= {f"{name}.bias": shape[1:] for name, shape in SHAPES.items()}
        return {name: ArrayLayout("float32", shape, low=-MOST, high=MOST) for name, shape in found.items()}


def is_silent(features: Features, settings: PretrainedSettings) -> bool:
    """Whether the table is of a kind that the network was not trained on."""
    return len(features) > settings.most_features or len(features.categories) > 0


def _surprise(lower: Array, upper: Array, n: int) -> Array:
    """Return minus the logarithm of the two-sided tail probability, of which n rows can tell 1 / n."""
    xp: Any = namespace(lower)
    return -xp.log(xp.clip(2.0 * xp.minimum(lower, upper) + 1.0 / n, 0.0, 1.0))


def forward(held: State, cells: Array, summary: Array) -> Array:
    """Return (n, d): what the network says about every feature; a row at a time, so that no batch shows."""
    xp: Any = namespace(cells)
    w = {name: like(value.astype(np.float64), cells) for name, value in held.items()}

    def layer(x: Array, name: str) -> Array:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def relu(x: Array) -> Array:
        return xp.clip(x, 0.0, None)

    cell = layer(relu(layer(cells, "cell.0")), "cell.1")
    row = layer(relu(layer(summary[:, None], "row.0")), "row.1")
    seen = cell + row
    active = relu(seen)
    all_columns = xp.concatenate([active.mean(axis=1), largest(active)], axis=1)[:, None]
    seen = seen + layer(all_columns, "context")
    return layer(relu(layer(relu(seen), "head.0")), "head.1")[:, :, 0]


@cache
def weights() -> State:
    """Return the weights that come with the package."""
    import safetensors.numpy

    found: State = safetensors.numpy.load(files("ptad.terms").joinpath("pretrained.safetensors").read_bytes())
    return found
