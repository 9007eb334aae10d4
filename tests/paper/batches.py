"""Rows as a term takes them."""

from __future__ import annotations

from typing import Any

from ptad.reference import Batch, Reference, ReferenceSettings
from ptad.tables.features import Features


def reference(rows: Any, features: Features | None = None) -> Reference:
    """Return reference rows."""
    return Reference(rows, features or Features.numeric(rows.shape[1]), ReferenceSettings())


def batch(rows: Any) -> Batch:
    """Return rows to be scored; the network looks at no neighbours."""
    return Batch(rows, reference(rows))
