"""The whole network: data-space mask, encoder, P-space masks, decoder, association prototypes.

Shape
-----
x        (n_members, n_rows, n_features), NaN = missing
Output   see the field comments

``forward`` is the paper's Algorithm 1, lines 4 to 10, for E members at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptad.config import Config
from ptad.model.association import AssociationPrototypes
from ptad.model.attention import KeysValues
from ptad.model.backbones import make_backbone
from ptad.model.data_mask import DataMask
from ptad.model.layers import Generators, Noise
from ptad.model.projection import ProjectionSpace


@dataclass
class Reference:
    """Keys and values of the reference rows in both ABD layers; None where the backbone has no ABD."""

    encoder: KeysValues | None
    decoder: KeysValues | None


@dataclass
class Output:
    """What one pass through the network yields."""

    reconstructions: Tensor  # (E, n_branches, n, d)
    latent: Tensor  # (E, n, H)
    data_mask: Tensor | None  # (E, n, d)
    projection_masks: Tensor | None  # (E, n_branches, n, H)
    basis_squared: Tensor  # (E, n, K): squared distance to every basis vector
    association: Tensor | None  # (E, n, d)
    prototype_squared: Tensor | None  # (E, n, M)
    reference: Reference  # the keys and values of these very rows


class Network(nn.Module):
    """PTAD's network, for one or more members of the same shape."""

    def __init__(self, generators: Generators, n_features: int, config: Config) -> None:
        super().__init__()
        self.config = config
        self.n_features = n_features
        self.n_members = len(generators)
        self.noise = Noise()
        self.data_mask = DataMask(generators, n_features) if config.data_mask else None
        self.backbone = make_backbone(generators, n_features, config, self.noise)
        self.projection = ProjectionSpace(generators, self.backbone.latent_dim, config, self.noise)
        self.prototypes = (
            AssociationPrototypes(generators, config.n_prototypes, n_features) if config.scores_prototypes else None
        )

    def forward(self, x: Tensor, reference: Reference | None = None, branch: Tensor | None = None) -> Output:
        """Pass rows through; ``branch`` (E, n) restricts each row to the mask of one basis vector."""
        reference = reference or Reference(None, None)
        missing = x.isnan().to(x.dtype)
        x = torch.nan_to_num(x)
        if self.config.input_noise and self.noise.active:
            draws = torch.empty_like(x).normal_(generator=self.noise.generator)
            x = x + self.config.input_noise * draws * (1.0 - missing)

        data_mask = None if self.data_mask is None else self.data_mask(x)
        x_masked = x if data_mask is None else x * data_mask

        latent, encoder_keys_values = self.backbone.encode(x_masked, missing, reference.encoder)

        projection_masks, basis_squared = self.projection(latent, branch)
        branches = latent.unsqueeze(1)
        masked_latents = branches if projection_masks is None else branches * projection_masks

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
            reference=Reference(encoder_keys_values, decoder_keys_values),
        )

    @property
    def n_parameters(self) -> int:
        """Number of learned numbers in one member."""
        return sum(parameter.numel() for parameter in self.parameters()) // self.n_members
