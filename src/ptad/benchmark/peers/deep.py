"""The frame around every deep peer: build, train, finish, score in chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ptad.benchmark.peers.layers import count_parameters
from ptad.benchmark.peers.protocol import FloatArray, check_matrix
from ptad.benchmark.peers.training import RuleFactory, TrainingSettings, train
from ptad.devices import resolve_device
from ptad.errors import DataError


class DeepPeer(ABC):
    """Base of the deep peers. A child says what the net, the loss and the score are.

    Parameters
    ----------
    training : TrainingSettings, optional
        The published setting of the method unless told otherwise.
    random_state : int
        Seed of the start, the permutations and the noise; no global generator is touched.
    device : str
        ``"auto"``, ``"cpu"`` or ``"cuda"``.
    """

    name: str = "deep"
    batch_dependent: bool = False
    own_scaling: bool = False
    default_training: ClassVar[TrainingSettings] = TrainingSettings()
    #: Rows scored at once; bounds the memory of scoring.
    chunk_rows: int = 1024

    def __init__(self, training: TrainingSettings | None = None, random_state: int = 0, device: str = "cpu") -> None:
        self.training = training or self.default_training
        self.random_state = random_state
        self.device = device
        self.n_parameters_ = 0
        self.capped_ = ""
        self.history_: list[dict[str, float]] = []

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores."""
        return {**self._own_params(), **self.training.params()}

    def fit(self, X: npt.ArrayLike) -> Self:
        """Train on normal rows."""
        matrix = check_matrix(X, self.name)
        self.capped_ = ""
        self._n_features = matrix.shape[1]
        self._device = torch.device(resolve_device(self.device))
        # Drawn on the CPU and moved: the start is the same on every device.
        generator = torch.Generator().manual_seed(self.random_state)
        self._module = self._build(self._n_features, len(matrix), generator).to(self._device)
        self.n_parameters_ = count_parameters(self._module)
        rows = torch.as_tensor(matrix, dtype=torch.float32, device=self._device)
        self._module.eval()
        with torch.no_grad():
            self._before_training(rows)
        settings, reason = self._training_for(*rows.shape)
        record = train(self._module, self._loss, rows, settings, self.random_state, self._rule_factory())
        self.history_ = record.history
        self._add_cap(reason)
        self._add_cap(record.capped)
        self._module.eval()
        with torch.no_grad():
            self._after_training(rows)
        return self

    def anomaly_score(self, X: npt.ArrayLike) -> FloatArray:
        """The method's score; higher is more anomalous."""
        if not hasattr(self, "_module"):
            raise DataError(f"{self.name} has not been fitted: call fit first.")
        matrix = check_matrix(X, self.name, self._n_features)
        found = []
        with torch.no_grad():
            for part in torch.as_tensor(matrix, dtype=torch.float32).split(self.chunk_rows):
                found.append(self._score(part.to(self._device)).double().cpu())
        return np.asarray(torch.cat(found).numpy(), dtype=np.float64)

    def _add_cap(self, reason: str) -> None:
        """Note once that less was done than published."""
        if reason and reason not in self.capped_:
            self.capped_ = f"{self.capped_}; {reason}" if self.capped_ else reason

    # What a child fills in.

    def _own_params(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def _build(self, n_features: int, n_rows: int, generator: torch.Generator) -> nn.Module:
        """The untrained net."""

    def _before_training(self, rows: Tensor) -> None:  # noqa: B027, a hook that most leave alone
        """Called with the random start in place."""

    @abstractmethod
    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of one minibatch."""

    def _after_training(self, rows: Tensor) -> None:  # noqa: B027, a hook that most leave alone
        """Called with the trained net; statistics of the training rows belong here, not into scoring."""

    @abstractmethod
    def _score(self, batch: Tensor) -> Tensor:
        """The anomaly score of every row."""

    def _training_for(self, n_rows: int, n_features: int) -> tuple[TrainingSettings, str]:
        """The settings for a table of this shape, and the reason where they had to be cut."""
        return self.training, ""

    def _rule_factory(self) -> RuleFactory | None:
        return None
