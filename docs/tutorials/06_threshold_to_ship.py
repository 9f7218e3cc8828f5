"""
A threshold to ship
===================

Fit a detector, choose a threshold with a guarantee, save one file, and classify one image at a time.
"""

import tempfile
from pathlib import Path

import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=150)
network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
recipe = oods.create_recipe(
    "cross_entropy", epochs=8, batch_size=32, weight_decay=0.001, warmup_epochs=1, augment={"pad": 0, "flip": False}
)
trained = oods.train(network, recipe, bench.id_train, bench.transform, device="cpu")
clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu")

# %%
# At most 5 % of the ID images like the calibration images are rejected. No OOD image is needed for this promise,
# and it says nothing about how many OOD images are caught.
scorer = oods.fit_scorer(clf, "knn", bench.id_val, bench.id_train, target=0.05)
print(scorer.calibration.guarantee)

# %%
# What happens to images that it has not seen:
rejected = {
    images.name: 1 - sum(p.accepted for p in scorer.predict(images.images(range(200)))) / 200
    for images in (bench.id_test, bench.near[0], bench.far[0])
}
for name, share in rejected.items():
    print(f"{name:14} {100 * share:5.1f} % rejected")

# %%
# The scores behind it, and the threshold.
import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(6, 2.4), layout="constrained")
for images in (bench.id_test, bench.near[0], bench.far[0]):
    scores = [prediction.score for prediction in scorer.predict(images.images(range(200)))]
    axis.hist(scores, bins=30, density=True, alpha=0.6, label=images.name)
axis.axvline(scorer.calibration.threshold, color="black", linestyle="--", label="threshold")
axis.set_xlabel("knn score (larger = more OOD)")
axis.legend()
plt.show()

# %%
# One file, read back anywhere; it holds no pickle.
path = Path(tempfile.mkdtemp()) / "knn.oodscope"
scorer.save(path, include_weights=True)
loaded = oods.load(path, model=network, device="cpu")
print(loaded.predict(bench.far[0].images([0]))[0])
