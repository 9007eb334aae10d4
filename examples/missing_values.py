"""
Missing values that mean something
==================================

A gap in a column that often has gaps means little. A gap in a column that never has one means much. No value has to be
filled in beforehand: ptad has a term of its own for gaps.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from ptad import PTAD

rng = np.random.default_rng(0)
table = load_wine(as_frame=True).data[["alcohol", "malic_acid", "ash", "magnesium", "hue", "proline"]]
table.loc[rng.random(len(table)) < 0.3, "proline"] = np.nan  # a laboratory that often forgets one analysis
print(table.isna().mean().round(2))

# %%
# Fit on the table as it is, and look at three copies of one row: complete, without the value that is often missing, and
# without one that never is.

detector = PTAD(false_alarm_rate=0.05, verbose=0).fit(table)
row = table.dropna().iloc[[0]]
rows = pd.concat([row, row.assign(proline=np.nan), row.assign(alcohol=np.nan)], ignore_index=True)
rows.index = ["complete", "proline missing", "alcohol missing"]
pd.DataFrame({"score": detector.anomaly_score(rows), "p_value": detector.p_value(rows)}).round(3)

# %%
# The score by terms: the missing proline adds little. The missing alcohol adds a lot, and the row is flagged.

terms = detector.term_scores(rows)
terms.plot.barh(stacked=True, colormap="tab10", figsize=(8, 3), xlabel="score")
plt.gca().invert_yaxis()
plt.legend(fontsize="small", loc="upper right")
plt.tight_layout()
plt.show()

# %%
# The reason is given in words.

print(detector.explain(rows).reasons.loc["alcohol missing"])
