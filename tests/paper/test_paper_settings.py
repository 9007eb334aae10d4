"""The settings: the paper's values, their ranges, and what they say without torch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest

from ptad.errors import MissingExtraError, SettingError
from ptad.paper.settings import NetworkSettings


def test_the_papers_values() -> None:
    settings = NetworkSettings()
    assert (settings.backbone, settings.embedding_dim, settings.n_heads) == ("npt", 16, 4)
    assert (settings.n_basis_vectors, settings.n_prototypes, settings.entropy_weight) == (5, 5, 0.1)
    assert (settings.basis_loss_weight, settings.prototype_loss_weight, settings.orthogonality_weight) == (1, 1, 0.1)
    assert (settings.basis_score_weight, settings.prototype_score_weight) == (0.01, 0.01)
    assert (settings.optimizer, settings.learning_rate, settings.context) == ("lamb", 0.01, "reference")
    assert settings.title() == "network"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbone": "dense"}, "'network.backbone' must be one of npt, transformer, mlp"),
        ({"n_steps": 0}, "'network.n_steps' must be a whole number, at least 1 and at most 10,000,000"),
        ({"n_steps": 10**8}, "'network.n_steps'"),
        ({"dropout": 1.0}, "'network.dropout'"),
        ({"learning_rate": 0.0}, "'network.learning_rate' must be a number, above 0"),
        ({"learning_rate": float("nan")}, "'network.learning_rate'"),
        ({"patience": 1.5}, "'network.patience' must be a whole number or none"),
        ({"abd_width": 8.0}, "'network.abd_width' must be a whole number or none"),
        ({"data_mask": 1}, "'network.data_mask' must be true or false"),
        ({"embedding_dim": 6}, "'network.n_heads' must divide embedding_dim and abd_width"),
        ({"abd_width": 6}, "'network.n_heads' must divide"),
        ({"context": "neighbours"}, "'network.context' must be one of reference, batch"),
        ({"n_passes": 3}, "There is no setting 'network.n_passes'"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        NetworkSettings().replace(changes)


def test_every_number_has_a_lower_and_an_upper_bound() -> None:
    for item in fields(NetworkSettings):
        if isinstance(item.default, bool) or item.metadata["choices"] is not None:
            continue
        assert item.metadata["low"] is not None and item.metadata["high"] is not None, item.name


def test_settings_survive_json() -> None:
    settings = NetworkSettings(clip=2.5, patience=3, backbone="mlp")
    assert NetworkSettings(**settings.to_json()) == settings


def test_the_term_without_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("ptad.terms.network", "ptad.paper."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'torch'.*pip install 'ptad\[torch\]'"):
        NetworkSettings.term()


def test_settings_do_not_import_torch() -> None:
    code = "import sys; import ptad.paper.settings; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
