"""A classifier from a network that ends in features: its head comes from a file, or is fitted here."""

import torch

from oodscope.activations.activations import Activations
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import OodscopeError
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.head import Head
from oodscope.models.zoo.backbones import create_backbone, read_head
from oodscope.training.heads.linear_probe import LinearProbe


def classifier_with_head(
    architecture: str,
    weights: str,
    head: str | None,
    probe: LinearProbe | None,
    benchmark: Benchmark,
    *,
    device: str,
    progress: Progress,
) -> tuple[Classifier, str]:
    """The classifier, and how its head was fitted (empty if it came from the file ``head``)."""
    given = None if head is None else read_head(head)
    network, transform = create_backbone(architecture, weights=weights, width=None if given is None else given.dim)
    transform = transform or benchmark.transform
    if given is not None:
        return Classifier(network, transform, head=given, device=device, name=architecture), ""
    if benchmark.id_train is None or probe is None:
        raise OodscopeError(f"benchmark {benchmark.name!r} has no id_train: nothing to fit a probe to")
    bare = _bare(Classifier(network, transform, device=device, name=architecture))

    def extract(images: ImageSet) -> Activations:
        return ActivationStore().extract(bare, images, progress=progress)

    val = None if benchmark.id_val is None else extract(benchmark.id_val)
    fitted = probe.fit(extract(benchmark.id_train), val, len(benchmark.class_names), bare.device)
    classifier = Classifier(network, transform, head=fitted.head, device=device, name=architecture)
    return classifier, f"linear probe (penalty {fitted.penalty:g})"


def _bare(ending_in_features: Classifier) -> Classifier:
    """The same with the identity for a head: what it calls logits are the features themselves."""
    width = ending_in_features.num_classes
    return Classifier(
        ending_in_features.model,
        ending_in_features.transform,
        head=Head(torch.eye(width)),
        device=ending_in_features.device,
        name=ending_in_features.name,
    )
