"""
Read the report
===============

What the first screen says, and which number answers which question.
"""

import tempfile
from pathlib import Path

import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=60)
network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
recipe = oods.create_recipe("cross_entropy", epochs=5, batch_size=64, augment={"pad": 0, "flip": False})
trained = oods.train(network, recipe, bench.id_train, bench.transform, device="cpu")
clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu")
result = oods.evaluate(clf, bench, ["msp", "knn"], protocols=["standard", "full_spectrum", "human_centric"])

# %%
# **How well does it separate?** AUROC: the probability that an OOD image scores above an ID image. 50 is chance.
print(result.table(metric="auroc"))

# %%
# **What passes?** FPR95 is two numbers in the literature. With ID positive: 95 % of ID images are kept; how many
# OOD images are kept too? With OOD positive: 95 % of OOD images are caught; how many ID images are lost? Never a
# bare FPR95.
print(result.table(metric="fpr95_id_positive"))

# %%
# **And if the conditions change?** Full spectrum counts shifted ID images as ID.
print(result.table("full_spectrum"))

# %%
# **Is the classifier wrong anyway?** Human-centric: rejecting what the classifier gets wrong is right, too.
print(result.table("human_centric"))

# %%
# All of it on one page:
print(oods.write_report(result, Path(tempfile.mkdtemp()) / "report.html").name)
