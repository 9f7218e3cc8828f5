"""
Two models compared
===================

Which of two networks is the better basis for a detector, on the same images, and for which population is it true?
"""

import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=60)


def evaluated(epochs):
    network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
    recipe = oods.create_recipe("cross_entropy", epochs=epochs, batch_size=64, augment={"pad": 0, "flip": False})
    trained = oods.train(network, recipe, bench.id_train, bench.transform, device="cpu")
    clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu", name=f"{epochs}-epochs")
    return oods.evaluate(clf, bench, detectors=["msp", "knn"])


short, long = evaluated(2), evaluated(7)
print(short.table())

# %%
print(long.table())

# %%
# Paired on the images that both scored. Three statements are kept apart: other images of these classes, other OOD
# classes, other networks of the recipe; the last needs several networks, and is not made from two.
print(oods.compare(short, long))
