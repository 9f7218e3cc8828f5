"""
Own folder, own network, in Python
==================================

What was found in your folders and in your network, what to take, and how a wrong preprocessing shows.
"""

# %%
# A set is a folder whose subfolders are the classes; a list, ``.npz``, ``.tar``, ``hf:NAME`` or ``torchvision:CLASS``
# work alike. Here folders are written first, from the embedded benchmark.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

import oodscope as oods

work = Path(tempfile.mkdtemp())
bench = oods.load_benchmark("glyphs", images_per_class=150)


def write(images, folder):
    for number, pixels in enumerate(images.images(range(len(images)))):
        place = folder / images.class_names[images.labels[number]].replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{number:05}.png")


for name, images in {"train": bench.id_train, "test": bench.id_test, "letters": bench.near[0]}.items():
    write(images, work / name)
own = oods.own_benchmark(
    id_train=work / "train", id_test=work / "test", near=[work / "letters"], transform=bench.transform
)
for role, images in own.members():
    print(f"{role:10} {images.name:10} {len(images):5} images of {len(images.class_names)} classes")
# the version of an own benchmark is a hash of what its sets hold: numbers of changed data never pass for the old ones
print(own.name, own.version)

# %%
# Any ``nn.Module`` is a classifier; yours is trained already. ``describe`` says which layer was found to be the head,
# and proves it.
network, _ = oods.create_model("small_cnn", num_classes=len(own.class_names))
recipe = oods.create_recipe(
    "cross_entropy", epochs=8, batch_size=32, weight_decay=0.001, warmup_epochs=1, augment={"pad": 0, "flip": False}
)
trained = oods.train(network, recipe, own.id_train, own.transform, device="cpu")
clf = oods.Classifier(trained.model, transform=own.transform, device="cpu")
print(clf.describe())

# %%
# Larger score = more OOD, for all detectors.
result = oods.evaluate(clf, own, detectors=["msp", "ebo", "knn", "vim"])
result.table()

# %%
# Which one to take? The sentence is made from the numbers: the value of the detector that looks best is measured on
# images that did not choose it, and it names those that may be as good.
from oodscope.runs.comparison.recommendation import recommendation

print(recommendation(result.scores))

# %%
# The scores themselves are a table, one row per image.
frame = result.scores.frame
figure, axes = plt.subplots(1, 2, figsize=(7, 2.4), layout="constrained")
for axis, detector in zip(axes, ("msp", "knn"), strict=True):
    for name, rows in frame.groupby("set"):
        axis.hist(rows[detector], bins=40, density=True, alpha=0.6, label=name)
    axis.set_xlabel(f"{detector} score (larger = more OOD)")
axes[0].legend()
plt.show()

# %%
# A network that gets its images in another form than in training is the usual cause of poor numbers, so an evaluation
# looks for it: here the normalisation is wrong.
wrong = oods.Preprocess(size=32, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
careless = oods.evaluate(oods.Classifier(trained.model, transform=wrong, device="cpu"), own, detectors=["msp", "knn"])
careless.table()
