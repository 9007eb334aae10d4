"""
Why was this row flagged?
=========================

A score alone helps nobody. Every score is a sum over columns, each with a reason, the observed value and the value that
would have been usual in this row.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from ptad import PTAD

table, benign = load_breast_cancer(return_X_y=True, as_frame=True)
table = table[[name for name in table if name.startswith("mean")]]
detector = PTAD(false_alarm_rate=0.01, verbose=0).fit(table[benign == 1][:200])
new = table[benign == 0].head(30)

# %%
# One row: bars to the right make it more anomalous. Beside every bar stand the reason, what was observed and what was
# expected.

explanation = detector.explain(new)
explanation.plot(row=0, n=6)
plt.show()

# %%
# The bars add up to the score, exactly.

print(explanation.contributions.iloc[0].sum().round(6), explanation.score.iloc[0].round(6))

# %%
# Many rows at once: the ten with the highest scores, cell by cell. Columns that are dark in most rows are what sets
# these tumours apart.

detector.plot.cells(new, top=10)
plt.show()

# %%
# A notebook shows an explanation as small tables.

detector.explain(new.head(2))
