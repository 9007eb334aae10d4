"""Helpers of the tests of tables."""

import numpy as np
import pyarrow as pa

CSV = "n,x,word,when,ok\n1,0.5,red,2024-01-01,true\n2,,blue,2024-01-02,false\n3,2.5,,2024-01-03,\n"


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def bits(x):
    return np.ascontiguousarray(x).view(np.uint64)


def two(values):
    """A column beside one that is always good."""
    return pa.table({"good": [float(i % 5) for i in range(len(values))], "c": values})
