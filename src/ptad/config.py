"""Every number of the method, in one frozen dataclass, with the two presets ``default`` and ``paper``.

Settings of the machine (device, verbosity) and of the decision (false-alarm rate) are parameters of
:class:`ptad.PTAD` instead: they change nothing about what is learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints


@dataclass(frozen=True)
class Config:
    """The method's settings; the field defaults are the ``paper`` preset."""

    # table -> matrix
    scaling: Literal["standard", "minmax"] = "standard"
    clip: float | None = None  # how far beyond the training range a scaled value may lie; None: any distance
    common_unit: bool = False  # the network sees centred columns in one unit for all, two-valued ones discounted

    # network
    backbone: Literal["npt", "transformer", "mlp", "dense"] = "npt"
    data_mask: bool = True  # Eq. 3
    embedding_dim: int = 16  # e
    n_heads: int = 4
    feedforward_factor: int = 4
    dropout: float = 0.1
    dense_width: int = 128  # width of the dense backbone
    abd_width: int | None = None  # None: the full width d * e, up to `abd_full_limit`; else factorised (PAPER-10)
    abd_full_limit: int = 2048  # widest d * e with a full ABD; beyond it the ABD is factorised at width 128

    # P-space and prototypes
    projection_mask: Literal["none", "single", "multiple", "random"] = "multiple"  # Eq. 4
    n_basis_vectors: int = 5  # K
    basis_vectors: bool = True  # Eq. 5
    basis_distance: Literal["transport", "mse"] = "transport"
    orthogonality: bool = True  # Eq. 6
    prototypes: bool = True  # Eq. 7
    n_prototypes: int = 5  # M
    prototype_distance: Literal["transport", "mse"] = "transport"
    matching: Literal["nearest", "product_min"] = "nearest"  # PAPER-04
    entropy_weight: float = 0.1  # lambda
    sinkhorn_iterations: int = 30
    plan_gradient: bool = False  # PAPER-05

    # loss and score
    basis_loss_weight: float = 1.0
    prototype_loss_weight: float = 1.0
    orthogonality_weight: float = 0.1
    basis_score_weight: float = 0.01  # kappa
    prototype_score_weight: float = 0.01  # alpha

    # training
    optimizer: Literal["lamb", "adamw"] = "lamb"
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    n_steps: int = 500
    batch_size: int = 512
    warmup_epochs: int = 10
    gradient_clip: float = 1.0  # element-wise bound on the gradient
    input_noise: float = 0.0  # standard deviation of the noise on the inputs while training
    hidden_rate: float = 0.0  # up to this share of a row's columns is hidden from the network while training
    visible_weight: float = 0.25  # weight of the error on cells that were not hidden
    sampled_branch: bool = False  # train one branch per row and step, drawn at random, instead of all K
    patience: int | None = None  # intervals without a better held-out loss before training stops; None: never
    interval: int = 25  # steps between two looks at the loss

    # scoring
    n_reference: int = 512  # rows that stand for the training set in the reference context
    n_passes: int = 0  # passes that each hide a share of the columns and judge the network there; 0: hide nothing
    n_neighbours: int = 0  # training rows retrieved per row, whose reconstructions are scored too; 0: none
    neighbour_ridge: float = 0.3
    n_bank: int = 20_000  # training rows that neighbours are retrieved from
    network_weight: float = 1.0  # weight of the network's score beside the two of the retrieved rows
    calibration: Literal["auto", "cross", "split", "none"] = "auto"
    cross_below: int = 2000  # "auto": cross-conformal below this number of rows, a split above
    n_folds: int = 5
    members: Literal["single", "folds"] = "single"  # who scores: one network of all rows, or the mean of the folds'

    def __post_init__(self) -> None:
        for field in fields(self):  # numbers of numpy, as from a parameter grid, become Python's
            if isinstance(value := getattr(self, field.name), np.generic):
                object.__setattr__(self, field.name, value.item())
        validate_parameter_constraints(_CONSTRAINTS, asdict(self), caller_name="PTAD")
        if self.embedding_dim % self.n_heads or (self.abd_width or 0) % self.n_heads:
            raise ValueError(
                "The 'n_heads' parameter of PTAD must divide 'embedding_dim' and 'abd_width'. "
                f"Got n_heads={self.n_heads}, embedding_dim={self.embedding_dim}, abd_width={self.abd_width} instead."
            )

    @property
    def n_branches(self) -> int:
        """Number of masked latents that the decoder restores."""
        return self.n_basis_vectors if self.projection_mask in ("multiple", "random") else 1

    @property
    def n_basis(self) -> int:
        """Number of basis vectors; ``single`` means one mask, hence one basis vector."""
        return 1 if self.projection_mask == "single" else self.n_basis_vectors

    @property
    def scores_basis(self) -> bool:
        """Whether the basis vectors are learned and scored; random masks and no masks have none (ablation table)."""
        return self.basis_vectors and self.projection_mask in ("single", "multiple")

    @property
    def scores_prototypes(self) -> bool:
        """Whether association prototypes are learned and scored; an MLP has no attention to take them from."""
        return self.prototypes and self.backbone != "mlp"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _real(low: float, high: float | None = None, closed: str = "left") -> Interval:
    return Interval(Real, low, high, closed=closed)


def _count(low: int) -> Interval:
    return Interval(Integral, low, None, closed="left")


_CONSTRAINTS: dict[str, list[Any]] = {
    "scaling": [StrOptions({"standard", "minmax"})],
    "clip": [_real(0), None],
    "common_unit": ["boolean"],
    "backbone": [StrOptions({"npt", "transformer", "mlp", "dense"})],
    "data_mask": ["boolean"],
    "embedding_dim": [_count(1)],
    "n_heads": [_count(1)],
    "feedforward_factor": [_count(1)],
    "dropout": [_real(0, 1)],
    "dense_width": [_count(1)],
    "abd_width": [_count(1), None],
    "abd_full_limit": [_count(0)],
    "projection_mask": [StrOptions({"none", "single", "multiple", "random"})],
    "n_basis_vectors": [_count(1)],
    "basis_vectors": ["boolean"],
    "basis_distance": [StrOptions({"transport", "mse"})],
    "orthogonality": ["boolean"],
    "prototypes": ["boolean"],
    "n_prototypes": [_count(1)],
    "prototype_distance": [StrOptions({"transport", "mse"})],
    "matching": [StrOptions({"nearest", "product_min"})],
    "entropy_weight": [_real(0, closed="neither")],
    "sinkhorn_iterations": [_count(1)],
    "plan_gradient": ["boolean"],
    "basis_loss_weight": [_real(0)],
    "prototype_loss_weight": [_real(0)],
    "orthogonality_weight": [_real(0)],
    "basis_score_weight": [_real(0)],
    "prototype_score_weight": [_real(0)],
    "optimizer": [StrOptions({"lamb", "adamw"})],
    "learning_rate": [_real(0, closed="neither")],
    "weight_decay": [_real(0)],
    "n_steps": [_count(1)],
    "batch_size": [_count(2)],
    "warmup_epochs": [_count(0)],
    "gradient_clip": [_real(0, closed="neither")],
    "input_noise": [_real(0)],
    "hidden_rate": [_real(0, 1)],
    "visible_weight": [_real(0)],
    "sampled_branch": ["boolean"],
    "patience": [_count(1), None],
    "interval": [_count(1)],
    "n_reference": [_count(1)],
    "n_passes": [_count(0)],
    "n_neighbours": [_count(0)],
    "neighbour_ridge": [_real(0, closed="neither")],
    "n_bank": [_count(2)],
    "network_weight": [_real(0)],
    "calibration": [StrOptions({"auto", "cross", "split", "none"})],
    "cross_below": [_count(0)],
    "n_folds": [_count(2)],
    "members": [StrOptions({"single", "folds"})],
}

PRESETS: dict[str, Config] = {
    "paper": Config(),
    "default": Config(
        scaling="minmax",
        clip=1.0,
        common_unit=True,
        backbone="dense",
        data_mask=False,  # the passes hide whole cells instead
        dropout=0.0,
        n_basis_vectors=3,
        sinkhorn_iterations=5,
        basis_loss_weight=0.01,
        prototype_loss_weight=0.01,
        optimizer="adamw",
        learning_rate=2e-3,
        n_steps=1000,
        batch_size=128,
        warmup_epochs=2,
        input_noise=0.1,
        hidden_rate=0.8,
        sampled_branch=True,
        n_passes=6,
        n_neighbours=16,
        n_folds=4,
        members="folds",
    ),
}


def make_config(preset: str, overrides: Mapping[str, Any] | Config | None = None) -> Config:
    """Return the preset with some fields replaced; an unknown field is named together with the known ones."""
    validate_parameter_constraints({"preset": [StrOptions(set(PRESETS))]}, {"preset": preset}, caller_name="PTAD")
    if isinstance(overrides, Config):
        return overrides
    known = {field.name for field in fields(Config)}
    unknown = sorted(set(overrides or {}) - known)
    if unknown:
        raise ValueError(
            f"The 'config' parameter of PTAD must hold fields of ptad.Config. Got {unknown[0]!r} instead; "
            f"known fields: {', '.join(sorted(known))}."
        )
    return replace(PRESETS[preset], **dict(overrides or {}))
