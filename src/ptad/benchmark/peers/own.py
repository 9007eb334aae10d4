"""PTAD itself behind the peer protocol, so that it runs under the same rules as everybody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ptad.benchmark.peers.protocol import FloatArray, check_matrix
from ptad.config import make_config
from ptad.errors import DataError, SettingError
from ptad.paper.settings import NetworkSettings


class PtadPeer:
    """A :class:`ptad.PTAD` detector with one of its presets.

    Parameters
    ----------
    preset : str
        ``"default"`` or ``"paper"``.
    config : mapping, optional
        Settings that differ from the preset, such as ``{"network.context": "batch"}``.
    without : str, optional
        A term of the preset that is taken away.
    random_state, device
        As in PTAD.
    name : str
        The registry name.
    """

    own_scaling = True

    def __init__(
        self,
        preset: str = "default",
        config: Mapping[str, Any] | None = None,
        without: str | None = None,
        random_state: int = 0,
        device: str = "cpu",
        name: str = "ptad",
    ) -> None:
        self.preset = preset
        self.config = make_config(preset, config)
        if without is not None:
            terms = tuple(term for term in self.config.terms if term.title() != without)
            if len(terms) == len(self.config.terms) or not terms:
                known = ", ".join(term.title() for term in self.config.terms)
                raise SettingError(f"The preset {preset!r} cannot do without {without!r}. Its terms: {known}.")
            self.config = replace(self.config, terms=terms)
        self.random_state = random_state
        self.device = device
        self.name = name
        networks = [term for term in self.config.terms if isinstance(term, NetworkSettings)]
        # In the batch context a row attends to the rows beside it, by definition.
        self.batch_dependent = any(term.context == "batch" for term in networks)
        self.n_parameters_ = 0
        self.capped_ = ""
        self.history_: list[dict[str, float]] = []

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores: the whole configuration, not only what differs from the preset."""
        found = {"preset": self.preset, **self.config.to_json()}
        if self.config.calibration.method == "none":  # the rest of the group has no say then
            found["calibration"] = {"method": "none"}
        return found

    def fit(self, X: npt.ArrayLike) -> Self:
        """Fit the detector."""
        from ptad.estimator import PTAD

        rows = check_matrix(X, self.name)
        self._n_features = rows.shape[1]
        self._model = PTAD(
            preset=self.preset, config=self.config, random_state=self.random_state, device=self.device, verbose=0
        ).fit(rows)
        self.history_ = [{**entry, "loss": entry["total"]} for entry in self._model.history_]
        for term in self._model.detector_.pipeline.terms:
            if isinstance(term.settings, NetworkSettings):
                self._describe(term)
        return self

    def _describe(self, term: Any) -> None:
        """Say how large the network is, and where it is narrower than the table asks for."""
        from ptad.benchmark.peers.nptad import row_attention_cap

        self.n_parameters_ += term.scorer.network.n_parameters
        if term.settings.backbone == "npt":
            self.capped_ = row_attention_cap(self._n_features, term.settings)

    def anomaly_score(self, X: npt.ArrayLike) -> FloatArray:
        """PTAD's anomaly score; higher is more anomalous."""
        if not hasattr(self, "_model"):
            raise DataError(f"{self.name} has not been fitted: call fit first.")
        rows = check_matrix(X, self.name, self._n_features)
        return np.asarray(self._model.anomaly_score(rows), dtype=np.float64)

    def p_value(self, scores: FloatArray) -> FloatArray | None:
        """How often a normal row has at least these scores; None if the model was fitted without calibration."""
        calibration = self._model.detector_.calibration
        return None if calibration is None else calibration.p_value(scores)
