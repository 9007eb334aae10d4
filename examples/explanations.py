"""
Explanations: why a row was flagged
===================================

Every score is a sum of contributions, one per column, each with a reason, the observed value and the value that would
have been expected in this row.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from ptad import PTAD

table, benign = load_breast_cancer(return_X_y=True, as_frame=True)
table = table[[name for name in table if name.startswith("mean")]]
detector = PTAD(false_alarm_rate=0.01, verbose=0).fit(table[benign == 1][:200])
new = table[benign == 0].head(30)

# %%
# One row: the longer the bar, the more the column adds to the score. Each bar is labelled with the reason, the observed
# value and the expected value.

explanation = detector.explain(new)
explanation.plot(row=0, n=6)
plt.show()

# %%
# The contributions add up to the score.

print(explanation.contributions.iloc[0].sum().round(6), explanation.score.iloc[0].round(6))

# %%
# The ten rows with the highest scores, cell by cell. Columns that are dark in most rows are the ones in which these
# tumours differ from benign ones.

detector.plot.cells(new, top=10)
plt.show()

# %%
# In a notebook an explanation is displayed as one small table per row.

detector.explain(new.head(2))
