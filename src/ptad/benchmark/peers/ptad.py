"""PTAD itself behind the peer protocol, so that it runs under the same rules as everybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ptad.benchmark.peers.base import FloatArray, Peer
from ptad.config import make_config
from ptad.errors import SettingError
from ptad.paper.settings import NetworkSettings


@dataclass(eq=False, kw_only=True)
class PtadPeer(Peer):
    """A :class:`ptad.PTAD` detector with one of its presets.

    Parameters
    ----------
    preset : str
        ``"default"`` or ``"paper"``.
    config : mapping
        Settings that differ from the preset, such as ``{"network.context": "batch"}``.
    without : sequence of str
        Terms of the preset that are taken away.
    """

    preset: str = "default"
    config: Mapping[str, Any] = field(default_factory=dict)
    without: Sequence[str] = ()

    own_scaling = True

    def __post_init__(self) -> None:
        super().__post_init__()
        # The paper has no threshold: like every other method it is fitted on all training rows, and only once.
        fixed = {"calibration.method": "none"} if self.preset == "paper" else {}
        self.whole = make_config(self.preset, {**fixed, **self.config})
        terms = tuple(term for term in self.whole.terms if term.title() not in self.without)
        if not terms or len(terms) + len(self.without) != len(self.whole.terms):
            known = ", ".join(term.title() for term in self.whole.terms)
            gone = ", ".join(map(repr, self.without))
            raise SettingError(f"The preset {self.preset!r} cannot do without {gone}. Its terms: {known}.")
        self.whole = replace(self.whole, terms=terms)
        # In the batch context a row attends to the rows beside it, by definition.
        self.batch_dependent = any(isinstance(term, NetworkSettings) and term.context == "batch" for term in terms)

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores: the whole configuration, not only what differs from the preset."""
        found = {"preset": self.preset, **self.whole.to_json()}
        if self.whole.calibration.method == "none":  # the rest of the group has no say then
            found["calibration"] = {"method": "none"}
        return found

    def _fit(self, rows: FloatArray) -> None:
        from ptad.estimator import PTAD

        self.n_parameters_ = 0
        self._model = PTAD(
            preset=self.preset, config=self.whole, random_state=self.random_state, device=self.device, verbose=0
        ).fit(rows)
        self.history_ = [{**entry, "loss": entry["total"]} for entry in self._model.history_]
        for term in self._model.detector_.pipeline.terms:
            if isinstance(term.settings, NetworkSettings):
                self._describe(term, rows.shape[1])

    def _describe(self, term: Any, n_features: int) -> None:
        """Say how large the network is, and where it is narrower than the table asks for."""
        from ptad.benchmark.peers.npt_ad import row_attention_cap

        self.n_parameters_ += term.scorer.network.n_parameters
        if term.settings.backbone == "npt":
            self.capped_ = row_attention_cap(n_features, term.settings)

    def _score(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self._model.anomaly_score(rows))

    def p_value(self, scores: FloatArray) -> FloatArray | None:
        """How often a normal row has at least these scores; None if the model was fitted without calibration."""
        calibration = self._model.detector_.calibration
        return None if calibration is None else calibration.p_value(scores)
