"""The reference rows: training rows that a model keeps and compares with, as points that can be searched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Array, like, on_device
from ptad.reference.coordinates import Coordinates
from ptad.reference.neighbours import Neighbours
from ptad.settings import Settings, setting
from ptad.tables.features import Features

N_USUAL = 256  # reference rows that show what is usual


@dataclass(frozen=True)
class ReferenceSettings(Settings):
    """Which rows are kept, and when two rows are near."""

    name: ClassVar[str] = "reference"

    rows: int = setting(16_384, low=2, high=10_000_000)  # at most; drawn at random where there are more
    neighbours: int = setting(32, low=1, high=1024)
    rank_weight: float = setting(0.5, low=0.0, high=10.0)  # of a number's rank beside its value
    category_weight: float = setting(0.5, low=0.0, high=10.0)  # of a category's coordinate beside a number's range


@dataclass(eq=False)
class Reference:
    """Reference rows; coordinates and search are made when a term first asks for neighbours.

    Attributes
    ----------
    rows : ndarray of shape (n_reference, n_features)
        Encoded, as they came.
    """

    rows: NDArray[np.float64]
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
    def usual(self) -> Neighbourhood:
        """The neighbourhood of some of the reference rows among the others: what is usual for normal rows."""
        some = np.linspace(0, len(self.rows) - 1, min(N_USUAL, len(self.rows))).astype(np.int64)
        near, differences = self.search(self.search.points[like(some, self.search.points)])
        if near.shape[1] == 1:
            return Neighbourhood(near, differences)
        return Neighbourhood(near[:, 1:], differences[:, 1:])  # the nearest of all is the row itself, or its duplicate

    @cached_property
    def values(self) -> Array:
        """The encoded rows where the work is done."""
        return on_device(self.rows, self.device)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The nearest reference rows of some rows, nearest first.

    Shape
    -----
    near (n, k) places among the reference rows, differences (n, k, n_coordinates) neighbour minus row
    """

    near: Array
    differences: Array


@dataclass(eq=False)
class Batch:
    """Encoded rows, and their neighbourhood, which several terms look at and which is found once."""

    rows: Array
    reference: Reference

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def points(self) -> Array:
        """The rows as points."""
        return self.reference.coordinates(self.rows)

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The nearest reference rows."""
        return Neighbourhood(*self.reference.search(self.points))
