"""The frame around every deep peer: build, train, finish, score in chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ptad.benchmark.peers.protocol import FloatArray, Peer
from ptad.benchmark.peers.training import TrainingSettings, train
from ptad.devices import resolve_device
from ptad.paper.layers import Noise


@dataclass(eq=False, kw_only=True)
class DeepPeer(Peer):
    """Base of the deep peers. A child says what the net, the loss and the score are.

    Parameters
    ----------
    training : TrainingSettings or mapping, optional
        The published settings of the method unless told otherwise; a mapping changes single numbers of them.
    """

    training: TrainingSettings | Mapping[str, Any] | None = None

    default_training: ClassVar[TrainingSettings] = TrainingSettings()
    #: "adam", or "lamb" as in NPT's training.
    optimizer: ClassVar[str] = "adam"
    #: Rows scored at once; bounds the memory of scoring.
    chunk_rows = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        changes = self.training or {}
        self.schedule = changes if isinstance(changes, TrainingSettings) else self.default_training.replace(changes)

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores."""
        own = super().params()
        del own["training"]
        return {**own, **self.schedule.params()}

    def _fit(self, rows: FloatArray) -> None:
        self._device = torch.device(resolve_device(self.device))
        self._noise = Noise()  # of dropout layers; silent outside training
        # Drawn on the CPU and moved: the start is the same on every device.
        generator = torch.Generator().manual_seed(self.random_state)
        self._module = self._build(rows.shape[1], len(rows), generator).to(self._device)
        self.n_parameters_ = sum(p.numel() for p in self._module.parameters() if p.requires_grad)
        tensor = torch.as_tensor(rows, dtype=torch.float32, device=self._device)
        self._module.eval()
        with torch.no_grad():
            self._before_training(tensor)
        settings, reason = self._training_for(*rows.shape)
        record = train(self._module, self._noisy_loss, tensor, settings, self.random_state, self.optimizer)
        self._noise.generator = None
        self.history_ = record.history
        self._add_cap(reason)
        self._add_cap(record.capped)
        self._module.eval()
        with torch.no_grad():
            self._after_training(tensor)

    def _noisy_loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        self._noise.generator = generator
        return self._loss(batch, generator)

    def _score(self, rows: FloatArray) -> FloatArray:
        with torch.no_grad():
            parts = torch.as_tensor(rows, dtype=torch.float32).split(self.chunk_rows)
            found = [self._score_batch(part.to(self._device)).double().cpu() for part in parts]
        scores: FloatArray = torch.cat(found).numpy()
        return scores

    def _add_cap(self, reason: str) -> None:
        """Note once that less was done than published."""
        if reason and reason not in self.capped_:
            self.capped_ = f"{self.capped_}; {reason}" if self.capped_ else reason

    # What a child fills in.

    @abstractmethod
    def _build(self, n_features: int, n_rows: int, generator: torch.Generator) -> nn.Module:
        """The untrained net."""

    def _before_training(self, rows: Tensor) -> None:
        """Called with the random start in place."""

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of one minibatch; the mean score unless a method has another."""
        return self._score_batch(batch).mean()

    def _after_training(self, rows: Tensor) -> None:
        """Called with the trained net; statistics of the training rows belong here, not into scoring."""

    @abstractmethod
    def _score_batch(self, batch: Tensor) -> Tensor:
        """The anomaly score of every row."""

    def _training_for(self, n_rows: int, n_features: int) -> tuple[TrainingSettings, str]:
        """The settings for a table of this shape, and the reason where they had to be cut."""
        return self.schedule, ""
