"""The whole network: data-space mask, encoder, P-space masks, decoder, association prototypes.

Shape
-----
x        (n_rows, n_features), NaN = missing
Output   see the field comments

``forward`` is the paper's Algorithm 1, lines 4 to 10. A feature is an encoded column: see :mod:`ptad.paper.encoding`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ptad.errors import BundleError
from ptad.layout import ArrayLayout
from ptad.paper.association import AssociationPrototypes
from ptad.paper.attention import KeysValues
from ptad.paper.backbones import AttentionBackbone, MLPBackbone
from ptad.paper.data_mask import DataMask
from ptad.paper.encoding import Encoding
from ptad.paper.layers import Noise
from ptad.paper.projection import ProjectionSpace
from ptad.paper.settings import NetworkSettings
from ptad.tables.features import Features

# NOTE[PAPER-10] Cells in one batch or reference set: attention between attributes costs d^2 per row, so wide tables
# take fewer rows at a time; memory stays bounded and time grows linearly with the columns.
MAX_CELLS = 2**16
MAX_MEMBERSHIP = 2**27  # encoded columns times columns, which a network holds as one matrix


def context_rows(n_rows: int, n_features: int) -> int:
    """Return how many of ``n_rows`` may attend to each other in a table of this width."""
    return min(n_rows, max(16, MAX_CELLS // n_features))


@dataclass
class ReferenceKeys:
    """Keys and values of the reference rows in both ABD layers; None where the backbone has no ABD."""

    encoder: KeysValues | None
    decoder: KeysValues | None


@dataclass
class Output:
    """The results of one forward pass."""

    reconstructions: Tensor  # (n_branches, n, d)
    latent: Tensor  # (n, H)
    data_mask: Tensor | None  # (n, d)
    projection_masks: Tensor | None  # (n_branches, n, H)
    basis_squared: Tensor  # (n, K): squared distance to every basis vector
    association: Tensor | None  # (n, d)
    prototype_squared: Tensor | None  # (n, M)
    reference: ReferenceKeys  # the keys and values of these very rows


class Network(nn.Module):
    """The paper's network."""

    def __init__(self, generator: torch.Generator, n_features: int, settings: NetworkSettings) -> None:
        super().__init__()
        self.settings = settings
        self.n_features = n_features
        self.noise = Noise()
        self.data_mask = DataMask(generator, n_features) if settings.data_mask else None
        self.backbone: AttentionBackbone | MLPBackbone
        if settings.backbone == "mlp":
            self.backbone = MLPBackbone(generator, n_features)
        else:
            self.backbone = AttentionBackbone(generator, n_features, settings, self.noise)
        self.projection = ProjectionSpace(generator, self.backbone.latent_dim, settings, self.noise)
        self.prototypes = (
            AssociationPrototypes(generator, settings.n_prototypes, n_features) if settings.scores_prototypes else None
        )

    def forward(self, x: Tensor, reference: ReferenceKeys | None = None) -> Output:
        """Pass rows through; without a reference they attend to each other."""
        reference = reference or ReferenceKeys(None, None)
        missing = x.isnan().to(x.dtype)
        x = torch.nan_to_num(x)

        data_mask = None if self.data_mask is None else self.data_mask(x)
        x_masked = x if data_mask is None else x * data_mask

        latent, encoder_keys_values = self.backbone.encode(x_masked, missing, reference.encoder)

        projection_masks, basis_squared = self.projection(latent)
        masked_latents = latent.unsqueeze(0) if projection_masks is None else latent * projection_masks

        reconstructions, decoder_keys_values, association = self.backbone.decode(masked_latents, reference.decoder)

        prototype_squared = None
        if self.prototypes is not None and association is not None:
            prototype_squared = self.prototypes(association)

        return Output(
            reconstructions=reconstructions,
            latent=latent,
            data_mask=data_mask,
            projection_masks=projection_masks,
            basis_squared=basis_squared,
            association=association,
            prototype_squared=prototype_squared,
            reference=ReferenceKeys(encoder_keys_values, decoder_keys_values),
        )

    @property
    def n_parameters(self) -> int:
        """Number of trained numbers."""
        return sum(parameter.numel() for parameter in self.parameters())

    @torch.no_grad()
    def basis_strength(self) -> Tensor:
        """Return how much of each column a basis vector holds, (n_basis_vectors, d).

        It is the norm of the column's part of the vector; with the backbone ``mlp``, whose P-space has no parts for
        columns, how far the decoded vector is from the centre.
        """
        vectors = self.projection.basis_vectors
        if self.settings.backbone == "mlp":
            decoded, _, _ = self.backbone.decode(vectors.unsqueeze(0), None)
            return decoded.squeeze(0).abs()
        return vectors.unflatten(-1, (self.n_features, -1)).norm(dim=-1)


# the arrays of a saved network, declared from its settings without creating it ----------------------------------------


def network_layouts(features: Features, settings: NetworkSettings, n_reference: int) -> dict[str, ArrayLayout]:
    """Declare the arrays of a network, of its encoding, and of the places of the rows that it attends to."""
    encoding = Encoding(features, settings)
    n = encoding.n_encoded
    if n * features.n_columns > MAX_MEMBERSHIP:
        raise BundleError(f"The model has {n:,} encoded columns: too many for a network. Fit again with fewer.")
    layouts = {
        f"network.{name}": ArrayLayout("float32" if tensor.is_floating_point() else "int64", tuple(tensor.shape))
        for name, tensor in empty_network(encoding, settings).state_dict().items()
    }
    layouts |= {
        "encoding.centre": ArrayLayout("float64", (n,)),
        "encoding.scale": ArrayLayout("float64", (n,), low=float(np.finfo(np.float64).smallest_subnormal)),
        "encoding.missing_rate": ArrayLayout("float64", (n,), low=0.0, high=1.0),
    }
    max_rows = min(context_rows(settings.n_reference, n), n_reference)
    return layouts | {"reference_index": ArrayLayout("int64", ((1, max_rows),), low=0, high=n_reference - 1)}


def empty_network(encoding: Encoding, settings: NetworkSettings) -> Network:
    """Return a network on torch's meta device: the shapes of its tensors without their memory."""
    with torch.device("meta"):
        return Network(torch.Generator("cpu"), encoding.n_encoded, settings)
