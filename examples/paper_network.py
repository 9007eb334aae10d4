"""
The paper's network
===================

``preset="paper"`` is the network of the paper that gave ptad its name: data-space masks, orthogonal basis vectors,
association prototypes and optimal transport. Here it is made tiny, to train in seconds; it needs the extra ``torch``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from ptad import PTAD

table, species = load_iris(return_X_y=True, as_frame=True)
table.columns = [name.removesuffix(" (cm)") for name in table]
normal, other = table[species == 1], table[species == 2]

# %%
# Few steps, narrow layers, few basis vectors and prototypes. ``PTAD(preset="paper")`` alone has those of the paper,
# where it names them.

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
# The training loss by its parts.

detector.plot.history()
plt.show()

# %%
# What the network keeps of the normal rows: basis vectors, as strength per column, and prototypes of how columns attend
# to each other.

detector.plot.prototypes()
plt.show()

# %%
# Normal rows and the other species in the plane of the P-space in which they vary most.

rows = table[species > 0]
detector.plot.projection(rows, labels=np.asarray(species[species > 0] == 2))
plt.show()
