"""The public face: complete, documented, light to import."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import ptad


def test_public_names_are_complete() -> None:
    assert set(ptad.__all__) == {
        "PTAD",
        "Model",
        "Config",
        "Explanation",
        "PtadError",
        "UserError",
        "DataError",
        "SettingError",
        "BundleError",
        "MissingExtraError",
        "TrainingError",
        "__version__",
    }
    assert all(hasattr(ptad, name) for name in ptad.__all__)


@pytest.mark.parametrize("name", [name for name in ptad.__all__ if name != "__version__"])
def test_every_public_name_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(ptad, name))


def test_every_public_method_is_documented() -> None:
    methods = (
        "fit",
        "update",
        "recalibrate",
        "set_false_alarm_rate",
        "anomaly_score",
        "score_samples",
        "decision_function",
    )
    methods += ("predict", "p_value", "term_scores", "transform", "get_feature_names_out", "explain", "save", "load")
    for name in methods:
        assert (getattr(ptad.PTAD, name).__doc__ or "").strip(), name


@pytest.mark.parametrize("name", ["anomaly_score", "score_samples", "decision_function", "predict", "p_value"])
def test_docstrings_say_which_sign_is_anomalous(name: str) -> None:
    text = getattr(ptad.PTAD, name).__doc__
    assert any(word in text for word in ("anomal", "normal"))


def test_errors_form_the_documented_tree() -> None:
    assert issubclass(ptad.UserError, ptad.PtadError) and issubclass(ptad.UserError, ValueError)
    for child in (ptad.DataError, ptad.SettingError, ptad.BundleError, ptad.MissingExtraError):
        assert issubclass(child, ptad.UserError)
    assert issubclass(ptad.MissingExtraError, ImportError)
    assert issubclass(ptad.TrainingError, RuntimeError) and not issubclass(ptad.TrainingError, ptad.UserError)


HEAVY = (
    "torch",
    "sklearn",
    "scipy",
    "pandas",
    "pyod",
    "matplotlib",
    "pytorch_optimizer",
    "polars",
    "ray",
    "fastapi",
    "plotly",
    "onnx",
    "ot",
)


def test_import_is_light() -> None:
    code = f"import sys, ptad; print([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert run.stderr == ""
