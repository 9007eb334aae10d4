"""The paper's network as a term: Eq. 8 to the letter, and a part for missing values.

Shape
-----
n rows of the table, see :mod:`ptad.terms.base`; every array that leaves this module is of the kind of the rows given,
NumPy or torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptad.errors import BundleError, DataError, TrainingError
from ptad.paper.cells import Cells, reasons
from ptad.paper.device import resolve_device
from ptad.paper.encoding import Encoding
from ptad.paper.network import Network, context_rows
from ptad.paper.scorer import Scorer
from ptad.paper.scores import PARTS, Scores
from ptad.paper.settings import NetworkSettings
from ptad.paper.training import train_network
from ptad.reference import Batch, Reference
from ptad.tables.features import Features
from ptad.terms.base import Array, FitContext, History, State, TermValues

#: Share of the fit's steps and of its learning rate in a continuation: enough to follow, too little to forget.
STEP_SHARE, RATE_SHARE = 0.25, 0.25
N_PROBES = 256  # training rows whose scores are checked after a fit


class NetworkTerm:
    """The score of a trained network, higher for anomalies.

    Attributes
    ----------
    settings : NetworkSettings
    encoding : Encoding
        How rows become what the network sees; ``encoding.column`` names the column of each encoded one.
    scorer : Scorer
        The frozen network with its reference rows.
    reference_index : ndarray
        The rows of the model's reference that the network attends to.
    history : list of dict
        Loss parts per interval.
    """

    standardised: ClassVar[bool] = False
    chunked: ClassVar[bool] = False

    def __init__(
        self,
        settings: NetworkSettings,
        encoding: Encoding,
        network: Network,
        reference: NDArray[np.float64],
        reference_index: NDArray[np.int64],
        history: History,
    ) -> None:
        self.settings = settings
        self.batch_size = settings.batch_size if settings.context == "batch" else None
        self.encoding = encoding
        self.history = history
        self.reference_index = reference_index
        self.reference = encoding.encode(reference[reference_index])
        self.scorer = Scorer(network, self.reference, encoding.indicator_errors())
        column = torch.from_numpy(encoding.column).to(self.device)
        # (n_encoded, n_columns), 1 where an encoded column belongs to a column of the table
        self._membership = torch.nn.functional.one_hot(column, encoding.features.n_columns).double()

    # fit ----------------------------------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        rows: NDArray[np.float64],
        reference: Reference,
        features: Features,
        settings: NetworkSettings,
        context: FitContext,
    ) -> Self:
        """Train on the rows; the same generator state gives the same term on the same machine.

        An interrupted fit of the same rows resumes from the folder ``context.checkpoint``, which is left in place.
        """
        if not len(rows) or not len(reference.rows):
            raise DataError("There are 0 rows to train the network on. Give at least one.")
        device = resolve_device(context.device)
        encoding = Encoding.fit(np.asarray(rows, dtype=np.float64), features, settings).to(device)
        return cls._trained(rows, reference.rows, encoding, settings, context)

    def continue_fit(
        self,
        rows: NDArray[np.float64],
        reference: Reference,
        context: FitContext,
        n_steps: int | None = None,
    ) -> Self:
        """Return the term after some more training, on these rows; this one stays as it is.

        Encoding and scaling stay those of the fit: where they have changed, only a new fit can know.

        Parameters
        ----------
        rows : ndarray
            Rows to train on: the new ones, and the kept ones that are not to be forgotten.
        reference : Reference
            The rows that the model keeps from now on.
        context : FitContext
            Generator, progress and checkpoint; the device stays that of the term.
        n_steps : int, optional
            A quarter of the fit's unless told.
        """
        wanted = max(1, round(STEP_SHARE * self.settings.n_steps)) if n_steps is None else n_steps
        rate = RATE_SHARE * self.settings.learning_rate
        # All rows are trained on; none are left to stop by.
        shorter = self.settings.replace({"n_steps": wanted, "learning_rate": rate, "patience": None})
        term = self._trained(rows, reference.rows, self.encoding, self.settings, context, shorter, self.scorer.network)
        last = max((entry["step"] for entry in self.history), default=0.0)
        term.history = [*self.history, *({**entry, "step": entry["step"] + last} for entry in term.history)]
        return term

    @classmethod
    def _trained(
        cls,
        rows: NDArray[np.float64],
        reference: NDArray[np.float64],
        encoding: Encoding,
        settings: NetworkSettings,
        context: FitContext,
        training: NetworkSettings | None = None,
        start: Network | None = None,
    ) -> Self:
        seed = int(context.rng.integers(2**31))
        n_reference = min(context_rows(settings.n_reference, encoding.n_encoded), len(reference))
        index = np.sort(context.rng.permutation(len(reference))[:n_reference])
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

    def _check(self, rows: NDArray[np.float64]) -> None:
        scores = self._values(rows)
        if not np.isfinite(scores).all():
            raise TrainingError("Some scores of training rows are not finite. Try a smaller learning_rate.")
        if len(np.unique(scores)) == 1 and len(np.unique(rows, axis=0)) > 1:
            raise TrainingError("All training rows have the same score: training came to nothing. Try more n_steps.")

    # score --------------------------------------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        return self.scorer.device

    def scores(self, rows: Tensor) -> Scores:
        """Score rows (n, n_features), float64 on the device of the term, as one chunk; nothing waits for a value."""
        return self.scorer(self.encoding(rows))

    def value(self, batch: Batch) -> Array:
        """Return the score of every row, (n,)."""
        return self._values(batch.rows)

    def _values(self, rows: Array) -> Array:
        return _like(self._gather(rows, lambda scores: (scores.value(),))[0], rows)

    def parts(self, rows: Array) -> dict[str, Array]:
        """Return what reconstruction, basis vectors, prototypes and missing values add to the score, (n,) each."""
        found = self._gather(rows, lambda scores: scores.parts().unbind(dim=-1))
        return {name: _like(values, rows) for name, values in zip(PARTS, found, strict=True)}

    def explain(self, batch: Batch) -> TermValues:
        """Return the values with the columns they come from."""
        rows = batch.rows
        value, contributions, expected = self._gather(
            rows, lambda scores: (scores.value(), self.per_column(scores.contributions()), scores.expected())
        )
        amounts = contributions.clamp_min(0.0)
        total = amounts.cumsum(dim=1)[:, -1:]  # a running sum adds in the same order however many rows there are
        found = reasons(rows.cpu().numpy() if isinstance(rows, Tensor) else rows, self.encoding.features)
        return TermValues(
            value=_like(value, rows),
            shares=_like(amounts / torch.where(total > 0.0, total, 1.0), rows),
            reason=_like(torch.from_numpy(found), rows),
            partner=_like(torch.full(found.shape, -1), rows),
            expected=_like(self.encoding.decode(expected), rows),
        )

    def cells(self, rows: Array) -> Cells:
        """Return contributions, expected values and masks of every row."""
        size = self._membership.sum(dim=0)

        def take(scores: Scores) -> tuple[Tensor, ...]:
            return (
                self.per_column(scores.contributions()),
                self.per_column(scores.missing),
                self.per_column(scores.masking_rate()) / size,
                self.per_column(scores.data_mask()) / size,
                scores.basis.index,
                scores.prototype.index,
                scores.expected(),
            )

        *found, expected = self._gather(rows, take)
        return Cells(*(_like(values, rows) for values in (*found, self.encoding.decode(expected))))

    def transform(self, batch: Batch) -> Array:
        """Return the P-space representation of every row, (n, latent_dim)."""
        return _like(self._gather(batch.rows, lambda scores: (scores.output.latent,))[0], batch.rows)

    def transform_names(self) -> list[str]:
        """Return a name for every dimension of the P-space."""
        return [f"latent{i}" for i in range(self.scorer.network.backbone.latent_dim)]

    def _gather(self, rows: Array, take: Callable[[Scores], tuple[Tensor, ...]]) -> list[Tensor]:
        """Take something from every chunk, rounded to single precision so that chunks leave no trace."""
        if not len(rows):
            raise DataError("There are 0 rows to score. Give at least one.")
        step = self.scorer.chunk_rows
        found = []
        with torch.no_grad():
            for start in range(0, len(rows), step):
                chunk = torch.as_tensor(rows[start : start + step], dtype=torch.float64, device=self.device)
                found.append([_rounded(values) for values in take(self.scores(chunk))])
            return [torch.cat(values) for values in zip(*found, strict=True)]

    def per_column(self, encoded: Tensor) -> Tensor:
        """Add up the encoded columns of each column, (n, n_columns)."""
        return encoded @ self._membership

    # what plots show ----------------------------------------------------------------------------------------------

    @property
    def basis_vectors(self) -> NDArray[np.float64]:
        """The basis vectors, (n_basis_vectors, latent_dim)."""
        return self.scorer.network.projection.basis_vectors.cpu().numpy()

    @property
    def basis_strength(self) -> NDArray[np.float64]:
        """How much of each encoded column a basis vector holds, (n_basis_vectors, n_encoded)."""
        return self.scorer.network.basis_strength().cpu().numpy()

    @property
    def prototypes(self) -> NDArray[np.float64] | None:
        """The association prototypes, (n_prototypes, n_encoded), or None without them."""
        found = self.scorer.network.prototypes
        return None if found is None else found.prototypes.cpu().numpy()

    # storage ------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return the trained numbers, those of the encoding, and which reference rows are used."""
        network = {f"network.{name}": _plain(t) for name, t in self.scorer.network.state_dict().items()}
        # in double precision: a date is a large number beside its spread
        encoding = {f"encoding.{name}": t.cpu().numpy() for name, t in self.encoding.state_dict().items()}
        return {**network, **encoding, "reference_index": self.reference_index}

    @classmethod
    def from_state(
        cls,
        state: State,
        reference: Reference,
        features: Features,
        settings: NetworkSettings,
        device: str,
    ) -> Self:
        """Return the term that ``state`` was taken from; its history is the caller's to keep."""
        target = resolve_device(device)
        encoding = Encoding(features, settings)
        network = Network(torch.Generator(), encoding.n_encoded, settings)
        try:
            for prefix, module in (("network.", network), ("encoding.", encoding)):
                found = {n.removeprefix(prefix): torch.tensor(a) for n, a in state.items() if n.startswith(prefix)}
                module.load_state_dict(found)
            index = np.asarray(state["reference_index"])
            return cls(settings, encoding.to(target), network.to(target), reference.rows, index, [])
        except (RuntimeError, KeyError, IndexError) as error:
            reason = str(error).splitlines()[0]
            message = f"The state of the network does not belong to its settings ({reason}). Fit again."
            raise BundleError(message) from error


def _rounded(values: Tensor) -> Tensor:
    return values.float().double() if values.is_floating_point() else values


def _plain(tensor: Tensor) -> NDArray[Any]:
    return (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()


def _like(values: Tensor, rows: Array) -> Array:
    """Return values as NumPy or torch, whichever the rows are."""
    return values.to(rows.device) if isinstance(rows, Tensor) else values.cpu().numpy()
