"""Draw the figure of the README: scores with the threshold, and an explanation of one row. Run by ``make figures``."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from ptad import PTAD

FILE = Path(__file__).parent / "images" / "explanation.png"


def draw() -> None:
    """Fit on 200 benign tumours, score the other benign and all malignant ones, explain the first malignant one."""
    table, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    detector = PTAD(false_alarm_rate=0.05, verbose=0).fit(table[benign == 1][:200])
    new = table.drop(index=table[benign == 1][:200].index)
    malignant = benign[new.index] == 0
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.2), width_ratios=(1, 1), layout="constrained")
    detector.plot.scores(new, labels=malignant, ax=left)
    left.legend(frameon=False, fontsize="small", loc="upper center", labels=["benign", "malignant", "threshold"])
    left.set_title("Scores of new rows, fitted on benign ones only", loc="left")
    detector.explain(new[malignant].head(1)).plot(n=5, ax=right)
    right.set_title("Why one of them is flagged", loc="left")
    figure.savefig(FILE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    draw()
