"""
Cross-validation over images and classes
========================================

One split gives one number. Folds of ID images and of OOD classes show how much of it is chance.
"""

import tempfile

import oodscope as oods
from oodscope.runs.crossval.draws import Pair
from oodscope.runs.crossval.frozen import FrozenEmbeddings
from oodscope.runs.crossval.plan import CrossValidationPlan

bench = oods.load_benchmark("glyphs", images_per_class=150)
network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
recipe = oods.create_recipe(
    "cross_entropy", epochs=8, batch_size=32, weight_decay=0.001, warmup_epochs=1, augment={"pad": 0, "flip": False}
)
trained = oods.train(network, recipe, bench.id_train, bench.transform, device="cpu")
clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu")

# %%
# Heads are trained on frozen embeddings, one for each fold. The network here has seen the folded images, which
# flatters; the run is refused unless that is allowed, and its record says so.
plan = CrossValidationPlan(folds=3, repetitions=1, hold_outs=3, detectors=("msp", "ebo"))
pair = Pair(bench.id_test, bench.near[0])
study = oods.cross_validate(plan, [pair], FrozenEmbeddings(clf), folder=tempfile.mkdtemp(), allow_leak=True)
study.table()

# %%
# Every fold, without outliers in training: how far single numbers lie from each other is what one split hides.
import matplotlib.pyplot as plt

folds = 100 * study.draws.folds("auroc")[0, :, :, 0]  # repetition, fold, detector, training
figure, axis = plt.subplots(figsize=(5, 1.8), layout="constrained")
for number, detector in enumerate(plan.detectors):
    axis.plot(folds[:, number], [detector] * len(folds), "o", alpha=0.7)
axis.set_xlabel("AUROC of each fold, %")
axis.margins(y=0.4)
plt.show()
