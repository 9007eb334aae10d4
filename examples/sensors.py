"""
Sensor fault
============

Three sensors of a pump depend on the same load. One of them slowly fails. Most of its values stay within their usual
range, but they no longer agree with the other two sensors.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ptad import PTAD

rng = np.random.default_rng(0)


def readings(n):
    load = 50 + 30 * np.sin(np.linspace(0, 12, n)) + rng.normal(0, 2, n)
    return pd.DataFrame(
        {
            "pressure": 2 + 0.05 * load + rng.normal(0, 0.05, n),
            "current": 8 + 0.2 * load + rng.normal(0, 0.2, n),
            "temperature": 20 + 0.4 * load + rng.normal(0, 0.5, n),
        }
    )


normal = readings(1500)
detector = PTAD(false_alarm_rate=0.01, verbose=0).fit(normal)

# %%
# From row 200 on, the reading of the current sensor is too high, by an error that grows with every row.

new = readings(400)
new.loc[200:, "current"] += np.linspace(0, 4, 200)

p_value = detector.p_value(new)
figure, (top, bottom) = plt.subplots(2, sharex=True, figsize=(8, 5), layout="constrained")
top.plot(new["current"], color="C1")
top.axvline(200, color="grey", linewidth=0.8)
top.set(ylabel="current", title="The readings of the failing sensor stay almost within their usual range ...")
bottom.semilogy(p_value, ".", color="C0", markersize=4)
bottom.axhline(detector.false_alarm_rate_, color="C3", linestyle="--", label="threshold")
bottom.axvline(200, color="grey", linewidth=0.8)
bottom.set(xlabel="row", ylabel="p-value", title="... but its rows are soon flagged (p-values below the line)")
bottom.legend()
plt.show()

# %%
# The explanation names the sensor and gives the value that would have been expected.

inside = new["current"][200:].between(normal["current"].min(), normal["current"].max())
print(f"rows of the failing sensor within its usual range: {inside.mean():.0%}")
detector.explain(new).plot(row=380)
plt.show()
