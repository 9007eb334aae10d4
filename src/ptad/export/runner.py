"""Scores tables with a model that ``ptad export`` wrote: onnxruntime computes, the core of ptad encodes the rows.

Torch is not needed, not even for the preset ``paper``::

    runner = Runner("model.onnx")
    scored = runner.score(table)
    scored.score, scored.anomaly, scored.p_value, scored.terms, scored.contributions, scored.reasons

Shape
-----
n rows, n_features encoded features, n_columns columns of the table that the model uses
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptad.arrays import Indices, Mask, Matrix
from ptad.calibration import Calibration
from ptad.errors import BundleError, DataError, needs_extra
from ptad.explanation import reason_texts
from ptad.tables import BadCells, Schema

FORMAT, FORMAT_VERSION = "ptad-onnx", 3


@dataclass(frozen=True)
class Scored:
    """Scores of some rows, and where they come from."""

    score: Matrix  # higher is more anomalous
    anomaly: Mask | None  # whether the score exceeds the threshold; None for a model without calibration
    p_value: Matrix | None  # how often a normal row has at least this score
    terms: dict[str, Matrix]  # what each term adds to the score
    contributions: dict[str, Matrix]  # what each column adds to the score, signed; they add up to it
    reasons: dict[str, NDArray[np.object_]]  # as in :attr:`ptad.Explanation.reasons`


class Outputs(NamedTuple):
    """The outputs of the graph for encoded rows."""

    score: Matrix  # (n,)
    terms: Matrix  # (n, n_terms)
    contributions: Matrix  # (n, n_columns)
    reasons: Indices  # (n, n_columns), a :class:`ptad.terms.base.Reason`
    partners: Indices  # (n, n_columns), the other column of a combination, -1 otherwise


class Runner:
    """An exported model.

    Parameters
    ----------
    path : path
        The ONNX file.
    n_threads : int
        Threads of one call; 0 leaves it to onnxruntime.
    """

    def __init__(self, path: str | os.PathLike[str], *, n_threads: int = 0) -> None:
        with needs_extra("onnx", "Running an exported model", "onnxruntime"):
            import onnxruntime  # type: ignore[import-untyped]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the exceptions of onnxruntime have no common base class
            raise BundleError(f"'{path}' cannot be read as an ONNX file: {error}") from error
        properties = self._session.get_modelmeta().custom_metadata_map
        if properties.get("format") != FORMAT:
            raise BundleError(f"'{path}' was not written by ptad. Export the model with ptad, and name that file.")
        if properties["format_version"] != str(FORMAT_VERSION):
            raise BundleError(f"'{path}' was written by ptad {properties['ptad_version']}. Export the model again.")
        self.properties: dict[str, str] = dict(properties)
        self.schema = Schema.from_json(json.loads(properties["schema"]))
        self.terms: tuple[str, ...] = tuple(json.loads(properties["terms"]))
        self.threshold: float | None = json.loads(properties["threshold"])
        self.false_alarm_rate: float | None = json.loads(properties["false_alarm_rate"])
        self._calibration = Calibration(json.loads(properties["calibration"]))
        self._chunk_rows = int(properties["chunk_rows"])

    def score(self, table: Any) -> Scored:
        """Score the rows of any table that :class:`ptad.PTAD` takes.

        A cell that cannot be read counts as missing; one warning names such cells.
        """
        bad = BadCells()
        outputs = self.run(self.schema.encode(table, bad))
        bad.warn()
        names = self.schema.names
        reasons = reason_texts(outputs.reasons, outputs.partners, names, bad)
        return Scored(
            score=outputs.score,
            anomaly=None if self.threshold is None else outputs.score > self.threshold,
            p_value=None if self.threshold is None else self._calibration.p_value(outputs.score),
            terms=dict(zip(self.terms, outputs.terms.T, strict=True)),
            contributions=dict(zip(names, outputs.contributions.T, strict=True)),
            reasons=dict(zip(names, reasons.T, strict=True)),
        )

    def run(self, rows: Matrix, *, chunk_rows: int | None = None) -> Outputs:
        """Return the outputs of the graph for encoded rows (n, n_features), NaN = missing.

        Rows do not influence each other; ``chunk_rows`` of them at a time keep the memory flat.
        """
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        n_features = len(self.schema.features)
        if rows.ndim != 2 or rows.shape[1] != n_features or not len(rows):
            raise DataError(f"Encoded rows have shape (1 or more, {n_features}). Got {rows.shape} instead.")
        step = chunk_rows or self._chunk_rows
        chunks = [self._session.run(Outputs._fields, {"rows": rows[i : i + step]}) for i in range(0, len(rows), step)]
        return Outputs(*map(np.concatenate, zip(*chunks, strict=True)))
