"""
Comparison with PyOD detectors
==============================

``PTADDetector`` has the interface of a PyOD detector and can replace one. A single small table says little about which
detector is better; the :doc:`benchmark </benchmark>` covers hundreds.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyod.models.ecod import ECOD
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score

from ptad.pyod import PTADDetector

# %%
# Normal rows are images of the digits 0, 2, 4, 6 and 8, with 64 grey values each; anomalies are images of the digit 3.
# Every detector is fitted on half of the normal rows and scores the rest.

pixels, digit = load_digits(return_X_y=True)
normal = pixels[digit % 2 == 0]
train, test = normal[::2], np.vstack([normal[1::2], pixels[digit == 3]])
anomalous = np.repeat([0, 1], [len(normal[1::2]), (digit == 3).sum()])

detectors = {
    "ptad (default)": PTADDetector(verbose=0),
    "KNN": KNN(),
    "IForest": IForest(random_state=0),
    "ECOD": ECOD(),
}
quality = {}
for name, detector in detectors.items():
    detector.fit(train)
    quality[name] = average_precision_score(anomalous, detector.decision_function(test))
    print(f"{name:15} AUC-PR {quality[name]:.3f}")

# %%
# AUC-PR on this table. The dashed line is the AUC-PR of random scores.

figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
axes.barh(list(quality), list(quality.values()), color=["C1", "C0", "C0", "C0"])
axes.axvline(anomalous.mean(), color="black", linestyle="--", linewidth=1)
axes.set(xlabel="AUC-PR", xlim=(0, 1))
axes.invert_yaxis()
plt.show()

# %%
# On this table the plain distance of KNN ranks best. The threshold is a separate question. ``contamination=0.1``, the
# default in PyOD, flags one training row in ten; how many *new* normal rows it flags differs between detectors. ptad
# takes its threshold from rows that the model was not fitted on.

flags = {name: detector.predict(test)[anomalous == 0].mean() for name, detector in detectors.items()}
print({name: round(float(share), 3) for name, share in flags.items()})
