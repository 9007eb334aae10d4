"""Presets, dotted settings, and the way to JSON and back."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from ptad import BundleError, Config, SettingError
from ptad.config import PRESETS, make_config
from ptad.settings import setting

EVERY_SETTING = [
    (preset, group.title(), item)
    for preset, config in PRESETS.items()
    for group in config.groups()
    for item in fields(group)
]


@pytest.mark.parametrize(("preset", "group", "item"), EVERY_SETTING, ids=lambda value: getattr(value, "name", value))
def test_every_setting_is_reached_by_its_dotted_name_and_checked(preset: str, group: str, item: Any) -> None:
    config = make_config(preset, {f"{group}.{item.name}": item.default})
    assert isinstance(config, Config)
    with pytest.raises(SettingError, match=rf"The setting '{group}\.{item.name}' must be"):
        make_config(preset, {f"{group}.{item.name}": object()})


@pytest.mark.parametrize(("preset", "group", "item"), EVERY_SETTING, ids=lambda value: getattr(value, "name", value))
def test_every_number_is_bounded_on_both_sides(preset: str, group: str, item: Any) -> None:
    """A setting of a stranger ends in one sentence, not in a worker that runs out of memory."""
    if item.metadata["choices"] is not None or isinstance(item.default, bool):
        return
    low, high = item.metadata["low"], item.metadata["high"]
    for value in (2 * high + 1, low - 1, 10**30, 10**400, 10**5000, 1e30, -(10**5000), np.inf, -np.inf, np.nan, "1e30"):
        with pytest.raises(SettingError, match=rf"The setting '{group}\.{item.name}' must be") as refusal:
            make_config(preset, {f"{group}.{item.name}": value})
        assert len(str(refusal.value)) < 250


def test_a_number_without_bounds_cannot_be_declared() -> None:
    with pytest.raises(TypeError, match="needs low and high"):
        setting(1, low=0)


def test_a_change_keeps_the_rest_of_the_preset() -> None:
    config = make_config("default", {"local_reconstruction.ridge": 0.1, "reference.rows": 77})
    assert config.terms[0].ridge == 0.1 and config.reference.rows == 77
    assert config.terms[1:] == PRESETS["default"].terms[1:] and config.calibration == PRESETS["default"].calibration
    assert PRESETS["default"].terms[0].ridge != 0.1
    assert make_config("paper", config) is config


@pytest.mark.parametrize("key", ["ridge", "reconstruction.ridge", "", ".ridge", "terms", "network.ridge"])
def test_an_unknown_group_is_named_beside_the_known_ones(key: str) -> None:
    with pytest.raises(SettingError, match=r"There is no setting '.*groups of this preset: local_reconstruction, "):
        make_config("default", {key: 1.0})


def test_an_unknown_setting_of_a_known_group() -> None:
    with pytest.raises(SettingError, match=r"no setting 'local_reconstruction\.rigde'\. Known settings: .*ridge"):
        make_config("default", {"local_reconstruction.rigde": 1.0})


def test_an_unknown_preset() -> None:
    with pytest.raises(SettingError, match=r"There is no preset 'best'\. Choose one of: default, paper"):
        make_config("best")


def test_presets_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        PRESETS["default"].reference = None  # type: ignore[misc]


def test_names_of_terms_and_groups_are_unique() -> None:
    for config in PRESETS.values():
        titles = [group.title() for group in config.groups()]
        assert len(set(titles)) == len(titles) and not any("." in title for title in titles)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_json_round_trip(preset: str) -> None:
    config = PRESETS[preset].replace({"calibration.share": np.float32(0.5), "reference.rows": np.int64(9)})
    assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    "harm",
    [
        lambda c: c.pop("terms"),
        lambda c: c.pop("calibration"),
        lambda c: c["terms"].update(magic={}),
        lambda c: c["terms"]["local_reconstruction"].update(ridge=-1.0),
        lambda c: c["terms"]["local_reconstruction"].update(magic=1.0),
        lambda c: c.update(terms=[]),
    ],
)
def test_damaged_settings_are_refused(harm: Any) -> None:
    content = json.loads(json.dumps(PRESETS["default"].to_json()))
    harm(content)
    with pytest.raises(BundleError, match="damaged"):
        Config.from_json(content)


def test_paper_preset_has_the_papers_values() -> None:
    (paper,) = PRESETS["paper"].terms
    assert (paper.embedding_dim, paper.n_heads, paper.feedforward_factor, paper.dropout) == (16, 4, 4, 0.1)
    assert (paper.n_basis_vectors, paper.n_prototypes, paper.entropy_weight) == (5, 5, 0.1)
    assert (paper.basis_loss_weight, paper.prototype_loss_weight, paper.orthogonality_weight) == (1.0, 1.0, 0.1)
    assert (paper.basis_score_weight, paper.prototype_score_weight) == (0.01, 0.01)
    assert (paper.backbone, paper.optimizer, paper.projection_mask) == ("npt", "lamb", "multiple")
    assert paper.data_mask and paper.basis_vectors and paper.orthogonality and paper.prototypes
    assert paper.basis_distance == paper.prototype_distance == "transport" and paper.matching == "nearest"
    assert paper.warmup_epochs == 10 and paper.abd_width is None and not paper.plan_gradient
