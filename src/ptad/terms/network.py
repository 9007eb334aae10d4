"""The paper's network as a term: Eq. 8 to the letter, and a part for missing values.

Methods take a batch of the detector or an array of rows, and return the same kind of array, NumPy or torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptad.arrays import Array, Indices, Matrix, is_tensor
from ptad.errors import DataError, TrainingError
from ptad.layout import require
from ptad.paper.encoding import Encoding
from ptad.paper.network import Network, context_rows, empty_network, network_layouts
from ptad.paper.scores import Scorer, Scores
from ptad.paper.settings import NetworkSettings
from ptad.paper.training import train_network
from ptad.reference import Batch, Reference
from ptad.tables.features import Features
from ptad.terms.base import FitContext, History, Layouts, State, Term, TermValues, cell_reasons, refuse_empty

#: Share of the fit's steps and of its learning rate in a continuation: large enough to adapt to new rows, small enough
#: to keep the fit.
STEP_SHARE, RATE_SHARE = 0.25, 0.25
N_PROBES = 256  # training rows whose scores are checked after a fit


class NetworkTerm(Term):
    """The score of a trained network, higher for anomalies; ``history`` holds the parts of its loss per interval."""

    standardised = False
    chunked: ClassVar[bool] = False

    def __init__(
        self,
        settings: NetworkSettings,
        encoding: Encoding,
        network: Network,
        reference: Reference,
        reference_index: Indices,
        history: History,
    ) -> None:
        super().__init__({}, reference, settings)
        self.batch_size = settings.batch_size if settings.context == "batch" else None
        self.encoding = encoding
        self.history = history
        self.reference_index = reference_index  # the rows of the model's reference that the network attends to
        self.reference = encoding.encode(reference.rows[reference_index])
        self.scorer = Scorer(network, self.reference, encoding.indicator_errors())
        column = torch.from_numpy(encoding.column).to(self.device)
        # (n_encoded, n_columns), 1 where an encoded column belongs to a column of the table
        self._membership = torch.nn.functional.one_hot(column, encoding.features.n_columns).double()

    # fit ----------------------------------------------------------------------------------------------------------

    @classmethod
    def fit(cls, rows: Matrix, reference: Reference, settings: Any, context: FitContext) -> Self:
        """Train on the rows; an interrupted fit of the same rows resumes from ``context.checkpoint``, a folder."""
        if not len(rows):
            raise DataError("There are 0 rows to train the network on. Give at least one.")
        device = torch.device(context.device)
        encoding = Encoding.fit(np.asarray(rows, dtype=np.float64), reference.features, settings).to(device)
        return cls._trained(rows, reference, encoding, settings, context)

    def continue_fit(self, rows: Matrix, reference: Reference, context: FitContext, n_steps: int | None = None) -> Self:
        """Return the term after ``n_steps`` more, by default a quarter of the fit's; this term does not change.

        ``rows`` are the new ones and the reference rows, which are trained on again; the encoding stays the same.
        """
        if n_steps is None:
            n_steps = max(1, round(STEP_SHARE * self.settings.n_steps))
        rate = RATE_SHARE * self.settings.learning_rate
        # All rows are trained on; there are no validation rows to stop by.
        shorter = self.settings.replace({"n_steps": n_steps, "learning_rate": rate, "patience": None})
        term = self._trained(rows, reference, self.encoding, self.settings, context, shorter, self.scorer.network)
        last = max((entry["step"] for entry in self.history), default=0.0)
        term.history = [*self.history, *({**entry, "step": entry["step"] + last} for entry in term.history)]
        return term

    @classmethod
    def _trained(
        cls,
        rows: Matrix,
        reference: Reference,
        encoding: Encoding,
        settings: NetworkSettings,
        context: FitContext,
        training: NetworkSettings | None = None,
        start: Network | None = None,
    ) -> Self:
        seed = int(context.rng.integers(2**31))
        n_reference = min(context_rows(settings.n_reference, encoding.n_encoded), len(reference.rows))
        index = np.sort(context.rng.permutation(len(reference.rows))[:n_reference])
        network, history = train_network(
            encoding.encode(rows),
            training or settings,
            seed,
            progress=context.progress,
            checkpoint=context.checkpoint,
            start=start,
        )
        network.settings = settings
        term = cls(settings, encoding, network, reference, index, history)
        term._check(rows[:N_PROBES])
        return term

    def _check(self, rows: Matrix) -> None:
        scores = self.value(rows)
        if not np.isfinite(scores).all():
            raise TrainingError("Some scores of training rows are not finite. Try a smaller learning_rate.")
        if len(np.unique(scores)) == 1 and len(np.unique(rows, axis=0)) > 1:
            raise TrainingError("All training rows have the same score: training failed. Try more n_steps.")

    # score --------------------------------------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        return self.scorer.device

    def scores(self, rows: Tensor) -> Scores:
        """Score rows (n, n_features), float64 on the device of the term, as one chunk, without waiting for a result."""
        return self.scorer(self.encoding(rows))

    def value(self, batch: Batch | Array) -> Array:
        """Return the score of every row, (n,)."""
        return self._map_chunks(batch, lambda scores: (scores.value().float(),))[0]

    def explain(self, batch: Batch | Array) -> TermValues:
        """Return the values, attributed to columns."""

        def take(scores: Scores) -> tuple[Tensor, ...]:
            contributions = self.per_column(scores.contributions())
            # rounded before it is decoded into the units of the table, and not after
            expected = self.encoding.decode(scores.expected().float())
            return scores.value().float(), contributions.float(), expected

        value, contributions, expected = self._map_chunks(batch, take)
        amounts = contributions.clip(0.0, None)
        total = amounts.cumsum(1)[:, -1:]  # a running sum adds in the same order however many rows there are
        shares = amounts / (total + (total == 0.0))
        return TermValues(value, shares, *cell_reasons(_rows(batch), self.features), expected)

    def masks(self, batch: Batch | Array) -> tuple[Array, Array]:
        """Return (n, n_columns) twice: how much of each column the P-space masks hide, and the soft data mask."""
        size = self._membership.sum(dim=0)

        def take(scores: Scores) -> tuple[Tensor, ...]:
            return tuple((self.per_column(x) / size).float() for x in (scores.masking_rate(), scores.data_mask()))

        hidden, soft = self._map_chunks(batch, take)
        return hidden, soft

    def transform(self, batch: Batch | Array) -> Array:
        """Return the P-space representation of every row, (n, latent_dim)."""
        return self._map_chunks(batch, lambda scores: (scores.output.latent.float(),))[0]

    def transform_names(self) -> list[str]:
        """Return a name for every dimension of the P-space."""
        return [f"latent{i}" for i in range(self.scorer.network.backbone.latent_dim)]

    def _map_chunks(self, batch: Batch | Array, function: Callable[[Scores], tuple[Tensor, ...]]) -> list[Array]:
        """Return the results of ``function`` for all rows; in single precision they do not depend on the chunks."""
        rows = _rows(batch)
        refuse_empty(rows)
        step = self.scorer.chunk_rows
        # Tensors are one chunk: a graph is traced for any number of them.
        chunks = [rows] if is_tensor(rows) else (rows[i : i + step] for i in range(0, len(rows), step))
        with torch.no_grad():
            tensors = (torch.as_tensor(chunk, dtype=torch.float64, device=self.device) for chunk in chunks)
            parts = [function(self.scores(tensor)) for tensor in tensors]
        joined = [torch.cat(values) for values in zip(*parts, strict=True)]
        joined = [values.double() if values.is_floating_point() else values for values in joined]
        return [values.to(rows.device) if is_tensor(rows) else values.cpu().numpy() for values in joined]

    def per_column(self, encoded: Tensor) -> Tensor:
        """Add up the encoded columns of each column, (n, n_columns)."""
        return encoded @ self._membership

    @property
    def basis_vectors(self) -> Matrix:
        """The basis vectors, (n_basis_vectors, latent_dim)."""
        return self.scorer.network.projection.basis_vectors.cpu().numpy()

    @property
    def basis_strength(self) -> Matrix:
        """The strength of each encoded column in every basis vector, (n_basis_vectors, n_encoded)."""
        return self.scorer.network.basis_strength().cpu().numpy()

    @property
    def prototypes(self) -> Matrix | None:
        """The association prototypes, (n_prototypes, n_encoded), or None without them."""
        module = self.scorer.network.prototypes
        return None if module is None else module.prototypes.cpu().numpy()

    # storage ------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return the arrays of the network and of its encoding, and which reference rows it attends to."""
        network = {f"network.{name}": _single(t) for name, t in self.scorer.network.state_dict().items()}
        # in double precision: a date is a large number compared with its spread
        encoding = {f"encoding.{name}": t.cpu().numpy() for name, t in self.encoding.state_dict().items()}
        return {**network, **encoding, "reference_index": self.reference_index}

    @classmethod
    def layouts(cls, features: Features, settings: Any, n_reference: int) -> Layouts:
        """Declare the arrays of a network with these settings, without creating it."""
        return network_layouts(features, settings, n_reference)

    @classmethod
    def from_state(cls, state: State, reference: Reference, settings: Any) -> Self:
        """Return the term with this state; the history of its training is not part of it."""
        target = torch.device(reference.device)
        encoding = Encoding(reference.features, settings)
        network = empty_network(encoding, settings)
        for prefix, module in (("network.", network), ("encoding.", encoding)):
            tensors = {n.removeprefix(prefix): torch.tensor(a) for n, a in state.items() if n.startswith(prefix)}
            module.load_state_dict(tensors, assign=True)
        index = np.asarray(state["reference_index"])
        require((np.diff(index) > 0).all(), "network.reference_index", "is not sorted")
        return cls(settings, encoding.to(target), network.to(target), reference, index, [])


def _rows(batch: Batch | Array) -> Array:
    return batch.rows if isinstance(batch, Batch) else batch


def _single(tensor: Tensor) -> NDArray[Any]:
    return (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
