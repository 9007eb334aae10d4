"""A detector as one ONNX graph: encoded rows in; score, terms, contributions and reasons out.

Shape
-----
rows            (n, n_features) float64, encoded by the schema, NaN = missing; n is free
score           (n,) float64
terms           (n, n_terms) float64, what every term adds to the score
contributions   (n, n_columns) float64, rows add up to the score
reasons         (n, n_columns) int64, a :class:`ptad.terms.base.Reason`
partners        (n, n_columns) int64, the other column of a combination, -1 otherwise

The graph is traced from the code that scores and explains, over terms that hold torch tensors; no term is known here.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ptad.attribution import final_contributions
from ptad.detector import Detector
from ptad.errors import SettingError, needs_extra
from ptad.explanation import attribute_rows
from ptad.export.operations import PlainOperations
from ptad.export.runner import Outputs
from ptad.reference import Batch

OPSET = 20
TRACED_ON = "cpu:0"  # any name but "cpu" makes terms hold tensors
MAX_BYTES = 2**31 - 2**24  # bytes; the file format ends at 2 GiB, and the graph itself needs a little


class DetectorGraph(nn.Module):
    """A detector as a module; its terms must hold tensors."""

    def __init__(self, detector: Detector) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, rows: Tensor) -> tuple[Tensor, ...]:
        detector = self.detector
        with PlainOperations():
            batch = Batch(rows, detector.pipeline.reference)
            term_values = [term.explain(batch) for term in detector.pipeline.terms]
            score, by_term, parts = attribute_rows(rows, detector, term_values)
            contributions = final_contributions(parts.contributions, parts.as_expected, score)
        return score, by_term, contributions, parts.reason, parts.partner


def make_graph(detector: Detector) -> Any:
    """Return the ``onnx.ModelProto`` of a detector whose terms are on :data:`TRACED_ON`."""
    _refuse_large(detector)
    example = torch.as_tensor(detector.reference[:3]).repeat(3, 1)[:3]
    detector.pipeline.explain(detector.reference[:1])  # what terms compute once and keep is there before the tracing
    free = torch.export.Dim("n", min=1)
    return trace_module(DetectorGraph(detector), {"rows": example}, ({0: free},), Outputs._fields)


def trace_module(module: nn.Module, inputs: dict[str, Tensor], shapes: Any, outputs: Sequence[str]) -> Any:
    """Return the ``onnx.ModelProto`` of a module; ``shapes`` say which sizes of the inputs are free."""
    with needs_extra("onnx", "Exporting a model"):
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    from ptad.export.translations import TRANSLATIONS

    module = module.eval()
    with torch.no_grad(), _quiet():
        module(*inputs.values())  # what terms compute once and keep is there before the tracing
        program = torch.onnx.export(
            module,
            tuple(inputs.values()),
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=list(inputs),
            output_names=list(outputs),
            opset_version=OPSET,
            external_data=False,
            optimize=False,  # it takes 1e-12 for 0 and leaves out what adds it
            custom_translation_table=TRANSLATIONS,
            verbose=False,
        )
    assert program is not None
    return program.model_proto


def _refuse_large(detector: Detector) -> None:
    """Refuse what cannot fit: a graph holds the reference rows, and twice their size in constants made of them."""
    states = sum(array.nbytes for term in detector.pipeline.terms for array in term.state().values())
    n_bytes = 3 * detector.reference.nbytes + states
    if n_bytes > MAX_BYTES:
        raise SettingError(
            f"The model's reference rows take {n_bytes / 2**30:.1f} GiB in a graph, and an ONNX file ends at 2 GiB.",
            "Fit with fewer of them: lower reference.rows with {config}.",
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the log and the warnings of torch's exporter."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
