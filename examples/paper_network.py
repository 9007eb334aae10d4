"""
The network of the paper
========================

``preset="paper"`` is the network of the PTAD paper: data-space masks, orthogonal basis vectors, association prototypes
and optimal transport. It needs the extra ``torch``. This example uses a very small network, which trains in seconds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from ptad import PTAD

table, species = load_iris(return_X_y=True, as_frame=True)
table.columns = [name.removesuffix(" (cm)") for name in table]
normal, other = table[species == 1], table[species == 2]

# %%
# Few steps, narrow layers, few basis vectors and prototypes. Without ``config``, the preset uses the values of the
# paper where it gives them.

small = {
    "network.n_steps": 60,
    "network.embedding_dim": 4,
    "network.n_heads": 2,
    "network.n_basis_vectors": 3,
    "network.n_prototypes": 3,
    "calibration.folds": 2,
    "calibration.most_folds": 2,
}
detector = PTAD(preset="paper", false_alarm_rate=0.1, config=small, verbose=0).fit(normal)
print(f"flagged: {(detector.predict(other) == -1).mean():.0%} of the other species")

# %%
# The training loss and its components.

detector.plot.history()
plt.show()

# %%
# What the network has learned: basis vectors, as strength per column, and prototypes of the attention between columns.

detector.plot.prototypes()
plt.show()

# %%
# Normal rows and the other species, projected on the first two principal axes of the P-space.

rows = table[species > 0]
detector.plot.projection(rows, labels=np.asarray(species[species > 0] == 2))
plt.show()
