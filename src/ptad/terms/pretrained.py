"""Pretrained: a small network over a row's columns and its neighbours, whose weights were trained on other tables.

The weights come with the package; nothing is trained on the user's table. No weight belongs to a column: every column
is described by the same few numbers (how extreme the value is, how far from those of the neighbours, how well they
reconstruct it), raw and standardised over normal rows of the table. The output of the network for column j is
g_j; the value of the term is log mean exp g_j. It depends neither on the order of columns and reference rows nor on
other rows. The network was trained on numbers, in tables that are hardly ever wider than ``most_features``: for wider
tables, and for those with categories, the value is 0.

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
from ptad.terms.local_reconstruction import RESIDUAL_RIDGE, LocalReconstruction, LocalReconstructionSettings
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
MAX_WEIGHT = 1e3  # of a network that is read from a bundle
N_HELD_OUT = 256  # rows, at most a quarter of the reference rows, whose inputs give the baseline
FEW_NEIGHBOURS = 8
CELLS_AT_ONCE = 2**22  # of the differences to neighbours, when the baseline is computed


@dataclass(frozen=True)
class PretrainedSettings(TermSettings):
    """Settings of :class:`Pretrained`."""

    name: ClassVar[str] = "pretrained"

    most_features: int = setting(32, low=1, high=10_000)  # the tables that it was trained on are hardly ever wider

    @classmethod
    def term(cls) -> type[Pretrained]:
        return Pretrained


class Pretrained(NeighbourTerm):
    """Logarithm of the mean exponential of the network's outputs for the columns."""

    settings: PretrainedSettings

    def __init__(self, state: State, reference: Reference, settings: PretrainedSettings) -> None:
        super().__init__(state, reference, settings)
        self._inactive = is_inactive(reference.features, settings)
        self.standardised = not self._inactive  # an inactive term adds 0 to the score
        self._local = LocalReconstruction({}, reference, LocalReconstructionSettings())
        if not self._inactive:
            self._baseline_inputs  # noqa: B018  computed here once, and not by several threads at the same time

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Use the weights of the package; a saved model has its own copy, so that its scores never change."""
        return cls({} if is_inactive(reference.features, settings) else weights(), reference, settings)

    def describe(self, batch: Batch) -> tuple[Array, Array]:
        """Return (n, d, N_CELL) and (n, N_SUMMARY): the inputs of the network, before they are standardised.

        A small number is added before a logarithm; factors bring all inputs to the same size.
        """
        xp: Any = namespace(batch.rows)
        neighbourhood, coordinates = batch.neighbourhood, batch.reference.coordinates
        differences = neighbourhood.differences
        k, m = differences.shape[1], differences.shape[2] // 2
        # A row's differences to its neighbours: every feature by value, then every feature by rank.
        by_value, nearest_by_rank = differences[:, :, :m], differences[:, 0, m:]
        size = xp.abs(by_value)
        gap = -largest(-size)  # to the neighbour that is nearest in the column
        spread = ((by_value - by_value.mean(axis=1)[:, None]) ** 2).mean(axis=1) ** 0.5
        distances = xp.einsum("nkc,nkc->nk", differences, differences)
        distances_by_value = xp.einsum("nkc,nkc->nk", by_value, by_value)
        # Where the value stands among all reference rows, and among the neighbours.
        n_knots = coordinates.knots.shape[1]
        below, up_to = (floats(count) / n_knots for count in count_below(coordinates.knots, batch.points[:, :m]))
        tail = _surprise(up_to, 1.0 - below, n_knots)
        local_tail = _surprise(floats(by_value <= 0.0).mean(axis=1), floats(by_value >= 0.0).mean(axis=1), k)
        # How well the neighbours reconstruct the row: y as in local_reconstruction.py, and the residual by column.
        y_squared = self._local.factor(neighbourhood, self._local.settings.ridge)[:, -1, :-1] ** 2
        squared = self._local.reconstruct(neighbourhood, RESIDUAL_RIDGE)[1] ** 2
        residual = squared[:, :m] + squared[:, m:]
        cells = {
            "tail": tail / 3.0,  # how extreme the value is in its column
            "equal rows": xp.log(up_to - below + 1e-3) / 3.0,  # a value that many rows have is not new
            "agreement": self._agreement + 0.0 * tail,  # a new value matters more where rows usually agree
            "gap": xp.log(gap + 1e-4) / 3.0 + 1.0,  # whether any neighbour comes near the value
            "residual": xp.log(residual + 1e-6) / 4.0 + 1.0,  # what all neighbours together cannot reconstruct
            "local tail": local_tail,  # how extreme the value is among the neighbours
            "equal neighbours": floats(by_value == 0.0).mean(axis=1),  # a code that the neighbours share is usual
            "spread": xp.log(spread + 1e-3) / 3.0 + 1.0,  # a gap matters more where the neighbours agree
            "nearest by value": 3.0 * size[:, 0],  # where the row differs from the one most like it
            "nearest by rank": 3.0 * xp.abs(nearest_by_rank),  # the same, whatever the tails of the column
        }
        summary = {
            # the four strongest terms, for the network to weigh
            "local reconstruction": -xp.log(y_squared.sum(axis=1)),
            "nearest row": xp.log(1e-6 - largest(-distances_by_value)),
            "unmatched columns": xp.log(floats(gap > 0.0).sum(axis=1) + 0.5),
            "tail probability": log_mean_exp(tail),
            # y is computed from the nearest neighbour on: its first entries are those of a fit with the nearest alone
            "few neighbours": -xp.log(y_squared[:, :FEW_NEIGHBOURS].sum(axis=1)),
            "nearest": xp.log(distances[:, 0] + 1e-6),  # the density around the row, at three distances
            "fifth": xp.log(distances[:, min(4, k - 1)] + 1e-6),
            "farthest": xp.log(distances[:, k - 1] + 1e-6),
            "local tails": log_mean_exp(local_tail),  # the columns that are most extreme among the neighbours
            "residual": xp.log(residual.sum(axis=1) + 1e-6),  # of a fit that cannot follow an anomaly
            "mean gap": xp.log(gap.mean(axis=1) + 1e-4),  # whether the row is new in most columns
            "mean tail": tail.mean(axis=1),  # whether all columns are a little extreme,
            "largest tail": largest(tail),  # or one is very
        }
        return xp.stack(list(cells.values()), axis=2), xp.stack(list(summary.values()), axis=1)

    @cached_property
    def _agreement(self) -> Array:
        """Return (n_features,): the probability that two reference rows have the same value."""
        knots = to_numpy(self.reference.coordinates.knots)
        shares = [np.unique(values, return_counts=True)[1] / len(values) for values in knots]
        return on_device(np.array([(share**2).sum() for share in shares]), self.reference.device)

    @cached_property
    def _baseline_inputs(self) -> tuple[Array, Array, Array, Array]:
        """Return mean and spread of the inputs of some reference rows, compared with the other reference rows."""
        rows, n = self.reference.rows, len(self.reference.rows)
        order = np.argsort(to_numpy(self.reference.search.points).sum(axis=1))  # does not depend on that of the rows
        count = min(N_HELD_OUT, n // 4)
        places = order[((np.arange(count) + 0.5) * n / max(count, 1)).astype(np.int64)]
        others = np.ones(n, dtype=bool)
        others[places] = False
        if len(places) < 2:  # too few rows to hold some out
            places, others = np.arange(n), np.ones(n, dtype=bool)
        rest = Reference(rows[others], self.features, self.reference.settings, self.reference.device)
        k, width = rest.search.k, len(rest.coordinates.column)
        step = max(CELLS_AT_ONCE // (k * (k + width)), 1)  # one step, unless there are many neighbours or columns
        chunks = [on_device(rows[places[i : i + step]], self.reference.device) for i in range(0, len(places), step)]
        described = zip(*(self.describe(Batch(chunk, rest)) for chunk in chunks), strict=True)
        cells, summary = (namespace(parts[0]).concatenate(parts) for parts in described)
        spreads = [((x - x.mean(axis=0)) ** 2).mean(axis=0) ** 0.5 for x in (cells, summary)]
        return cells.mean(axis=0), spreads[0] + 0.1, summary.mean(axis=0), spreads[1] + 0.05

    def inputs(self, batch: Batch) -> tuple[Array, Array]:
        """Return the inputs of the network: cells and summary, raw and standardised over reference rows."""
        xp: Any = namespace(batch.rows)
        cells, summary = self.describe(batch)
        cell_mean, cell_spread, mean, spread = self._baseline_inputs
        standardised = xp.clip((cells - cell_mean) / cell_spread, -5.0, 8.0) / 2.0
        z = xp.clip((summary - mean) / spread, -4.0, 12.0) / 3.0
        return xp.concatenate([cells, standardised], axis=2), xp.concatenate([z, xp.log1p(softplus(6.0 * z))], axis=1)

    def value(self, batch: Batch) -> Array:
        """Return (n,): the logarithm of the mean over the columns."""
        if self._inactive:
            return namespace(batch.rows).zeros_like(batch.points[:, 0])
        return log_mean_exp(forward(self._state, *self.inputs(batch)))

    def explain(self, batch: Batch) -> TermValues:
        """Return the values; their shares are those of the local reconstruction.

        The output of the network for a column depends on the whole row, so it is no measure of the column's share.
        """
        local = self._local.explain(batch)
        shares = local.shares * 0.0 if self._inactive else local.shares
        return TermValues(value=self.value(batch), shares=shares, reason=local.reason, partner=local.partner)

    @classmethod
    def layouts(cls, features: Features, settings: PretrainedSettings, n_reference: int) -> Layouts:
        if is_inactive(features, settings):
            return {}
        shapes = {f"{name}.weight": shape for name, shape in SHAPES.items()}
        shapes |= {f"{name}.bias": shape[1:] for name, shape in SHAPES.items()}
        return {name: ArrayLayout("float32", shape, low=-MAX_WEIGHT, high=MAX_WEIGHT) for name, shape in shapes.items()}


def is_inactive(features: Features, settings: PretrainedSettings) -> bool:
    """Return whether the table is too wide for the network, or has categories, which it was not trained on."""
    return len(features) > settings.most_features or len(features.categories) > 0


def _surprise(lower: Array, upper: Array, n: int) -> Array:
    """Return minus the logarithm of the two-sided tail probability, which is at least 1 / n."""
    xp: Any = namespace(lower)
    return -xp.log(xp.clip(2.0 * xp.minimum(lower, upper) + 1.0 / n, 0.0, 1.0))


def forward(state: State, cells: Array, summary: Array) -> Array:
    """Return (n, d): the output of the network for every feature; it is the same for a row in any batch."""
    xp: Any = namespace(cells)
    w = {name: like(value.astype(np.float64), cells) for name, value in state.items()}

    def layer(x: Array, name: str) -> Array:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def relu(x: Array) -> Array:
        return xp.clip(x, 0.0, None)

    cell = layer(relu(layer(cells, "cell.0")), "cell.1")
    row = layer(relu(layer(summary[:, None], "row.0")), "row.1")
    hidden = cell + row
    active = relu(hidden)
    all_columns = xp.concatenate([active.mean(axis=1), largest(active)], axis=1)[:, None]
    hidden = hidden + layer(all_columns, "context")
    return layer(relu(layer(relu(hidden), "head.0")), "head.1")[:, :, 0]


@cache
def weights() -> State:
    """Return the weights that come with the package."""
    import safetensors.numpy

    state: State = safetensors.numpy.load(files("ptad.terms").joinpath("pretrained.safetensors").read_bytes())
    return state
