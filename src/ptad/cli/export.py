"""``ptad export``: a model as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptad.cli import options
from ptad.cli.console import print_json, set_up_logging

EXAMPLES = """
ptad export model --out model.onnx
"""


def export(
    model: options.Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="The ONNX file to write.")] = Path("model.onnx"),
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Write a model as an ONNX file that scores without ptad, checked against the model."""
    from ptad.export.writing import export_model

    set_up_logging(quiet or as_json)
    done = export_model(model, out)
    if as_json:
        print_json({"out": str(done.path), "bytes": done.bytes, "parity": done.parity})
