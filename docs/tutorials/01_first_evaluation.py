"""
First evaluation
================

From a classifier and a benchmark to a table with intervals, a recommendation and a report.
"""

# %%
# A benchmark holds the images: those that the classifier knows (in-distribution, ID) and those that it does not
# (out-of-distribution, OOD). ``glyphs`` draws characters; ``cifar10`` or a YAML file of yours work alike.
import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=80)
for role, images in bench.members():
    print(f"{role:10} {images.name:14} {len(images):5} images")

# %%
# Any ``nn.Module`` is a classifier. Here a small one is trained first; yours is trained already.
network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
recipe = oods.create_recipe(
    "cross_entropy", epochs=6, batch_size=64, warmup_epochs=1, augment={"pad": 0, "flip": False}
)
trained = oods.train(network, recipe, bench.id_train, bench.transform, device="cpu")
clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu")
print(clf.describe())

# %%
# Every image goes through the network once, whatever the number of detectors. Larger score = more OOD, for all of them.
result = oods.evaluate(clf, bench, detectors=["msp", "ebo", "knn", "vim"])
print(result.table())

# %%
# Which one to take? The sentence is made from the numbers: the value of the recommended detector is measured on images
# that did not choose it, and it names those that may be as good.
from oodscope.runs.comparison.recommendation import recommendation

print(recommendation(result.scores))

# %%
# The same as one HTML file, with plots, hardest images and provenance.
import tempfile
from pathlib import Path

path = oods.write_report(result, Path(tempfile.mkdtemp()) / "report.html")
print(path.name, f"{path.stat().st_size / 1e6:.1f} MB")
