"""
Categorical columns and unseen categories
=========================================

Categorical columns need no encoding by the caller. A category that is absent from the training rows is flagged and
named in the explanation; so is a pair of common categories that never occur together.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ptad import PTAD

# %%
# Orders of a workshop. Each part is made from a fixed set of materials.

rng = np.random.default_rng(0)
materials = {"bolt": ["steel", "brass"], "seal": ["rubber"], "pipe": ["steel", "copper"], "valve": ["brass", "copper"]}
part = rng.choice(list(materials), 800)
normal = pd.DataFrame(
    {
        "part": part,
        "material": [rng.choice(materials[p]) for p in part],
        "finish": rng.choice(["raw", "polished"], 800),
        "weight": pd.Series(part).map({"bolt": 0.1, "seal": 0.05, "pipe": 4.0, "valve": 1.5}) * rng.normal(1, 0.1, 800),
    }
)
detector = PTAD(false_alarm_rate=0.01, verbose=0).fit(normal)
print(detector.schema_.types)

# %%
# Four new orders: a typical one, one with an unseen material, a seal made of steel, and a pipe as light as a bolt.

new = pd.DataFrame(
    {
        "part": ["bolt", "bolt", "seal", "pipe"],
        "material": ["steel", "titanium", "steel", "copper"],
        "finish": ["raw", "raw", "polished", "raw"],
        "weight": [0.1, 0.1, 0.05, 0.1],
    }
)
explanation = detector.explain(new)
first = [columns[0] for columns in explanation.top(1)]
pd.DataFrame(
    {
        "p_value": detector.p_value(new).round(4),
        "flagged": detector.predict(new) == -1,
        "column": first,
        "reason": [explanation.reasons[c][i] for i, c in enumerate(first)],
        "expected": [explanation.expected[c][i] for i, c in enumerate(first)],
    }
)

# %%
# The same as a heat map: one row per order; darker cells contribute more to the score.

detector.plot.cells(new, top=4)
plt.show()
