"""The public face: complete and light to import."""

from __future__ import annotations

import subprocess
import sys

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
