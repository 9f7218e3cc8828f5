"""Every training method in a form that trains in a second: what the tests of all of them share."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import torch

from oodscope.models.zoo.zoo import create_model
from oodscope.training.network import NetworkRecord
from oodscope.training.recipe import Batch, Scale, TrainingFacts
from oodscope.training.registry import RECIPES, create_recipe
from oodscope.training.train import train
from tests.training.training_toys import PREPROCESS, RECIPE, Bounded, TinyNet, colours, grouped, negatives

MADE = {name: made for name in RECIPES if not (made := create_recipe(name)).own_network}
"""Those that train a network of their own are tested in test_density.py."""
FAST = {"epochs": 3, "batch_size": 16, "learning_rate": 0.05, "augment": RECIPE.augment}
CLASSES = ("0", "1", "2")
SCALE = Scale(*(torch.tensor(each).view(1, 3, 1, 1) for each in (PREPROCESS.mean, PREPROCESS.std)))

OWN = {
    "vos": {"queue": 20, "outlier_epoch": 1},
    "cider": {"warmup_epochs": 0, "size": 8, "momentum_of_prototypes": 0.9},
    "npos": {
        "warmup_epochs": 0, "size": 8, "queue": 20, "outlier_epoch": 1, "neighbours": 5, "boundary": 8, "noise": 12,
        "keep_of_noise": 4,
    },
    "palm": {"warmup_epochs": 0, "size": 8, "prototypes": 3, "top": 2, "momentum_of_prototypes": 0.9},
    "reweightood": {"warmup_epochs": 0, "size": 8},
    "mos": {"learning_rate": 0.2},
    "mcd": {"outlier_epochs": 2, "margin": 0.8},
    "udg": {"clusters": 4},
    "csi": {"warmup_epochs": 0, "size": 8},
    "csi_heads": {"learning_rate": 0.5},
    "good": {"learning_rate": 0.02},
    "sngp": {"decay": "cosine", "reduced": 8, "features": 64, "learning_rate": 0.2},
    "csi_unlabelled": {"warmup_epochs": 0, "size": 8, "learning_rate": 1.0},
    "simclr": {"warmup_epochs": 0, "size": 8},
    "ssd": {"warmup_epochs": 0, "size": 8},
    "supcon": {"warmup_epochs": 0, "size": 8},
    "ntom": {"decay": "cosine"},
    "energy_oe": {"known_energy": -6.0, "outlier_energy": -1.0},
    "atom": {"decay": "cosine"},
    "rowl": {"decay": "cosine"},
    "rowl_released": {"decay": "cosine"},
}  # fmt: skip
"""Settings without which a method would not show itself in three epochs of 96 images."""

PLAIN = {"cider", "npos"}
"""Methods whose step depends on more than its tensors, so that no GPU records it."""

LEARNS = {name: {"epochs": 10} for name in ("csi", "csi_heads", "csi_unlabelled")}
"""Methods that take more steps to learn: the head that is judged has a small rate of its own."""

NETWORK = {"good": Bounded}
"""Networks of methods that not every network will do for."""

VIEWS = {
    "augmix_jsd": 3, "cider": 2, "npos": 2, "palm": 2, "reweightood": 2, "csi": 8, "csi_heads": 4, "simclr": 2,
    "csi_unlabelled": 8, "ssd": 2, "supcon": 2,
}  # fmt: skip
"""How many images a step shows of each."""


@cache
def teacher():
    """The folder of a network that knows the colours."""
    folder = Path(mkdtemp(prefix="teacher-"))
    settings = {**FAST, "epochs": 6}

    def build():
        return create_model("small_cnn", num_classes=3).model

    train(build, create_recipe("cross_entropy", **settings), colours(240), PREPROCESS, device="cpu", folder=folder)
    NetworkRecord(architecture="small_cnn", num_classes=3, stages=()).write(folder)
    return str(folder)


def fast(name, **more):
    if name == "distill":
        more = {"teachers": (teacher(),), **more}
    outliers = {"ood_batch_size": 16} if MADE[name].ood_batch_size else {}
    return create_recipe(name, **{**FAST, "patience": 0, **outliers, **OWN.get(name, {}), **more})


def run(recipe, count=96, **options):
    outliers = negatives(40) if recipe.ood_batch_size else None
    images = grouped(count) if recipe.name == "mos" else colours(count)
    network = NETWORK.get(recipe.name, TinyNet)
    return train(network, recipe, images, PREPROCESS, ood_train=outliers, device="cpu", **options)


def facts(name, count=96):
    hierarchy = {"kind": ("warm", "cold", "cold")} if name == "mos" else {}
    return TrainingFacts(class_names=CLASSES, n_train=count, size=12, n_ood=40, hierarchy=hierarchy)


def prepared(name, **more):
    """A recipe, its network in the middle of a training, and a batch, as the loop would give them to each other."""
    torch.manual_seed(0)
    recipe = fast(name, **more)
    net = recipe.prepare(NETWORK.get(name, TinyNet)(), facts(name)).train()
    net.drop.p = 0.0
    return recipe, settled(name, net), shown(recipe)


def settled(name, net):
    """What the first steps fill: queues of features, and a head that starts from zeros."""
    with torch.no_grad():
        if name in ("vos", "npos"):
            net.fc.queues.features.normal_()
            net.fc.queues.pushed.fill_(100)
        if name == "good":
            net.ramp.fill_(1.0)
        if name == "mos":
            net.fc.linear.weight.normal_()
    return net


def shown(recipe, count=12):
    images, labels = torch.rand(count * VIEWS.get(recipe.name, 1), 3, 12, 12), torch.arange(count) % 3
    ood = Batch(torch.rand(count, 3, 12, 12), torch.full((count,), -1), torch.arange(count))
    more = {"draws": torch.Generator().manual_seed(1), "scale": SCALE}
    return Batch(images, labels, torch.arange(count), 2, ood if recipe.ood_batch_size else None, **more)
