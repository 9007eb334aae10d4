"""Install every extra alone into an empty environment and use it: ``make extras`` (gigabytes; ``--only NAME,NAME``)."""

from __future__ import annotations

import argparse
import time

from distribution import build, use_extra
from environments import USER_EXTRAS


def main() -> None:
    """Use one extra after the other; exit with the names of those that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(USER_EXTRAS))
    extras = parser.parse_args().only.split(",")
    wheel, failed = build(), []
    for extra in extras:
        started = time.monotonic()
        try:
            outcome = use_extra(extra, wheel)
        except SystemExit as error:
            failed.append(extra)
            outcome = f"FAILED: {error}"
        print(f"{extra} ({time.monotonic() - started:.0f} s): {outcome}", flush=True)
    if failed:
        raise SystemExit(f"make extras: failed: {', '.join(failed)}")
    print("make extras: every extra works alone")


if __name__ == "__main__":
    main()
