"""The reference rows: training rows that a model keeps, as points among which neighbours are searched."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array, Matrix, column_range, is_tensor, like, namespace, on_device
from ptad.errors import UserError
from ptad.reference.coordinates import Coordinates
from ptad.reference.neighbours import Neighbours
from ptad.settings import Settings, setting
from ptad.tables.features import Features

N_BASELINE = 256  # reference rows that the baseline is computed from
N_STEPS = 2048  # reference rows from which the steps of recorded values are inferred
STEPS = (86_400.0, 3_600.0, 60.0, 1.0)  # days, hours and minutes in seconds; whole numbers
MAX_DECIMALS = 6
FEW = 16  # values that mostly show that there is no step
OFF_STEP = 1e-3  # part of a step by which a recorded number is off, because of rounding
MAX_CATEGORY_CELLS = 2**26  # categories, which are coordinates, times reference rows; a cell takes some 30 bytes
NEIGHBOUR_ROWS = 4096  # reference rows that fit at least: as many are the neighbours of a chunk of rows


@dataclass(frozen=True)
class ReferenceSettings(Settings):
    """Settings of the reference rows and of the distance between rows."""

    name: ClassVar[str] = "reference"

    rows: int = setting(16_384, low=2, high=10_000_000)  # at most; drawn at random where there are more
    neighbours: int = setting(32, low=1, high=128)  # memory and time grow with the square
    rank_weight: float = setting(0.5, low=0.0, high=10.0)  # of a number's rank beside its value
    category_weight: float = setting(0.5, low=0.0, high=10.0)  # of a category's coordinate beside a number's range


@dataclass(eq=False)
class Reference:
    """Reference rows; coordinates and search are computed when a term first needs neighbours."""

    rows: Matrix  # (n_reference, n_features), encoded, as they came
    features: Features
    settings: ReferenceSettings
    device: str = "cpu"

    @cached_property
    def coordinates(self) -> Coordinates:
        """The map from rows to points."""
        weights = self.settings.rank_weight, self.settings.category_weight
        return Coordinates.fit(self.rows, self.features, *weights).to(self.device)

    @cached_property
    def search(self) -> Neighbours:
        """The points of the reference rows."""
        points = self.coordinates(on_device(self.rows, self.device))
        return Neighbours(points, self.settings.neighbours)

    @cached_property
    def baseline_neighbourhood(self) -> Neighbourhood:
        """The neighbourhood of some of the reference rows among the others: the baseline of normal rows."""
        places = np.linspace(0, len(self.rows) - 1, min(N_BASELINE, len(self.rows))).astype(np.int64)
        near, differences = self.search(self.search.points[like(places, self.search.points)])
        if near.shape[1] == 1:
            return Neighbourhood(near, differences)
        return Neighbourhood(near[:, 1:], differences[:, 1:])  # the nearest of all is the row itself, or its duplicate

    @cached_property
    def _range(self) -> tuple[Matrix, Matrix]:
        return column_range(self.rows)

    def is_outside(self, rows: Matrix) -> NDArray[np.bool_]:
        """Return (n, n_columns): whether a number lies outside of the range of the reference rows."""
        low, high = self._range
        outside = ((rows < low) | (rows > high)) & (self.features.n_categories == 0)
        return np.asarray(np.add.reduceat(outside, self.features.starts, axis=1) > 0)

    @cached_property
    def _steps(self) -> list[tuple[float, float]]:
        """The start of every feature's values and the coarsest step they are recorded in; 0 if there is none."""
        places = np.linspace(0, len(self.rows) - 1, min(N_STEPS, len(self.rows))).astype(np.int64)
        return [_step(column[~np.isnan(column)]) for column in self.rows[places].T]

    def resolution(self, rows: Array) -> Array:
        """Return (n, n_features): up to which difference an expected number counts as equal to the row's.

        That is half the step in which the reference rows are recorded, if the row's number is recorded in it, too.
        """
        xp: Any = namespace(rows)
        start, step = (like(np.array(part), rows) for part in zip(*self._steps, strict=True))
        plain = like(self.features.resolution, rows) + 0.0 * step
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not recorded in steps
            places = (rows - start) / xp.where(step > 0.0, step, 1.0)
            is_recorded = (step > 0.0) & (xp.abs(places - xp.round(places)) < OFF_STEP)
        return xp.where(is_recorded, xp.maximum(plain, 0.5 * step), plain)

    def as_recorded(self, rows: Matrix) -> Matrix:
        """Return rows whose numbers are as exact as those of the reference rows: days, minutes, few decimals."""
        result = rows.copy()
        for j, (start, step) in enumerate(self._steps):
            if step >= 1.0:
                result[:, j] = start + step * np.rint((rows[:, j] - start) / step)
            elif step:
                result[:, j] = np.round(rows[:, j], round(-np.log10(step)))
        return result

    @cached_property
    def values(self) -> Array:
        """The encoded rows on the device."""
        return on_device(self.rows, self.device)


def max_reference_rows(features: Features, kind: type[UserError]) -> int:
    """Return how many reference rows fit into memory; raise an error of this kind if that is fewer than needed."""
    n_categories = int(features.n_categories.sum())
    n_rows = MAX_CATEGORY_CELLS // max(n_categories, 1)
    if n_rows < NEIGHBOUR_ROWS:
        raise kind(
            f"The columns have {n_categories:,} categories in all; at most {MAX_CATEGORY_CELLS // NEIGHBOUR_ROWS:,} "
            "can be compared.",
            "Fit with fewer: give the columns with most of them the type text with {types}.",
        )
    return n_rows


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The nearest reference rows of some rows, nearest first.

    Shape
    -----
    near (n, k) places among the reference rows, differences (n, k, n_coordinates) neighbour minus row

    ``factors`` keeps the Cholesky factors that several terms need, by ridge and floor.
    """

    near: Array
    differences: Array
    factors: dict[tuple[float, float], Array] = field(default_factory=dict)

    @cached_property
    def gram(self) -> Array:
        """The inner products of the differences, (n, k, k)."""
        turned = self.differences.mT if is_tensor(self.differences) else self.differences.swapaxes(1, 2)
        return self.differences @ turned


@dataclass(eq=False)
class Batch:
    """Encoded rows with their neighbourhood, which several terms need and which is searched for once."""

    rows: Array
    reference: Reference

    @cached_property
    def points(self) -> Array:
        """The rows as points."""
        return self.reference.coordinates(self.rows)

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The nearest reference rows."""
        return Neighbourhood(*self.reference.search(self.points))


def _step(values: Matrix) -> tuple[float, float]:
    """Return where values start and the coarsest step between them; 0 if there is none."""
    # Beyond 2**53 a number is whole because it cannot be otherwise.
    if not len(values) or np.abs(values).max() >= 2.0**53 or (values == values[0]).all():
        return 0.0, 0.0
    few = values[:FEW]
    if (
        len(values) > FEW and (few != few[0]).any() and not _step(few)[1]
    ):  # measured numbers: a few of them show it, in less time
        return 0.0, 0.0
    for step in STEPS:
        if not ((values - values[0]) % step).any():
            return float(values[0]), step
    for decimals in range(1, MAX_DECIMALS + 1):
        if (np.abs(np.round(values, decimals) - values) <= 1e-12 * np.abs(values)).all():
            return 0.0, 10.0**-decimals
    return 0.0, 0.0
