"""Label columns: which rows are normal, and which are anomalies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptad.arrays import Mask
from ptad.errors import DataError, SettingError
from ptad.tables.names import listed, no_column
from ptad.tables.values import decoded, is_text

_WORDS = {"true": "true", "1": "true", "false": "false", "0": "false"}


def check_label(label: str, names: Sequence[str], where: str) -> None:
    """Raise if the table has no such column."""
    if label not in names:
        raise DataError(no_column(where, [label], names, "label column"), "Name one of them with {label}.")


def equals(column: pa.Array, values: Sequence[str]) -> Mask:
    """Return for every row whether its label is one of ``values``, given as text; a missing label is not.

    Numbers are compared as numbers ("1" is 1.0), truth values by the words true and false, text without spaces around.
    """
    column = decoded(column)
    type_ = column.type
    if pa.types.is_null(type_):
        return np.zeros(len(column), dtype=bool)
    if pa.types.is_boolean(type_):
        text, texts = pc.cast(column, pa.string()), [_WORDS.get(v.strip().lower(), v) for v in values]
    elif pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        given = []
        for value in values:
            with suppress(ValueError):
                given.append(float(value))
        return np.isin(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), given)
    else:
        text = pc.utf8_trim_whitespace(column if is_text(type_) else pc.cast(column, pa.string()))
        texts = [v.strip() for v in values]
    return np.asarray(pc.is_in(text, value_set=pa.array(texts, text.type)).fill_null(False))


def is_anomaly(column: pa.Array, normal: Sequence[str], anomaly: Sequence[str], label: str) -> Mask:
    """Return for every row whether it is an anomaly, by the normal or the anomalous values, or 0/1 and false/true."""
    if normal and anomaly:
        raise SettingError(
            "Normal values and anomalous values of the label are both given.",
            "Give {normal} or {anomaly}, not both: all other values are the opposite.",
        )
    if decoded(column).null_count:
        raise DataError(f"The label column {label!r} has missing values. Fill them in, or remove those rows.")
    if normal:
        return ~equals(column, normal)
    if anomaly:
        return equals(column, anomaly)
    true, false = equals(column, ["1", "true", "True"]), equals(column, ["0", "false", "False"])
    if not (true | false).all():
        raise SettingError(
            f"The label column {label!r} holds other values than 0 and 1: {values_of(column)}.",
            "Say which one is normal with {normal}, or which one is not with {anomaly}.",
            "Say which one is normal.",
        )
    return true


def check_named(labels: pa.Array, named: Sequence[str], label: str, option: str) -> None:
    """Raise if none of the named values is among the ``labels`` of a table: most likely a typing error."""
    if named and not equals(labels, named).any():
        raise DataError(
            f"No value of the label column {label!r} is {' or '.join(map(repr, named))}. Its values are: "
            f"{values_of(labels)}.",
            f"Name one of them with {{{option}}}.",
        )


def values_of(column: pa.Array | pa.ChunkedArray) -> str:
    """Return the first distinct values of a column, for a message."""
    return listed(pc.unique(column).to_pylist())
