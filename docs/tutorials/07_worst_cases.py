"""
Worst cases
===========

An average hides what a detector lets through. A search turns OOD images by natural variations until the detector
takes them for ID, and shows what is left of its AUROC.
"""

import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=150)
network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
recipe = oods.create_recipe(
    "cross_entropy", epochs=8, batch_size=32, weight_decay=0.001, warmup_epochs=1, augment={"pad": 0, "flip": False}
)
trained = oods.train(network, recipe, bench.id_train, bench.transform, device="cpu")
clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu")

# %%
# Each detector is attacked by its own search, from the same images.
scorers = {name: oods.fit_scorer(clf, name, bench.id_val, bench.id_train) for name in ("msp", "knn")}
digits = next(images for images in bench.far if images.name == "digits")
found = oods.attack(scorers, bench.id_val, bench.id_test, digits, ["affine"], budget=40, chains=40, runs=2)
found.table()

# %%
# What msp takes for ID most: above the source, below what the search made of it.
import matplotlib.pyplot as plt

worst = found.search("msp", "affine").worst
figure, axes = plt.subplots(2, 5, figsize=(7, 3), layout="constrained")
for number in range(5):
    axes[0, number].imshow(worst.sources[number].squeeze(), cmap="gray")
    axes[1, number].imshow(worst.images[number].squeeze(), cmap="gray")
    axes[1, number].set_title(f"rank {worst.ranks[number]}", fontsize=8)
for axis in axes.flat:
    axis.set_axis_off()
plt.show()
