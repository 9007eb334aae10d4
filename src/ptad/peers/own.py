"""PTAD itself behind the peer protocol, so that it runs under the same rules as everybody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ptad.config import make_config
from ptad.errors import DataError, SettingError
from ptad.peers.protocol import FloatArray, check_matrix


class PtadPeer:
    """A :class:`ptad.PTAD` detector with one of its presets.

    Parameters
    ----------
    preset : str
        ``"default"`` or ``"paper"``.
    config : mapping, optional
        Fields of :class:`ptad.config.Config` that differ from the preset.
    random_state, device
        As in PTAD.
    name : str
        The registry name.
    **options
        Further parameters of PTAD, such as ``context="batch"``.
    """

    own_scaling = True

    def __init__(
        self,
        preset: str = "default",
        config: Mapping[str, Any] | None = None,
        random_state: int = 0,
        device: str = "cpu",
        name: str = "ptad",
        **options: Any,
    ) -> None:
        self.preset = preset
        self.config = dict(config or {})
        self.random_state = random_state
        self.device = device
        self.name = name
        self.options = options
        # In the batch context a row attends to the rows beside it, by definition.
        self.batch_dependent = options.get("context", "reference") == "batch"
        self.n_parameters_ = 0
        self.capped_ = ""
        self.history_: list[dict[str, float]] = []

    def params(self) -> dict[str, Any]:
        """Every setting that decides the scores: the whole configuration, not only what differs from the preset."""
        try:
            resolved = make_config(self.preset, self.config)
        except ValueError as error:
            raise SettingError(str(error)) from error
        return {"preset": self.preset, **resolved.to_json(), **self.options}

    def fit(self, X: npt.ArrayLike) -> Self:
        """Fit the detector."""
        from ptad.estimator import PTAD
        from ptad.peers.nptad import row_attention_cap

        rows = check_matrix(X, self.name)
        self._n_features = rows.shape[1]
        config = make_config(self.preset, self.config)
        self.capped_ = row_attention_cap(self._n_features, config) if config.backbone == "npt" else ""
        self._model = PTAD(
            preset=self.preset,
            config=self.config or None,
            random_state=self.random_state,
            device=self.device,
            verbose=0,
            **self.options,
        ).fit(rows)
        # All members count: they all score.
        self.n_parameters_ = sum(p.numel() for p in self._model.scorer_.network.parameters())
        self.history_ = [{**entry, "loss": entry["total"]} for entry in self._model.history_]
        return self

    def anomaly_score(self, X: npt.ArrayLike) -> FloatArray:
        """PTAD's anomaly score; higher is more anomalous."""
        if not hasattr(self, "_model"):
            raise DataError(f"{self.name} has not been fitted: call fit first.")
        rows = check_matrix(X, self.name, self._n_features)
        return np.asarray(self._model.anomaly_score(rows), dtype=np.float64)
