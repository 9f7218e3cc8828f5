"""
Own detector in 40 lines
========================

A detector says what it needs and returns one score per row; evaluation, search of hyper-parameters, comparison, report
and deployment follow from that.
"""

# %%
# The squared distance to the nearest class mean, in directions weighted by their spread. ``needs`` declares what is
# extracted; what is learnt ends in ``_``, so that it can be saved without pickle; ``grid`` is what ``--tune`` searches.
import torch

import oodscope as oods


class NearestMean(oods.Detector):
    """Distance to the nearest class mean, every direction divided by its standard deviation to the power ``power``."""

    name = "nearest_mean"
    needs = oods.Needs.FEATURES | oods.Needs.TRAIN
    grid = {"power": (0.0, 0.5, 1.0)}

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def _fit(self, train, val, ood_val):
        features, labels = torch.as_tensor(train.features[:]), torch.as_tensor(train.labels)
        self.means_ = torch.stack([features[labels == label].mean(0) for label in labels.unique()])
        self.scale_ = (features.std(0) + 1e-6) ** self.power

    def _score(self, batch):  # larger = more OOD
        return torch.cdist(batch.features / self.scale_, self.means_ / self.scale_).amin(dim=1)


# %%
# It stands beside the others, and ``compare`` says which differences are more than noise.
bench = oods.load_benchmark("glyphs", images_per_class=150)
network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
recipe = oods.create_recipe(
    "cross_entropy", epochs=8, batch_size=32, weight_decay=0.001, warmup_epochs=1, augment={"pad": 0, "flip": False}
)
trained = oods.train(network, recipe, bench.id_train, bench.transform, device="cpu")
clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu")
result = oods.evaluate(clf, bench, detectors=["msp", NearestMean(), NearestMean(power=0.0)])
result.table()

# %%
print(*oods.compare(result).sentences(), sep="\n")

# %%
# The same as a picture: AUROC on the near-OOD set, with intervals for other images of its classes.
import matplotlib.pyplot as plt

rows = result.to_dataframe().query("protocol == 'standard' and metric == 'auroc' and set == 'near_letters'")
rows = rows.sort_values("value")
value, low, high = 100 * rows.value, 100 * rows.low, 100 * rows.high
figure, axis = plt.subplots(figsize=(6, 1.6), layout="constrained")
axis.errorbar(value, rows.detector, xerr=[value - low, high - value], fmt="o", capsize=3)
axis.set_xlabel("AUROC on near_letters, %")
plt.show()

# %%
# By command: ``oodscope evaluate ... --detectors msp,python:mydetector:NearestMean``. A package of yours names it as an
# entry point in the group ``oodscope.detectors``, and it is found by its name wherever that package is installed.
