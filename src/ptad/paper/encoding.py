"""From rows of a table to inputs of the network: scaled numbers, and a one-hot group for every categorical feature.

Shape
-----
rows      (n_rows, n_features), numbers as they are, categories as codes, NaN = missing; see :mod:`ptad.tables.features`
encoded   (n_rows, n_encoded), float32, NaN = missing
statistics (n_encoded,), float64

NOTE[PAPER-13] One encoded column per category and one for unseen ones, each masked on its own.

The encoding is row-wise: an encoded row depends on nothing but the row. It is fitted together with the network, so that
calibration rows take no part in it.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from ptad.arrays import Indices, Matrix, column_range
from ptad.paper.settings import NetworkSettings
from ptad.tables.features import Features

# Under "standard", a one-hot column that never varied in training gets this scale: a full deviation is then ten units,
# clearly anomalous compared with columns of spread one.
FLAT_SCALE = 0.1
# Without a clip, encoded values are limited to this, so that squares stay finite in float32.
BOUND = 1e9
CELLS_AT_ONCE = 2**24  # cells held as float64 at one time


class Encoding(nn.Module):
    """Encodes rows, and decodes reconstructions back into the table's own units and categories."""

    source: Tensor  # the feature that each encoded column comes from
    code: Tensor  # the category that each encoded column stands for, NaN for a number
    centre: Tensor
    scale: Tensor  # encoded value = (value - centre) / scale
    missing_rate: Tensor  # share of the training rows in which the column was missing

    def __init__(self, features: Features, settings: NetworkSettings) -> None:
        super().__init__()
        self.features = features
        self.scaling = settings.scaling
        widths = np.where(features.n_categories > 0, features.n_categories + 1, 1)
        self.starts = np.cumsum(widths) - widths  # the first encoded column of every feature
        source = np.repeat(np.arange(len(features)), widths)
        code = np.where(features.n_categories[source] > 0, np.arange(len(source)) - self.starts[source], np.nan)
        self.low, self.high = -BOUND, BOUND
        if settings.clip is not None:
            self.low, self.high = -settings.clip, settings.clip + (1.0 if self.scaling == "minmax" else 0.0)
        self.register_buffer("source", torch.from_numpy(source), persistent=False)
        self.register_buffer("code", torch.from_numpy(code), persistent=False)
        self.register_buffer("centre", torch.zeros(len(source), dtype=torch.float64))
        self.register_buffer("scale", torch.ones(len(source), dtype=torch.float64))
        self.register_buffer("missing_rate", torch.zeros(len(source), dtype=torch.float64))

    @classmethod
    def fit(cls, rows: Matrix, features: Features, settings: NetworkSettings) -> Self:
        """Take centre, scale and missing rate from training rows."""
        encoding = cls(features, settings)
        centre, scale = encoding.centre.numpy(), encoding.scale.numpy()  # views of the buffers
        numbers = features.numbers
        places = encoding.starts[numbers]
        centre[places], scale[places] = number_scale(rows[:, numbers], settings.scaling)
        if settings.scaling == "standard":  # under "minmax" a one-hot column has its natural range already
            for feature in features.categories:
                start, n_known = encoding.starts[feature], features.n_categories[feature]
                group = slice(start, start + n_known + 1)
                centre[group], scale[group] = category_scale(rows[:, feature], n_known)
        encoding.missing_rate.copy_(torch.from_numpy(np.isnan(rows).mean(axis=0))[encoding.source])
        return encoding

    @property
    def n_encoded(self) -> int:
        """Number of encoded columns."""
        return len(self.source)

    @property
    def column(self) -> Indices:
        """The column of the table that each encoded column comes from."""
        return self.features.column[self.source.cpu().numpy()]

    @property
    def rows_at_once(self) -> int:
        """Rows that are encoded at a time where there are many."""
        return max(1, CELLS_AT_ONCE // max(self.n_encoded, 1))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the encoded rows as float32; ``rows`` are float64 on the device of the encoding."""
        cells = rows[:, self.source]
        chosen = (cells == self.code).to(cells.dtype)
        raw = torch.where(self.code.isnan() | cells.isnan(), cells, chosen)
        return ((raw - self.centre) / self.scale).clamp(self.low, self.high).float()

    def encode(self, rows: Matrix) -> Tensor:
        """Encode an array of any length, block by block, onto the device of the encoding."""
        blocks = range(0, max(len(rows), 1), self.rows_at_once)
        device = self.centre.device
        tensors = (torch.as_tensor(rows[i : i + self.rows_at_once], dtype=torch.float64, device=device) for i in blocks)
        return torch.cat([self(tensor) for tensor in tensors])

    def decode(self, encoded: Tensor) -> Tensor:
        """Return the rows, (n_rows, n_features), that encoded values stand for; categories are the likeliest known."""
        limit = torch.finfo(torch.float64).max
        raw = (encoded.double() * self.scale + self.centre).clamp(-limit, limit)
        rows = raw[:, torch.as_tensor(self.starts, device=raw.device)]
        for feature in self.features.categories:
            start, n_known = int(self.starts[feature]), int(self.features.n_categories[feature])
            rows[:, feature] = raw[:, start : start + n_known].argmax(dim=1).to(rows.dtype)
        return rows

    def indicator_errors(self) -> tuple[Tensor, Tensor]:
        """Return what an observed and what a missing cell of each encoded column adds to the score.

        It is the squared error of the missing-value indicator against its training mean, in the units of the scaling,
        one indicator per column of the table. A missing cell has no reconstruction error; what can be anomalous is that
        it is missing. Where that happened often in training it adds next to nothing; where it never happened, as much
        as a value at the end of its column.
        """
        column = torch.from_numpy(self.column)
        weight = 1.0 / torch.bincount(column)[column].to(self.missing_rate)
        if self.scaling == "standard":
            weight = weight / (self.missing_rate * (1.0 - self.missing_rate) + 0.01)
        return self.missing_rate.square() * weight, (1.0 - self.missing_rate).square() * weight


def number_scale(block: Matrix, scaling: str) -> tuple[Matrix, Matrix]:
    """Return centre and scale of every column of numbers (n_rows, n_columns); NaN is missing."""
    block = np.ascontiguousarray(block.T)  # one contiguous run per column
    missing = np.isnan(block)
    smallest, largest = (np.where(missing.all(axis=1), 0.0, end) for end in column_range(block.T))
    flat = smallest == largest
    if scaling == "minmax":
        with np.errstate(over="ignore"):
            spread = np.minimum(largest - smallest, np.finfo(np.float64).max)
        return smallest, np.where(flat, 1.0, spread)
    # A power of two as unit changes no digit and keeps the squares of huge or tiny values in range.
    peak = np.maximum(np.abs(smallest), np.abs(largest))
    unit = np.ldexp(1.0, np.frexp(np.where(peak > 0, peak, 1.0))[1] - 1)
    counts = np.maximum((~missing).sum(axis=1), 1)
    units = np.where(missing, 0.0, block) / unit[:, None]
    mean = units.sum(axis=1) / counts
    deviations = np.where(missing, 0.0, units - mean[:, None])
    spread = np.sqrt((deviations**2).sum(axis=1) / counts) * unit
    # the mean of equal values may differ from them by rounding, which a spread of nearly 0 would magnify
    return np.where(flat, smallest, mean * unit), np.where(flat | (spread == 0), 1.0, spread)


def category_scale(codes: Matrix, n_known: int) -> tuple[Matrix, Matrix]:
    """Return the mean and deviation of every one-hot column, the one of unseen categories last.

    That one is 0 in training. Its scale is at most 0.1 and at most the smallest of the group, so that an unseen
    category lies at least as far out as the rarest known one.
    """
    observed = codes[~np.isnan(codes)].astype(np.int64)
    share = np.bincount(observed, minlength=n_known + 1)[:n_known] / max(len(observed), 1)
    deviation = np.sqrt(share * (1.0 - share))
    scale = np.where(deviation > 0.0, deviation, FLAT_SCALE)
    return np.append(share, 0.0), np.append(scale, min(FLAT_SCALE, scale.min()))
