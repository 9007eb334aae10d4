"""Settings of a model from the command line and from a file, as parameters of :class:`ptad.PTAD`."""

from __future__ import annotations

import csv
import json
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptad.errors import SettingError

MOST_CHARACTERS = 2**20  # of a file of settings


def parse_rate(text: str | None) -> float | str | None:
    """Read a false-alarm rate: a number, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < 1.0:
        raise SettingError(
            f"--false-alarm-rate must be 'auto' or a number between 0 and 1, such as 0.01 for 1 %. Got {text!r}."
        )
    return value


def check_output(out: Path | None, db: str | None, into: str | None, cluster: bool) -> None:
    """Raise unless there is exactly one output for the scores."""
    if into is not None and out is not None:
        raise SettingError("Give --out FILE or --into TABLE, not both.")
    if into is not None and db is None:
        raise SettingError("--into needs a database. Name it with --db or in the variable PTAD_DB.")
    if cluster and out is None:
        raise SettingError("--engine ray writes a folder of Parquet files. Name it with --out.")


def on_cluster(engine: str, address: str | None, workers: int | None) -> bool:
    """Return whether the job runs on a cluster."""
    if engine not in ("local", "ray"):
        raise SettingError(f"--engine must be local or ray. Got {engine!r} instead.")
    if engine == "local" and (address is not None or workers is not None):
        raise SettingError("--address and --workers belong to --engine ray. Add it, or leave them out.")
    return engine == "ray"


def parse_names(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Read column names separated by commas; a name that holds a comma is put in double quotes."""
    return tuple(name for row in csv.reader(texts or (), skipinitialspace=True) for name in row if name)


def parse_pairs(texts: Sequence[str] | None, option: str, form: str) -> dict[str, str]:
    """Read repeated ``name=value`` options."""
    pairs = {}
    for text in texts or ():
        name, equal, value = text.rpartition("=") if option == "--type" else text.partition("=")
        if not equal or not name.strip():
            raise SettingError(f"{option} must be {form}. Got {text!r} instead.")
        pairs[name.strip()] = value.strip()
    return pairs


def parse_value(text: str) -> Any:
    """Read a value as TOML and JSON do; a bare word is text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def read_settings(path: Path) -> dict[str, Any]:
    """Read a TOML or JSON file: parameters of PTAD at the top, settings below ``config``, group by group.

    ::

        false_alarm_rate = 0.001

        [config.local_reconstruction]
        ridge = 0.1
    """
    from ptad.config import PRESETS
    from ptad.estimator import PTAD

    form = "JSON" if path.suffix == ".json" else "TOML"
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS)  # a device may never end
        content = json.loads(text) if form == "JSON" else tomllib.loads(text)
    except OSError as error:
        raise SettingError(f"--config {path} cannot be read: {error.strerror or error}. Check the path.") from error
    except ValueError as error:  # of both parsers and the decoder
        raise SettingError(f"--config {path} is not valid {form}: {error}. Correct it.") from error
    if not isinstance(content, dict) or not isinstance(content.get("config", {}), dict):
        raise SettingError(f"--config {path}: 'config' must hold settings, such as [config.local_reconstruction].")
    known = sorted(PTAD().get_params(deep=False))
    for name in sorted(set(content) - set(known)):
        groups = {group.title() for preset in PRESETS.values() for group in preset.groups()}
        hint = f" It is a group of settings: write [config.{name}]." if name in groups else ""
        raise SettingError(f"--config {path}: unknown key {name!r}.{hint} Known keys: {', '.join(known)}.")
    if "config" in content:
        content["config"] = _flat(content["config"])
    return content


def gather_settings(file: Path | None, pairs: dict[str, str], options: dict[str, Any]) -> dict[str, Any]:
    """Merge the file, ``--set`` and the other options; the command line wins over the file."""
    from ptad.config import make_config

    settings = read_settings(file) if file is not None else {}
    from_file = _with_none(settings.pop("config", {}))
    types = {**settings.get("types", {}), **options.pop("types", {})}
    settings.update({name: value for name, value in options.items() if value is not None})
    if from_file:
        try:
            make_config(settings.get("preset", "default"), from_file)
        except SettingError as error:
            raise SettingError(f"--config {file}: {error}") from error
    config = {**from_file, **_with_none({name: parse_value(value) for name, value in pairs.items()})}
    return {**settings, **({"types": types} if types else {}), **({"config": config} if config else {})}


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Return settings by dotted name, from either form: dotted names or groups."""
    return {
        f"{group}.{name}" if isinstance(values, dict) else group: value
        for group, values in config.items()
        for name, value in (values.items() if isinstance(values, dict) else [("", values)])
    }


def _with_none(config: dict[str, Any]) -> dict[str, Any]:
    """Replace the word none by None in settings that may be None: TOML has no null."""
    from dataclasses import fields

    from ptad.config import PRESETS

    optional = {
        f"{group.title()}.{item.name}"
        for preset in PRESETS.values()
        for group in preset.groups()
        for item in fields(group)
        if item.metadata["optional"]
    }
    return {
        name: None if name in optional and value in ("none", "None", "null") else value
        for name, value in config.items()
    }
