"""
Train a method
==============

Training methods change the network, not the score. A recipe is one word; its own score comes with it.
"""

import oodscope as oods

bench = oods.load_benchmark("glyphs", images_per_class=150)
settings = {
    "epochs": 8,
    "batch_size": 32,
    "weight_decay": 0.001,
    "warmup_epochs": 1,
    "augment": {"pad": 0, "flip": False},
}


def evaluated(name):
    network, _ = oods.create_model("small_cnn", num_classes=len(bench.class_names))
    trained = oods.train(network, oods.create_recipe(name, **settings), bench.id_train, bench.transform, device="cpu")
    clf = oods.Classifier(trained.model, transform=bench.transform, device="cpu", name=name)
    return trained, oods.evaluate(clf, bench, detectors=["msp", "ebo"], recipe=name)


plain, plain_result = evaluated("cross_entropy")
normed, normed_result = evaluated("logitnorm")
plain_result.table()

# %%
normed_result.table()

# %%
# The loss falls in both; LogitNorm's is another quantity, so the curves are not compared with each other.
import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(5, 2.6), layout="constrained")
for name, trained in (("cross_entropy", plain), ("logitnorm", normed)):
    axis.plot([epoch.loss for epoch in trained.history], marker="o", label=name)
axis.set_xlabel("epoch")
axis.set_ylabel("training loss")
axis.legend()
plt.show()

# %%
# One network of each cannot say whether the method helps: that takes several seeds. By command::
#
#     oodscope train --recipe logitnorm --benchmark cifar10 --seeds 0,1,2
