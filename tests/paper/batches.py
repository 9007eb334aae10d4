"""Rows as a term takes them."""

from __future__ import annotations

from typing import Any

import torch

from ptad.reference import Batch, Reference, ReferenceSettings
from ptad.tables.features import Features
from ptad.terms.network import NetworkTerm


def reference(rows: Any, features: Features | None = None) -> Reference:
    """Return reference rows."""
    return Reference(rows, features or Features.numeric(rows.shape[1]), ReferenceSettings())


def batch(rows: Any) -> Batch:
    """Return rows to be scored; the network looks at no neighbours."""
    return Batch(rows, reference(rows))


def parts(term: NetworkTerm, rows: Any) -> dict[str, Any]:
    """Return what each part adds to the score of every row, (n,) each."""
    chunks = torch.from_numpy(rows).to(term.device).split(term.scorer.chunk_rows)
    scores = [term.scores(chunk) for chunk in chunks]
    values = [(s.errors.sum(-1), s.basis.value, s.prototype.value, s.missing.sum(-1)) for s in scores]
    joined = [torch.cat(value).float().double().cpu().numpy() for value in zip(*values, strict=True)]
    return dict(zip(("reconstruction", "basis", "prototype", "missing"), joined, strict=True))
