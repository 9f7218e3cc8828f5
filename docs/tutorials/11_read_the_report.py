"""
Read the report
===============

What the first screen says, and which number answers which question.
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
result = oods.evaluate(clf, bench, ["msp", "knn"], protocols=["standard", "full_spectrum", "human_centric"])

# %%
# **How well does it separate?** AUROC: the probability that an OOD image scores above an ID image. 50 is chance.
result.table(metric="auroc")

# %%
# **What passes?** FPR95 is two numbers in the literature. With ID positive: 95 % of ID images are kept; how many
# OOD images are kept too? With OOD positive: 95 % of OOD images are caught; how many ID images are lost? Never a
# bare FPR95.
result.table(metric="fpr95_id_positive")

# %%
# **And if the conditions change?** Full spectrum counts shifted ID images as ID.
result.table("full_spectrum")

# %%
# **Is the classifier wrong anyway?** Human-centric: rejecting what the classifier gets wrong is right, too.
result.table("human_centric")

# %%
# **What does a threshold cost?** Each point of a ROC curve is a threshold; the dotted line keeps 95 % of the ID images.
import matplotlib.pyplot as plt
from sklearn.metrics import roc_curve

frame = result.scores.frame
rows = frame[frame["set"].isin(["id_test", "near_letters"])]
figure, axis = plt.subplots(figsize=(4, 3.2), layout="constrained")
for detector in ("msp", "knn"):
    rejected, caught, _ = roc_curve(rows["role"] == "near", rows[detector])
    axis.plot(100 * rejected, 100 * caught, label=detector)
axis.axvline(5, color="grey", linestyle=":")
axis.set_xlabel("ID images rejected, %")
axis.set_ylabel("OOD images caught, %")
axis.legend()
plt.show()

# %%
# All of it on one page:
print(oods.write_report(result, Path(tempfile.mkdtemp()) / "report.html").name)
