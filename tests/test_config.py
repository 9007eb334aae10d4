"""Settings: presets, their paper values, and errors in scikit-learn's wording."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from ptad import Config
from ptad.config import PRESETS, make_config


def test_paper_preset_has_the_papers_values() -> None:
    paper = PRESETS["paper"]
    assert (paper.embedding_dim, paper.n_heads, paper.feedforward_factor, paper.dropout) == (16, 4, 4, 0.1)
    assert (paper.n_basis_vectors, paper.n_prototypes, paper.entropy_weight) == (5, 5, 0.1)
    assert (paper.basis_loss_weight, paper.prototype_loss_weight, paper.orthogonality_weight) == (1.0, 1.0, 0.1)
    assert (paper.basis_score_weight, paper.prototype_score_weight) == (0.01, 0.01)
    assert (paper.backbone, paper.optimizer, paper.projection_mask) == ("npt", "lamb", "multiple")
    assert paper.data_mask and paper.basis_vectors and paper.orthogonality and paper.prototypes
    assert paper.basis_distance == paper.prototype_distance == "transport" and paper.matching == "nearest"
    assert paper.warmup_epochs == 10 and paper.abd_width is None and not paper.plan_gradient


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("n_basis_vectors", 0, "must be an int in the range [1, inf). Got 0 instead."),
        ("n_prototypes", 1.5, "must be an int in the range [1, inf). Got 1.5 instead."),
        ("entropy_weight", 0.0, "must be a float in the range (0.0, inf). Got 0.0 instead."),
        ("dropout", 1.0, "must be a float in the range [0.0, 1.0). Got 1.0 instead."),
        ("backbone", "cnn", "must be a str among"),
        ("matching", "best", "must be a str among"),
        ("data_mask", "yes", "Got 'yes' instead."),
        ("batch_size", 1, "must be an int in the range [2, inf). Got 1 instead."),
        ("n_folds", 1, "must be an int in the range [2, inf). Got 1 instead."),
    ],
)
def test_wrong_values_are_named(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        make_config("default", {field: value})
    assert str(caught.value).startswith(f"The '{field}' parameter of PTAD") and message in str(caught.value)


def test_every_field_is_judged() -> None:
    for field in fields(Config):
        with pytest.raises(ValueError, match=f"The '{field.name}' parameter of PTAD must be"):
            Config(**{field.name: object()})


def test_unknown_field_and_preset() -> None:
    with pytest.raises(ValueError, match=r"Got 'n_basis' instead; known fields: .*n_basis_vectors"):
        make_config("default", {"n_basis": 3})
    with pytest.raises(ValueError, match="The 'preset' parameter of PTAD must be a str among"):
        make_config("best")


def test_heads_must_divide_the_widths() -> None:
    with pytest.raises(ValueError, match="'n_heads' parameter of PTAD must divide"):
        make_config("paper", {"n_heads": 3})
    with pytest.raises(ValueError, match="'n_heads' parameter of PTAD must divide"):
        make_config("paper", {"abd_width": 30})


def test_overrides_keep_the_rest_of_the_preset() -> None:
    config = make_config("default", {"n_steps": 7})
    assert config.n_steps == 7 and config.optimizer == PRESETS["default"].optimizer
    assert make_config("paper", config) is config


def test_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        PRESETS["paper"].n_steps = 3  # type: ignore[misc]


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_json_round_trip(preset: str) -> None:
    config = PRESETS[preset]
    assert Config(**json.loads(json.dumps(config.to_json()))) == config


def test_numpy_numbers_survive_json() -> None:
    """A search over np.arange gives numpy's integers."""
    config = make_config("default", {"n_steps": np.int64(7), "learning_rate": np.float32(0.5), "data_mask": np.True_})
    again = Config(**json.loads(json.dumps(config.to_json())))
    assert (again.n_steps, again.learning_rate, again.data_mask) == (7, 0.5, True)


@pytest.mark.parametrize(
    ("mask", "branches", "basis", "scored"),
    [("none", 1, 5, False), ("single", 1, 1, True), ("multiple", 5, 5, True), ("random", 5, 5, False)],
)
def test_what_a_mask_kind_implies(mask: str, branches: int, basis: int, scored: bool) -> None:
    config = make_config("paper", {"projection_mask": mask})
    assert (config.n_branches, config.n_basis, config.scores_basis) == (branches, basis, scored)


def test_an_mlp_has_no_prototypes() -> None:
    assert not make_config("paper", {"backbone": "mlp"}).scores_prototypes
    assert make_config("paper", {"backbone": "transformer"}).scores_prototypes
    assert not make_config("paper", {"prototypes": False}).scores_prototypes
