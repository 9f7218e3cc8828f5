"""The real image packs as ImageSets."""

import importlib.util

import numpy as np

from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.zoo import create_model

CIFAR10 = Preprocess(size=32, mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616))
CIFAR100 = Preprocess(size=32, mean=(0.5071, 0.4867, 0.4408), std=(0.2675, 0.2565, 0.2761))


def load_pack(folder, name, home=None):
    """Pixels of one pack and what comes with them; packs bring their own reader, and may lie elsewhere (``home``)."""
    spec = importlib.util.spec_from_file_location("packlib", folder / "packlib.py")
    packlib = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packlib)
    images, extras, _ = packlib.load((home or folder) / f"{name}.npz")
    return images, extras


def pack(folder, name, home=None):
    """One pack as an ImageSet, its classes by number."""
    images, extras = load_pack(folder, name, home)
    labels = extras.get("labels")
    names = [str(label) for label in range(int(labels.max()) + 1)] if labels is not None else []
    return ImageSet.from_arrays(name, images, None if labels is None else labels.astype(np.int64), names)


def resnet18(folder, dataset, transform, device="cpu"):
    """The trained ResNet-18 that lies beside the packs."""
    weights = folder.parent / "models" / f"{dataset}_resnet18_s0.safetensors"
    model, _ = create_model("resnet18_32", weights=weights)
    return Classifier(model, transform, device=device, name=f"{dataset} ResNet-18")
