"""
Arrays only
===========

No images and no network: logits and features from anywhere, such as text, audio or tables, are enough.
"""

import matplotlib.pyplot as plt
import numpy as np

import oodscope as oods

rng = np.random.default_rng(0)
labels = np.arange(600) % 4
centres = rng.normal(size=(4, 16)) * 2


def activations(features):
    return {"logits": features @ centres.T / 4, "features": features}


known = centres[labels] + rng.normal(size=(600, 16))
train = activations(known[:400]) | {"labels": labels[:400]}
test = activations(known[400:]) | {"labels": labels[400:]}
near = activations(centres[labels[:200]] * 0.4 + rng.normal(size=(200, 16)))
far = activations(rng.normal(size=(200, 16)) * 3)

figure, axis = plt.subplots(figsize=(4.5, 3), layout="constrained")
for name, rows in {"ID": test, "between": near, "noise": far}.items():
    axis.scatter(rows["features"][:, 0], rows["features"][:, 1], s=6, alpha=0.6, label=name)
axis.set_xlabel("feature 0")
axis.set_ylabel("feature 1")
axis.legend()
plt.show()

# %%
# Detectors that need the head or the network itself do not apply; ``"all"`` leaves them out and says why.
result = oods.evaluate_activations(
    id_train=train, id_test=test, near={"between": near}, far={"noise": far}, detectors=["msp", "ebo", "knn", "mds"]
)
result.table()

# %%
# Scores alone work too: a table with one row per image and a column per detector. The same numbers come out.
table = result.scores.frame
table[["sample_id", "set", "role", "msp", "knn"]].head(3)

# %%
again = oods.evaluate_scores(table, detectors=["msp", "knn"])
again.table()
