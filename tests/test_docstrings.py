"""``help()`` is complete: what is public is documented, and the documentation matches the signature."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest
from numpydoc.validate import validate

import ptad
from ptad.report.plot import Plots

# no docstring, no summary; parameters missing, unknown, out of order, without type or description; the same of returns
WANTED = {"GL08", "SS01", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03"}
OWN = "ptad."
CLASSES = [getattr(ptad, name) for name in ptad.__all__ if isinstance(getattr(ptad, name), type)]


def own_methods(cls: type) -> list[str]:
    """Return the public methods of a class that ptad itself wrote, inherited ones too."""
    return [
        name
        for name, member in inspect.getmembers(cls, lambda m: inspect.isfunction(m) or inspect.ismethod(m))
        if not name.startswith("_") and str(getattr(member, "__module__", "")).startswith(OWN)
    ]


def faults(place: str) -> list[str]:
    return [f"{place}: {code} {text}" for code, text in validate(place)["errors"] if code in WANTED]


@pytest.mark.parametrize("cls", [*CLASSES, Plots], ids=lambda cls: cls.__name__)
def test_every_public_class_and_method_is_documented(cls: Any) -> None:
    place = f"{cls.__module__}.{cls.__qualname__}"
    own = faults(place)
    if issubclass(cls, ptad.PtadError) and "__init__" not in vars(cls):
        own = [fault for fault in own if "PR01" not in fault]  # the parameters of PtadError, documented there
    found = [*own, *(fault for name in own_methods(cls) for fault in faults(f"{place}.{name}"))]
    assert not found, "\n".join(found)


def test_the_methods_people_call_are_among_them() -> None:
    assert {
        "fit", "update", "recalibrate", "set_false_alarm_rate", "anomaly_score", "score_samples", "decision_function",
        "predict", "p_value", "term_scores", "explain", "transform", "get_feature_names_out", "save", "load",
    } <= set(own_methods(ptad.PTAD))  # fmt: skip
    assert {"top", "plot"} <= set(own_methods(ptad.Explanation))
    assert {"scores", "cells", "history", "masks", "prototypes", "projection"} == set(own_methods(Plots))


def test_every_public_property_is_documented() -> None:
    for cls in (*CLASSES, Plots):
        for name, member in inspect.getmembers(cls, lambda m: isinstance(m, property)):
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{cls.__name__}.{name}"


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("anomaly_score", "higher is more anomalous"),
        ("term_scores", "higher is more anomalous"),
        ("score_samples", "higher is more normal"),
        ("decision_function", "negative for anomalies"),
        ("predict", "-1 for anomalies"),
        ("p_value", "small for anomalies"),
    ],
)
def test_the_first_sentence_says_which_sign_is_anomalous(name: str, sign: str) -> None:
    assert sign in (inspect.getdoc(getattr(ptad.PTAD, name)) or "").splitlines()[0]


def test_the_check_finds_a_parameter_that_is_not_documented(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "undocumented.py").write_text('def f(x):\n    """Return x."""\n    return x\n')
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("undocumented")
    assert {fault.split()[1] for fault in faults("undocumented.f")} == {"PR01", "RT01"}
