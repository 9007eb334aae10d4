"""
Missing values
==============

A missing value adds little to the score in a column where values are often missing, and much in a column where they
never are. No imputation is needed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from ptad import PTAD

rng = np.random.default_rng(0)
table = load_wine(as_frame=True).data[["alcohol", "malic_acid", "ash", "magnesium", "hue", "proline"]]
table.loc[rng.random(len(table)) < 0.3, "proline"] = np.nan  # one analysis is often not done
print(table.isna().mean().round(2))

# %%
# Fit on the table as it is, and score three copies of one row: complete, without the value that is often missing, and
# without a value that is never missing.

detector = PTAD(false_alarm_rate=0.05, verbose=0).fit(table)
row = table.dropna().iloc[[0]]
rows = pd.concat([row, row.assign(proline=np.nan), row.assign(alcohol=np.nan)], ignore_index=True)
rows.index = ["complete", "proline missing", "alcohol missing"]
pd.DataFrame({"score": detector.anomaly_score(rows), "p_value": detector.p_value(rows)}).round(3)

# %%
# The score by term. The missing proline adds little, the missing alcohol much more. A p-value of 0.106 is above the
# false-alarm rate of 0.05: this gap alone does not flag the row.

terms = detector.term_scores(rows)
terms.plot.barh(stacked=True, colormap="tab10", figsize=(8, 3), xlabel="score")
plt.gca().invert_yaxis()
plt.legend(fontsize="small", loc="upper right")
plt.tight_layout()
plt.show()

# %%
# The explanation gives the reason.

print(detector.explain(rows).reasons.loc["alcohol missing"])
