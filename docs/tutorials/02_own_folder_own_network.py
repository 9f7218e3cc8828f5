"""
Own folder, own network
=======================

Your images in folders, your network in a Python file, one command.
"""

# %%
# A set is a folder; its subfolders are the classes. Here the folders are written first, from the embedded benchmark:
# ``train`` and ``test`` hold what the network knows, ``letters`` what it does not.
import tempfile
from pathlib import Path

from PIL import Image

import oodscope as oods

work = Path(tempfile.mkdtemp())
bench = oods.load_benchmark("glyphs", images_per_class=40)


def write(images, folder):
    for number, pixels in enumerate(images.images(range(len(images)))):
        place = folder / images.class_names[images.labels[number]].replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{number:05}.png")


write(bench.id_train, work / "train")
write(bench.id_test, work / "test")
write(bench.near[0], work / "letters")
print(sorted(path.name for path in work.iterdir()), len(list(work.rglob("*.png"))), "images")

# %%
# Your network: a function without arguments that returns a module with its weights loaded.
network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
recipe = oods.create_recipe("cross_entropy", epochs=5, batch_size=64, augment={"pad": 0, "flip": False})
own = oods.own_benchmark(
    id_train=work / "train", id_test=work / "test", near=[work / "letters"], transform=bench.transform
)
trained = oods.train(network, recipe, own.id_train, own.transform, device="cpu")

# %%
# In Python:
clf = oods.Classifier(trained.model, transform=own.transform, device="cpu")
result = oods.evaluate(clf, own, detectors=["msp", "knn"])
print(result.table())

# %%
# On the command line, with ``build`` in ``mynet.py`` of the working folder::
#
#     oodscope evaluate --model python:mynet:build --id-train train --id-test test --near letters \
#         --transform '{size: 32, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}' --detectors msp,knn
#     oodscope report runs -o report.html
#
# The version of an own benchmark is a hash of what the sets hold: numbers of changed data never pass for the old ones.
print(own.name, own.version)
