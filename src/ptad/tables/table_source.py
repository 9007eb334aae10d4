"""A table together with what its reader cannot find out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TableSource:
    """A table with what its reader cannot know: ``scan_table(TableSource("sales.xlsx", sheet="2014"))``.

    Attributes
    ----------
    source : path, folder, glob, "-", a list of those, or Query
        Where the rows are.
    sheet : str, optional
        Sheet of a workbook, by name or by number from 1.
    decimal, thousands : str, optional
        Signs in numbers that are written as text; by default those of the model, or what the values show.
    label : str, optional
        What messages call the table; by default its path.
    """

    source: Any
    sheet: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    label: str | None = None

    def __str__(self) -> str:
        return str(self.source)


def as_source(source: Any) -> TableSource:
    """A table with its wishes, or without any."""
    return source if isinstance(source, TableSource) else TableSource(source)
