"""A scorer as one ONNX graph: encoded rows in; score, parts and contributions out.

Shape
-----
x               (n, d) float32, NaN = missing; n is free
score           (n,) float32
parts           (n, 6) float32, in the order of ``PART_NAMES``
contributions   (n, d) float32, rows add up to the score

Reference rows, potentials and the bank of training rows are constants of the graph. It computes in double precision and
rounds to single, as the scorer does.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ptad.errors import MissingExtraError, SettingError
from ptad.export.operations import PlainOperations
from ptad.scoring import Scorer

INPUT, OUTPUTS = "x", ("score", "parts", "contributions")
OPSET = 20
LARGEST = 2**31 - 2**24  # bytes; the file format ends at 2 GiB, and the graph itself needs a little


class ScorerGraph(nn.Module):
    """A scorer as a module without Python in its way."""

    def __init__(self, scorer: Scorer) -> None:
        super().__init__()
        self.network = scorer.network
        self.scorer = scorer

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with PlainOperations():
            judged = self.scorer.judge(x.double())
            score, *parts = judged.part_values()
            return score.float(), torch.stack(parts, dim=1).float(), judged.contribution_values().float()


def make_graph(scorer: Scorer) -> Any:
    """Return the ``onnx.ModelProto`` of a scorer on the CPU."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(str(error.name), "onnx", "Exporting a model") from error
    if (n_bytes := _constant_bytes(scorer)) > LARGEST:
        raise SettingError(
            f"The model's reference rows take {n_bytes / 2**30:.1f} GiB, and an ONNX file ends at 2 GiB. Fit with a "
            "smaller n_bank or n_reference, such as config={'n_bank': 2000}."
        )
    example = torch.zeros(3, len(scorer.missing_rate))
    free = torch.export.Dim("n", min=1)
    with torch.no_grad(), _quiet():
        program = torch.onnx.export(
            ScorerGraph(scorer).eval(),
            (example,),
            dynamo=True,
            dynamic_shapes=({0: free},),
            input_names=[INPUT],
            output_names=list(OUTPUTS),
            opset_version=OPSET,
            external_data=False,
            optimize=False,  # it takes 1e-12 for 0 and leaves out what adds it
            verbose=False,
        )
    assert program is not None
    return program.model_proto


def _constant_bytes(scorer: Scorer) -> int:
    tensors: list[Tensor] = list(scorer.network.parameters())
    for keys_values in (scorer.reference.encoder, scorer.reference.decoder):
        tensors += [] if keys_values is None else list(keys_values)
    total = sum(t.numel() * 8 for t in tensors)
    if scorer.retrieval is not None:
        n_bank, n_features = scorer.retrieval.bank.shape
        total += n_bank * (3 * n_features + 2) * 8  # the rows, and the factors of their distances
    return total


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's remarks about itself from the user."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
