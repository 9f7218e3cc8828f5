"""
Two models compared
===================

Which of two networks is the better basis for a detector, on the same images, and for which population is it true?
"""

import matplotlib.pyplot as plt

import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=150)


def evaluated(epochs):
    network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
    recipe = oods.create_recipe(
        "cross_entropy",
        epochs=epochs,
        batch_size=32,
        weight_decay=0.001,
        warmup_epochs=1,
        augment={"pad": 0, "flip": False},
    )
    trained = oods.train(network, recipe, bench.id_train, bench.transform, device="cpu")
    clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu", name=f"{epochs}-epochs")
    return oods.evaluate(clf, bench, detectors=["msp", "knn"])


short, long = evaluated(5), evaluated(10)
short.table()

# %%
long.table()

# %%
# Paired on the images that both scored. Three statements are kept apart: other images of these classes, other OOD
# classes, other networks of the recipe; the last needs several networks, and is not made from two.
print(*oods.compare(short, long).sentences(), sep="\n")

# %%
# Each detector on each network, with intervals for other images of the near-OOD classes. Overlapping intervals do not
# say that two are alike: the paired test above is sharper.
figure, axis = plt.subplots(figsize=(6, 1.9), layout="constrained")
for result, marker in ((short, "o"), (long, "s")):
    rows = result.to_dataframe().query("protocol == 'standard' and metric == 'auroc' and set == 'near_letters'")
    places = [f"{detector}, {result.record.model}" for detector in rows.detector]
    value, low, high = 100 * rows.value, 100 * rows.low, 100 * rows.high
    axis.errorbar(value, places, xerr=[value - low, high - value], fmt=marker, capsize=3)
axis.set_xlabel("AUROC on near_letters, %")
plt.show()
