"""Install every extra alone into an empty environment and use it: ``make extras`` (gigabytes; ``--only NAME,NAME``)."""

from __future__ import annotations

import argparse
import ast
import time
from pathlib import Path

from distribution import build
from environments import Environment, user_extras, without

USES = Path(__file__).with_name("extra_uses.py")
#: Extras that need torch; with any other, torch would be a mistake.
WITH_TORCH = {"torch", "bench", "onnx"}


def try_out(extra: str, wheel: Path) -> str:
    """Install and use one extra; say what came of it."""
    with Environment() as environment:
        started = time.monotonic()
        environment.install(f"ptad[{extra}] @ {wheel.as_uri()}")
        seconds, installed = time.monotonic() - started, environment.installed()
        if extra not in WITH_TORCH:
            without({"torch"}, installed)
        said = environment.run("python", "-P", str(USES), extra).strip()
        return f"{said}; {len(installed)} packages, installed in {seconds:.0f} s"


def main() -> None:
    """Try one extra after the other; say which do not work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(user_extras()))
    wanted = parser.parse_args().only.split(",")
    functions = {node.name for node in ast.parse(USES.read_text()).body if isinstance(node, ast.FunctionDef)}
    if missing := set(user_extras()) - functions:
        raise SystemExit(f"{USES.name} has no use of: {', '.join(sorted(missing))}")
    wheel, failed = build(), []
    for extra in wanted:
        started = time.monotonic()
        try:
            verdict = try_out(extra, wheel)
        except SystemExit as error:
            failed.append(extra)
            verdict = f"FAILED: {error}"
        print(f"{extra} ({time.monotonic() - started:.0f} s): {verdict}", flush=True)
    if failed:
        raise SystemExit(f"make extras: failed: {', '.join(failed)}")
    print("make extras: every extra works alone")


if __name__ == "__main__":
    main()
