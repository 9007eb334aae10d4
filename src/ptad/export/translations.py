"""Operations that the exporter cannot translate, written in operators that ONNX runtimes have in double precision.

Sizes of matrices and of lists of knots are fixed when the graph is written, so loops over them are unrolled; the number
of rows stays free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import torch
from onnxscript import opset20 as op

GraphValue = Any  # a value of the graph that is being written


def cholesky(matrix: GraphValue, upper: bool = False, check_errors: bool = False) -> tuple[GraphValue, GraphValue]:
    """Return the lower factors of positive definite matrices (n, k, k), column by column, and a state of 0."""
    k = int(matrix.shape[-1])
    rest, columns = matrix, []
    for j in range(k):
        column = _part(rest, 2, 0, 1)
        column = op.Div(column, op.Sqrt(_part(column, 1, 0, 1)))
        columns.append(op.Pad(column, _integers([0, j, 0, 0, 0, 0])))
        if j + 1 < k:
            tail = _part(column, 1, 1, k)
            trailing = _part(_part(rest, 1, 1, k), 2, 1, k)
            rest = op.Sub(trailing, op.Mul(tail, op.Transpose(tail, perm=[0, 2, 1])))
    return op.Concat(*columns, axis=2), _integers(0)


def solve_triangular(
    matrix: GraphValue, right: GraphValue, upper: bool = False, left: bool = True, unitriangular: bool = False
) -> GraphValue:
    """Return X (n, k, m) with L X = ``right`` for lower triangular matrices L (n, k, k), row by row."""
    if upper or unitriangular or not left:
        raise NotImplementedError("only lower triangular systems from the left are translated")
    k = int(matrix.shape[-1])
    rest, rows = right, []
    for j in range(k):
        column = _part(matrix, 2, j, j + 1)
        row = op.Div(_part(rest, 1, 0, 1), _part(column, 1, j, j + 1))
        rows.append(row)
        if j + 1 < k:
            rest = op.Sub(_part(rest, 1, 1, k), op.Mul(_part(column, 1, j + 1, k), row))
    return op.Concat(*rows, axis=1)


def search_sorted(
    knots: GraphValue,
    values: GraphValue,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: GraphValue | None = None,
) -> GraphValue:
    """Return how many knots of each row lie below each value (``right``: do not lie above), by halving.

    Shape
    -----
    knots (d, m) ascending, values (d, n) -> (d, n)
    """
    m = int(knots.shape[-1])
    start = onnx.helper.make_tensor("start", onnx.TensorProto.INT64, [1], [0])
    count = op.ConstantOfShape(op.Shape(values), value=start)
    for power in reversed(range(m.bit_length())):
        more = op.Add(count, _integers(2**power))
        knot = op.GatherElements(knots, op.Min(op.Sub(more, _integers(1)), _integers(m - 1)), axis=1)
        reached = op.LessOrEqual(knot, values) if right or side == "right" else op.Less(knot, values)
        count = op.Where(op.And(reached, op.LessOrEqual(more, _integers(m))), more, count)
    return count


TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.linalg_cholesky_ex.default: cholesky,
    torch.ops.aten.linalg_solve_triangular.default: solve_triangular,
    torch.ops.aten.searchsorted.Tensor: search_sorted,
}


def _integers(values: int | list[int]) -> GraphValue:
    return op.Constant(value=onnx.numpy_helper.from_array(np.array(values, dtype=np.int64)))


def _part(x: GraphValue, axis: int, start: int, stop: int) -> GraphValue:
    """Return ``x[start:stop]`` along an axis."""
    return op.Slice(x, _integers([start]), _integers([stop]), _integers([axis]))
