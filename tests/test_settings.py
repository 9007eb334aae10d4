"""Settings as data: each is declared once, with its range, and a wrong one is refused by name."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from ptad import SettingError
from ptad.settings import Settings, setting


@dataclass(frozen=True)
class Oven(Settings):
    """One setting of every kind."""

    name: ClassVar[str] = "oven"

    heat: float = setting(180.0, low=0.0, high=300.0, open_low=True)
    minutes: int = setting(30, low=1, high=1_000)
    mode: str = setting("fan", choices=("fan", "grill"))
    door: bool = setting(False)
    shelves: tuple[int, ...] = setting((1, 2), low=0, high=9)
    steam: float | None = setting(None, low=0.0, high=5.0, optional=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heat": 0.0}, "The setting 'oven.heat' must be a number, above 0 and at most 300. Got 0.0."),
        ({"heat": 301}, "The setting 'oven.heat' must be a number, above 0 and at most 300. Got 301."),
        ({"heat": float("nan")}, "Got nan."),
        ({"heat": float("inf")}, "Got inf."),
        ({"heat": "hot"}, "Got 'hot'."),
        ({"heat": True}, "Got True."),
        ({"minutes": 0}, "The setting 'oven.minutes' must be a whole number, at least 1 and at most 1,000. Got 0."),
        ({"minutes": 1.5}, "The setting 'oven.minutes' must be a whole number, at least 1 and at most 1,000. Got 1.5."),
        ({"minutes": None}, "Got None."),
        ({"mode": "steam"}, "The setting 'oven.mode' must be one of fan, grill. Got 'steam'."),
        ({"door": 1}, "The setting 'oven.door' must be true or false. Got 1."),
        ({"shelves": ()}, "The setting 'oven.shelves' must be a list of at least one number. Got ()."),
        ({"shelves": 3}, "The setting 'oven.shelves' must be a list of at least one number. Got 3."),
        ({"shelves": [1, -1]}, "The setting 'oven.shelves' must be a whole number, at least 0 and at most 9. Got -1."),
        ({"steam": -1.0}, "The setting 'oven.steam' must be a number, at least 0 and at most 5. Got -1.0."),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_name_with_what_is_allowed(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        Oven(**changes)
    assert message in str(caught.value)
    with pytest.raises(SettingError):
        Oven().replace(changes)


def test_right_values_take_the_type_of_the_default() -> None:
    oven = Oven(heat=200, minutes=5, shelves=[3], steam=2)
    assert (oven.heat, oven.minutes, oven.shelves, oven.steam) == (200.0, 5, (3,), 2)
    assert isinstance(oven.heat, float) and Oven(steam=None).steam is None


def test_numbers_of_numpy_become_plain() -> None:
    """A parameter grid made with numpy gives such numbers."""
    oven = Oven(heat=np.float32(0.5), minutes=np.int64(7), door=np.True_, shelves=list(np.arange(2)))
    assert json.loads(json.dumps(oven.to_json())) == {
        "heat": 0.5,
        "minutes": 7,
        "mode": "fan",
        "door": True,
        "shelves": [0, 1],
        "steam": None,
    }


def test_json_gives_the_settings_back() -> None:
    oven = Oven(heat=99.5, shelves=(4, 5, 6), steam=0.25)
    assert Oven(**json.loads(json.dumps(oven.to_json()))) == oven


def test_an_unknown_setting_is_named_beside_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"no setting 'oven\.height'\. Known settings: heat, minutes, mode"):
        Oven().replace({"height": 3})


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Oven().heat = 3.0  # type: ignore[misc]
