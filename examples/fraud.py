"""
Card fraud
==========

A table of card payments: amount, hour of the day, country and type of shop. The frauds here have no unusual amounts;
they are combinations of values that honest payments do not have.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ptad import PTAD

# %%
# Honest payments: groceries are cheap, electronics are expensive, and hotels are mostly paid abroad in the evening.

rng = np.random.default_rng(0)


def honest(n):
    shop = rng.choice(["groceries", "electronics", "hotel"], n, p=[0.7, 0.2, 0.1])
    typical = pd.Series(shop).map({"groceries": 30, "electronics": 400, "hotel": 150}).to_numpy()
    abroad = (shop == "hotel") & (rng.random(n) < 0.8)
    return pd.DataFrame(
        {
            "amount": (typical * rng.lognormal(0, 0.3, n)).round(2),
            "hour": np.where(shop == "hotel", rng.normal(20, 1.5, n), rng.normal(14, 2.5, n)).clip(0, 23.9).round(1),
            "country": np.where(abroad, rng.choice(["FR", "IT", "US"], n), "DE"),
            "shop": shop,
        }
    )


detector = PTAD(false_alarm_rate=0.01, verbose=0).fit(honest(2000))

# %%
# New payments: 500 honest ones and 20 frauds, in which electronics are bought abroad in the morning. Each single value
# also occurs in honest payments.

fraud = pd.DataFrame(
    {
        "amount": rng.lognormal(np.log(400), 0.3, 20).round(2),
        "hour": rng.uniform(8, 11, 20).round(1),
        "country": rng.choice(["FR", "IT", "US"], 20),
        "shop": "electronics",
    }
)
new = pd.concat([honest(500), fraud], ignore_index=True)
labels = np.arange(len(new)) >= 500
detector.plot.scores(new, labels=labels)
plt.show()

# %%
# The threshold (dashed) was computed from honest payments only; about 1 % of them lie above it. All frauds do.

flagged = detector.predict(new) == -1
print(f"frauds found: {flagged[labels].sum()} of 20")
print(f"honest payments flagged: {flagged[~labels].sum()} of 500")

# %%
# Nearly all of the score comes from the country: similar payments were made at home (DE). Amount and shop are unusual
# in combination with the country.

explanation = detector.explain(fraud.head(3))
explanation
