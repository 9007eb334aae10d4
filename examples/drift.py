"""
Drift and updating a model
==========================

What is normal can change: a new supplier, a new season. More normal rows are then flagged than the target rate.
``update`` adds new normal rows to the model and computes a new threshold.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ptad import PTAD

rng = np.random.default_rng(0)


def month(number, n=1000):
    """Parts of one month; from month 6 on they come from another supplier and are slightly longer."""
    length = rng.normal(10 if number < 6 else 10.6, 0.2, n)
    return pd.DataFrame({"length": length, "width": 0.5 * length + rng.normal(0, 0.05, n), "force": rng.gamma(9, 1, n)})


detector = PTAD(false_alarm_rate=0.05, verbose=0).fit(pd.concat([month(i) for i in range(3)], ignore_index=True))

# %%
# Every month is scored first. When far more rows are flagged than expected, someone checks them, finds that they are
# normal, and updates the model with them.

rates, updated = [], []
for number in range(3, 12):
    rows = month(number)
    rate = (detector.predict(rows) == -1).mean()
    rates.append(rate)
    if rate > 3 * detector.false_alarm_rate_:
        detector.update(rows)
        updated.append(number)

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.bar(range(3, 12), rates, color=["C3" if i in updated else "C0" for i in range(3, 12)])
axes.axhline(0.05, color="black", linestyle="--", linewidth=1, label="target false-alarm rate")
axes.set(xlabel="month", ylabel="flagged rows", title="Drift in month 6; the update restores the flag rate")
axes.legend()
plt.show()

# %%
# The updated model still accepts parts of the first supplier and still detects a defect.

defect = pd.DataFrame({"length": [10.6], "width": [4.2], "force": [9.0]})
print("first supplier, flagged:", (detector.predict(month(0)) == -1).mean())
print("defect, p-value:", round(float(detector.p_value(defect)[0]), 4))

# %%
# ``ptad report`` shows drift per column ("Drift since training"); ``ptad update`` updates a model from the shell.
