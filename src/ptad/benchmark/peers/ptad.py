"""PTAD itself as a compared method, so that it runs under the same rules as the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ptad.arrays import Matrix
from ptad.benchmark.peers.base import Peer
from ptad.config import make_config
from ptad.errors import SettingError
from ptad.paper.settings import NetworkSettings


@dataclass(eq=False, kw_only=True)
class PtadPeer(Peer):
    """A :class:`ptad.PTAD` detector with one of its presets."""

    preset: str = "default"
    config: Mapping[str, Any] = field(default_factory=dict)  # settings that differ from the preset, by dotted name
    without: Sequence[str] = ()  # terms of the preset that are removed

    own_scaling = True

    def __post_init__(self) -> None:
        super().__post_init__()
        # The paper has no threshold: like the other methods it is fitted once, on all training rows.
        defaults = {"calibration.method": "none"} if self.preset == "paper" else {}
        config = make_config(self.preset, {**defaults, **self.config})
        terms = tuple(term for term in config.terms if term.title() not in self.without)
        if not terms or len(terms) + len(self.without) != len(config.terms):
            names = ", ".join(term.title() for term in config.terms)
            removed = ", ".join(map(repr, self.without))
            raise SettingError(f"The preset {self.preset!r} cannot do without {removed}. Its terms: {names}.")
        self.full_config = replace(config, terms=terms)
        # In the batch context a row attends to the rows beside it, by definition.
        self.batch_dependent = any(isinstance(term, NetworkSettings) and term.context == "batch" for term in terms)

    def params(self) -> dict[str, Any]:
        """Return every setting that affects the scores: the full configuration, not only the changes to the preset."""
        params = {"preset": self.preset, **self.full_config.to_json()}
        if self.full_config.calibration.method == "none":  # then the rest of the group has no effect
            params["calibration"] = {"method": "none"}
        return params

    def _fit(self, rows: Matrix) -> None:
        from ptad.estimator import PTAD

        self.n_parameters_ = 0
        self._model = PTAD(
            preset=self.preset, config=self.full_config, random_state=self.random_state, device=self.device, verbose=0
        ).fit(rows)
        self.history_ = [{**entry, "loss": entry["total"]} for entry in self._model.history_]
        for term in self._model.detector_.pipeline.terms:
            if isinstance(term.settings, NetworkSettings):
                self._describe(term, rows.shape[1])

    def _describe(self, term: Any, n_features: int) -> None:
        """Note the size of the network, and whether its attention is narrower than the table needs."""
        from ptad.benchmark.peers.npt_ad import row_attention_cap

        self.n_parameters_ += term.scorer.network.n_parameters
        if term.settings.backbone == "npt":
            self.capped_ = row_attention_cap(n_features, term.settings)

    def _score(self, rows: Matrix) -> Matrix:
        return np.asarray(self._model.anomaly_score(rows))

    def p_value(self, scores: Matrix) -> Matrix | None:
        """Return the p-values of scores; None if the model was fitted without calibration."""
        calibration = self._model.detector_.calibration
        return None if calibration is None else calibration.p_value(scores)
