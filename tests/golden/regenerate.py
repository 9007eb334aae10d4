"""Write the golden scores anew; to be run after a change that is meant to alter numbers: ``make golden``."""

from __future__ import annotations

import json
from pathlib import Path

from golden_scores import CASES, golden_scores


def main() -> None:
    """Compute every case and replace the file beside this script."""
    scores = {case: golden_scores(case) for case in CASES}
    path = Path(__file__).with_name("scores.json")
    path.write_text(json.dumps(scores, indent=1) + "\n")


if __name__ == "__main__":
    main()
