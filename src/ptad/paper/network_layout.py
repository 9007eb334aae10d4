"""What the arrays of a saved network have to be: found out from its settings, without making the network."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ptad.errors import BundleError
from ptad.layout import ArrayLayout
from ptad.paper.encoding import Encoding
from ptad.paper.network import Network, context_rows
from ptad.paper.settings import NetworkSettings
from ptad.tables.features import Features

MOST_MEMBERS = 2**27  # encoded columns times columns, which a network holds as one matrix


def network_layouts(features: Features, settings: NetworkSettings, n_reference: int) -> dict[str, ArrayLayout]:
    """Return the arrays of a network with these settings, of its encoding, and of the rows that it attends to."""
    encoding = Encoding(features, settings)
    n = encoding.n_encoded
    if n * features.n_columns > MOST_MEMBERS:
        raise BundleError(f"The model has {n:,} encoded columns: too many for a network. Fit again with fewer.")
    found = {
        f"network.{name}": ArrayLayout(_dtype(tensor), tuple(tensor.shape))
        for name, tensor in empty_network(encoding, settings).state_dict().items()
    }
    found |= {
        "encoding.centre": ArrayLayout("float64", (n,)),
        "encoding.scale": ArrayLayout("float64", (n,), low=float(np.finfo(np.float64).smallest_subnormal)),
        "encoding.missing_rate": ArrayLayout("float64", (n,), low=0.0, high=1.0),
    }
    most = min(context_rows(settings.n_reference, n), n_reference)
    return found | {"reference_index": ArrayLayout("int64", ((1, most),), low=0, high=n_reference - 1)}


def empty_network(encoding: Encoding, settings: NetworkSettings) -> Network:
    """Return a network without numbers, which takes no memory whatever its settings say."""
    with torch.device("meta"):
        return Network(torch.Generator("cpu"), encoding.n_encoded, settings)


def _dtype(tensor: Tensor) -> str:
    return "float32" if tensor.is_floating_point() else str(tensor.dtype).removeprefix("torch.")
