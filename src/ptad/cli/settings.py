"""Settings of a model from the command line and from a TOML file, as parameters of :class:`ptad.PTAD`."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptad.errors import SettingError


def parse_rate(text: str | None) -> float | str | None:
    """Read a false-alarm rate: a number, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise SettingError(f"--false-alarm-rate must be 'auto' or a number between 0 and 1. Got {text!r}.") from error


def parse_source(table: str | None, db: str | None, query: str | None) -> Any:
    """Return where the rows come from: a file, or a query on a database."""
    from ptad.tables import Query

    if (table is None) == (query is None):
        raise SettingError("Give either a TABLE or --query with --db, to say where the rows come from.")
    if query is None:
        return table
    if db is None:
        raise SettingError("--query needs a database. Name it with --db or in the variable PTAD_DB.")
    return Query(db, query)


def parse_target(db: str | None, into: str, out: Path | None) -> tuple[str, str]:
    """Return the database and the table to write to."""
    if out is not None:
        raise SettingError("Give --out FILE or --into TABLE, not both.")
    if db is None:
        raise SettingError("--into needs a database. Name it with --db or in the variable PTAD_DB.")
    return db, into


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
        name, equal, value = text.rpartition("=") if option == "--kind" else text.partition("=")
        if not equal or not name.strip():
            raise SettingError(f"{option} wants {form}. Got {text!r} instead.")
        pairs[name.strip()] = value.strip()
    return pairs


def parse_value(text: str) -> Any:
    """Read a value as TOML does; ``none`` is None, and a bare word is text."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def read_settings(path: Path) -> dict[str, Any]:
    """Read a TOML file: parameters of PTAD at the top, fields of ptad.Config in the table ``[config]``."""
    from dataclasses import fields

    from ptad.config import Config
    from ptad.estimator import PTAD

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"--config {path} cannot be read: {error.strerror or error}. Check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"--config {path} is not valid TOML: {error}. Correct it.") from error
    known = set(PTAD().get_params(deep=False))
    config = content.get("config", {})
    if not isinstance(config, dict):
        raise SettingError(f"--config {path}: 'config' must be a table. Write [config] above its fields.")
    for where, found, allowed in (("", content, known), ("[config] ", config, {f.name for f in fields(Config)})):
        unknown = sorted(set(found) - allowed)
        if unknown:
            hint = (
                " It is a field of ptad.Config: put it below [config]." if _is_field(unknown[0]) and not where else ""
            )
            raise SettingError(
                f"--config {path}: unknown key {where}{unknown[0]!r}.{hint} Known keys: {', '.join(sorted(allowed))}."
            )
    # TOML has no null
    content["config"] = {
        name: None if value == "none" and _may_be_none(name) else value for name, value in config.items()
    }
    return content


def gather(file: Path | None, fields: dict[str, str], options: dict[str, Any]) -> dict[str, Any]:
    """Put the file, ``--set`` and the other options together; the command line wins over the file."""
    settings = read_settings(file) if file is not None else {}
    config = {**settings.pop("config", {}), **{name: parse_value(value) for name, value in fields.items()}}
    kinds = {**settings.get("kinds", {}), **options.pop("kinds", {})}
    settings.update({name: value for name, value in options.items() if value is not None})
    return {**settings, **({"kinds": kinds} if kinds else {}), **({"config": config} if config else {})}


def _is_field(name: str) -> bool:
    from dataclasses import fields

    from ptad.config import Config

    return name in {f.name for f in fields(Config)}


def _may_be_none(name: str) -> bool:
    return name in ("clip", "abd_width", "patience")
