"""A table as people send it: local dates, decimal commas, words for missing values, bad cells, unseen categories.

``python tests/messy_table.py FOLDER`` writes ``normal.csv`` and ``new.csv`` there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MARKERS = ("k. A.", "?")  # what this table has for "missing"
HEADER = ("Auftrag", "Datum", "Erfasst", "Tag", "Menge", "Betrag", "Gewicht", "Filiale", "Status")
BAD = {"Datum": "31.02.2014", "Menge": "abc", "Betrag": "12,3,4"}


@dataclass(frozen=True)
class MessyTable:
    """Lines of a CSV file with semicolons, and what the cells of its columns mean.

    Attributes
    ----------
    text : str
        The file.
    days : ndarray of datetime64[D]
        The column Datum, as 17.10.2014; Erfasst is the same day with a time, as 10/17/2014 08:30; Tag as 20141017.
    quantity, amount, weight : ndarray of float
        The columns Menge (1.234), Betrag (1.234,56) and Gewicht (0,512).
    missing, bad, unseen : tuple of (row, column)
        Cells with a marker, cells that cannot be read, categories that :func:`messy_table` never has without them.
    """

    text: str
    days: np.ndarray
    quantity: np.ndarray
    amount: np.ndarray
    weight: np.ndarray
    missing: tuple[tuple[int, str], ...]
    bad: tuple[tuple[int, str], ...]
    unseen: tuple[tuple[int, str], ...]

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.write_text(self.text, encoding="utf-8")
        return path


def messy_table(n_rows: int = 400, seed: int = 0, *, n_bad: int = 0, n_unseen: int = 0) -> MessyTable:
    """Make a table; the amount follows from quantity and weight, so that a broken relation can be found."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2013-01-01") + rng.integers(0, 900, n_rows)
    minutes = rng.integers(6 * 60, 20 * 60, n_rows)
    quantity = rng.integers(20, 9000, n_rows).astype(float)
    weight = np.round(rng.uniform(0.1, 2.5, n_rows), 3)
    amount = np.round(quantity * weight * 1.5 + rng.normal(0, 5, n_rows), 2)
    shop = rng.choice(["Köln", "Bonn", "Aachen"], n_rows).astype(object)
    state = rng.choice(["ok", "offen"], n_rows, p=[0.8, 0.2]).astype(object)
    unseen = tuple((int(i), "Filiale") for i in np.sort(rng.choice(n_rows, n_unseen, replace=False)))
    for row, _ in unseen:
        shop[row] = "Paris"
    lines = []
    for i in range(n_rows):
        day = days[i].astype(object)
        lines.append(
            {
                "Auftrag": f"A-{seed}{i:06d}",
                "Datum": f"{day.day:02d}.{day.month:02d}.{day.year}",
                "Erfasst": f"{day.month:02d}/{day.day:02d}/{day.year} {minutes[i] // 60:02d}:{minutes[i] % 60:02d}",
                "Tag": f"{day:%Y%m%d}",
                "Menge": german(quantity[i], 0),
                "Betrag": german(amount[i], 2),
                "Gewicht": german(weight[i], 3),
                "Filiale": shop[i],
                "Status": state[i],
            }
        )
    gaps = rng.choice(n_rows, n_rows // 40, replace=False)
    missing = tuple((int(row), ("Betrag", "Datum", "Status")[k % 3]) for k, row in enumerate(gaps))
    for k, (row, column) in enumerate(missing):
        lines[row][column] = MARKERS[k % 2]
    free = [row for row in range(n_rows) if row not in set(gaps)]
    bad = tuple((int(row), list(BAD)[k % len(BAD)]) for k, row in enumerate(np.sort(rng.choice(free, n_bad, False))))
    for row, column in bad:
        lines[row][column] = BAD[column]
    text = "\n".join([";".join(HEADER), *(";".join(line.values()) for line in lines), ""])
    return MessyTable(text, days, quantity, amount, weight, missing, bad, unseen)


def german(value: float, digits: int) -> str:
    """Write a number as in Germany: 1.234,56."""
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    messy_table().write(folder / "normal.csv")
    messy_table(100, seed=1, n_bad=6, n_unseen=4).write(folder / "new.csv")
