"""The settings of the paper's network; the defaults are those of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ptad.errors import MissingExtraError, SettingError
from ptad.settings import setting
from ptad.terms.base import TermSettings

if TYPE_CHECKING:
    from ptad.terms.network import NetworkTerm


@dataclass(frozen=True)
class NetworkSettings(TermSettings):
    """Everything that decides what the network is, how it is trained and how it scores."""

    name: ClassVar[str] = "network"

    # table -> matrix
    scaling: str = setting("standard", choices=("standard", "minmax"))
    #: How far beyond the training range a scaled value may lie; None: any distance.
    clip: float | None = setting(None, low=0.0, high=1e9, optional=True)

    # network
    backbone: str = setting("npt", choices=("npt", "transformer", "mlp"))
    data_mask: bool = setting(True)  # Eq. 3
    embedding_dim: int = setting(16, low=1, high=1024)  # e
    n_heads: int = setting(4, low=1, high=64)
    feedforward_factor: int = setting(4, low=1, high=64)
    dropout: float = setting(0.1, low=0.0, high=0.95)
    #: Width of the attention between datapoints; None: the full width d * e, up to ``abd_full_limit`` (PAPER-10).
    abd_width: int | None = setting(None, low=1, high=8192, optional=True)
    #: Widest d * e with a full attention between datapoints; beyond it the attention is factorised at width 128.
    abd_full_limit: int = setting(2048, low=0, high=65536)

    # P-space and prototypes
    projection_mask: str = setting("multiple", choices=("none", "single", "multiple", "random"))  # Eq. 4
    n_basis_vectors: int = setting(5, low=1, high=1000)  # K
    basis_vectors: bool = setting(True)  # Eq. 5
    basis_distance: str = setting("transport", choices=("transport", "mse"))
    orthogonality: bool = setting(True)  # Eq. 6
    prototypes: bool = setting(True)  # Eq. 7
    n_prototypes: int = setting(5, low=1, high=1000)  # M
    prototype_distance: str = setting("transport", choices=("transport", "mse"))
    matching: str = setting("nearest", choices=("nearest", "product_min"))  # PAPER-04
    entropy_weight: float = setting(0.1, low=0.0, high=1e6, open_low=True)  # lambda
    sinkhorn_iterations: int = setting(30, low=1, high=10_000)
    plan_gradient: bool = setting(False)  # PAPER-05

    # loss and score
    basis_loss_weight: float = setting(1.0, low=0.0, high=1e6)
    prototype_loss_weight: float = setting(1.0, low=0.0, high=1e6)
    orthogonality_weight: float = setting(0.1, low=0.0, high=1e6)
    basis_score_weight: float = setting(0.01, low=0.0, high=1e6)  # kappa
    prototype_score_weight: float = setting(0.01, low=0.0, high=1e6)  # alpha

    # training
    optimizer: str = setting("lamb", choices=("lamb", "adamw"))
    learning_rate: float = setting(0.01, low=0.0, high=1e3, open_low=True)
    weight_decay: float = setting(0.0, low=0.0, high=10.0)
    n_steps: int = setting(500, low=1, high=10_000_000)
    batch_size: int = setting(512, low=2, high=1_000_000)
    warmup_epochs: int = setting(10, low=0, high=1_000_000)
    gradient_clip: float = setting(1.0, low=0.0, high=1e6, open_low=True)  # element-wise bound on the gradient
    #: Intervals without a better held-out loss before training stops; None: never.
    patience: int | None = setting(None, low=1, high=1_000_000, optional=True)
    interval: int = setting(25, low=1, high=1_000_000)  # steps between two entries of the history
    mixed_precision: bool = setting(False)  # train in bfloat16 where that is safe; on a GPU only

    # scoring
    #: What a row is compared with: fixed training rows, or the rows of its batch, as in the text (PAPER-01).
    context: str = setting("reference", choices=("reference", "batch"))
    n_reference: int = setting(512, low=1, high=100_000)  # training rows that a row attends to

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("abd_width", "patience"):
            if isinstance(value := getattr(self, name), float):
                raise SettingError(f"The setting '{self.title()}.{name}' must be a whole number or none. Got {value}.")
        if self.embedding_dim % self.n_heads or (self.abd_width or 0) % self.n_heads:
            raise SettingError(
                f"The setting '{self.title()}.n_heads' must divide embedding_dim and abd_width. Got n_heads = "
                f"{self.n_heads}, embedding_dim = {self.embedding_dim}, abd_width = {self.abd_width}."
            )

    @classmethod
    def term(cls) -> type[NetworkTerm]:
        """Return the class of the term, which imports torch."""
        try:
            from ptad.terms.network import NetworkTerm
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtraError("torch", "torch", "The paper's network") from error
        return NetworkTerm

    @property
    def n_branches(self) -> int:
        """Number of masked latents that the decoder reconstructs."""
        return self.n_basis_vectors if self.projection_mask in ("multiple", "random") else 1

    @property
    def n_basis(self) -> int:
        """Number of basis vectors; ``single`` means one mask, hence one basis vector."""
        return 1 if self.projection_mask == "single" else self.n_basis_vectors

    @property
    def scores_basis(self) -> bool:
        """Whether basis vectors are trained and scored; random masks and no masks have none (ablation table)."""
        return self.basis_vectors and self.projection_mask in ("single", "multiple")

    @property
    def scores_prototypes(self) -> bool:
        """Whether association prototypes are trained and scored; an MLP has no attention to take them from."""
        return self.prototypes and self.backbone != "mlp"
