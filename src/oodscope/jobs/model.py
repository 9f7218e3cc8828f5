"""ModelSpec: which network to judge, or which ensemble of networks, and where the weights come from."""

from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import nn

from oodscope.activations.activations import Activations
from oodscope.activations.store.store import ActivationStore
from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError
from oodscope.base.files import cache_root
from oodscope.data.benchmark import Benchmark
from oodscope.data.images.labels import read_class_names
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import Progress
from oodscope.jobs.train import addresses, check_training, train_stages
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.head import Head
from oodscope.models.zoo.backbones import create_backbone, read_head
from oodscope.models.zoo.origin import vote
from oodscope.models.zoo.published import published_classes
from oodscope.models.zoo.python_object import PREFIX, call_python
from oodscope.models.zoo.zero_shot import TextHead
from oodscope.models.zoo.zoo import create_model
from oodscope.training.heads.linear_probe import LinearProbe
from oodscope.training.registry import Stages


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


PRETRAINED = "pretrained"


class ModelSpec(StrictModel):
    """Which network, and where its weights come from.

    Parameters
    ----------
    architecture : a small net (``oodscope list models``), ``timm:NAME``, ``torchvision:NAME``, ``hf:NAME``,
        ``open_clip:NAME/TAG``, ``dinov2:NAME``, or ``python:PACKAGE.MODULE:FUNCTION``, which is called and brings its
        own weights.
    weights : a ``.safetensors`` file, or ``pretrained``; a list of files makes an ensemble.
    train : train it here on ``id_train``: ``{recipe: NAME, ...}`` (``oodscope list recipes``), cross-entropy if none is
        named; a list is a chain of stages. With ``weights`` the first stage starts from them.
    members : how many networks to train, each with the next seed; more than one make an ensemble.
    head : a file with the linear head of a network that ends in features (``dinov2``; ``timm`` and ``open_clip`` do
        when asked for a head).
    probe : fit such a head to the features of ``id_train`` here.
    text_head : sentences and negative labels for networks that classify by words (``open_clip``).
    trained_on : sets or roles of the benchmark that the weights were trained on; ``id_train`` for a training here.
    pretrained_on : what the weights saw before, such as ``imagenet21k``.
    """

    architecture: str
    weights: str | list[str] | None = None
    train: Stages | None = None
    members: int = Field(default=1, gt=0)
    head: str | None = None
    probe: LinearProbe | None = None
    text_head: TextHead | None = None
    trained_on: list[str] = []
    pretrained_on: list[str] = []

    def found_from(self, folder: Path) -> "ModelSpec":
        """The same with files relative to ``folder``."""
        update: dict[str, Any] = {
            "weights": [each if each == PRETRAINED else str(folder / each) for each in self.files] or None
        }
        library, _, name = self.architecture.partition(":")
        if library == "hf" and (folder / name).is_dir():
            update["architecture"] = f"hf:{folder / name}"
        if self.head is not None:
            update["head"] = str(folder / self.head)
        if self.text_head is not None and self.text_head.negatives and (folder / self.text_head.negatives).is_file():
            words = str(folder / self.text_head.negatives)
            update["text_head"] = self.text_head.model_copy(update={"negatives": words})
        return self.model_copy(update=update)

    @property
    def files(self) -> list[str]:
        """The weights, one entry per network."""
        return [self.weights] if isinstance(self.weights, str) else list(self.weights or ())

    def each_network(self) -> list["ModelSpec"]:
        """The same for every single network: one weights file, or one training with the next seed."""
        if self.train is None:
            return [self.model_copy(update={"weights": file}) for file in self.files]
        return [
            self.model_copy(update={"train": _with_next_seed(self.train, number), "members": 1})
            for number in range(self.members)
        ]


def _with_next_seed(stages: Stages, number: int) -> Stages:
    return tuple(stage.model_copy(update={"seed": stage.seed + number}) for stage in stages)


def make_classifier(spec: ModelSpec, benchmark: Benchmark, device: str, progress: Progress) -> tuple[Classifier, str]:
    """The classifier that a spec describes, and the recipe it was trained with here (empty if it was not)."""
    _check(spec)
    if spec.architecture.startswith(PREFIX):
        made = call_python(spec.architecture)
        named = made if isinstance(made, Classifier) else Classifier(made, device=device, name=spec.architecture)
        return named, ""
    if spec.head is not None or spec.probe is not None:
        return classifier_with_head(
            spec.architecture, spec.files[0], spec.head, spec.probe, benchmark, device=device, progress=progress
        )
    if spec.train is None:
        options: dict[str, Any] = {"class_names": benchmark.class_names, "text_head": spec.text_head, "device": device}
        options["num_classes"] = len(benchmark.class_names)
        made_here = [create_model(spec.architecture, weights=file, **options) for file in spec.files]
        network = vote([model for model, _ in made_here])
        return Classifier(network, made_here[0][1], device=device, name=name_of(spec), **_history(spec)), ""
    check_training(spec.train, benchmark)
    models = [_train(each, benchmark, device, progress) for each in spec.each_network()]
    classifier = Classifier(vote(models), benchmark.transform, device=device, name=name_of(spec), **_history(spec))
    return classifier, " + ".join(str(stage.describe()["method"]) for stage in spec.train)


def _check(spec: ModelSpec) -> None:
    """Options that contradict each other."""
    if spec.architecture.startswith(PREFIX):
        given = [name for name in ("weights", "train", "head", "probe", "text_head") if getattr(spec, name) is not None]
        if given:
            raise OodscopeError(f"{spec.architecture}: the function brings its own; leave out {', '.join(given)}")
        return
    if not spec.files and spec.train is None:
        raise OodscopeError("a model needs weights (a file, or 'pretrained'), a train section, or both")
    if spec.train is not None and len(spec.files) > 1:
        raise OodscopeError("a training starts from one weights file; an ensemble of them cannot be trained on")
    if spec.train is None and spec.members > 1:
        raise OodscopeError("members belongs to a train section; name several weights files to judge an ensemble")
    if spec.text_head is not None and not spec.architecture.startswith("open_clip:"):
        raise OodscopeError(f"{spec.architecture}: text_head is for networks that classify by words (open_clip)")
    if spec.head is not None and spec.probe is not None:
        raise OodscopeError("a model gets its head from a file (head) or from a fit (probe), not both")
    if (spec.head is not None or spec.probe is not None) and len(spec.files) != 1:
        raise OodscopeError("head and probe belong to one network with weights (a file, or 'pretrained')")


def _history(spec: ModelSpec) -> dict[str, Any]:
    """What the network has seen: as declared, and what it was trained on here."""
    here = ["id_train"] if spec.train is not None or spec.probe is not None else []
    here += ["ood_train"] if any(stage.ood_batch_size for stage in spec.train or ()) else []
    return {"trained_on": [*here, *spec.trained_on], "pretrained_on": spec.pretrained_on}


def name_of(spec: ModelSpec) -> str:
    """What tables call the network."""
    count = max(spec.members, len(spec.files))
    return spec.architecture if count == 1 else f"{count} x {spec.architecture}"


def _train(spec: ModelSpec, benchmark: Benchmark, device: str, progress: Progress) -> nn.Module:
    assert spec.train is not None, "asked for by make_classifier"
    weights = spec.files[0] if spec.files else None
    names = addresses(spec.architecture, spec.train, benchmark, weights)
    folders = [cache_root() / "training" / f"{spec.architecture}-{name}" for name in names]
    trained = train_stages(spec.architecture, spec.train, benchmark, folders, device, progress, weights=weights)
    return trained.model


def matched(benchmark: Benchmark, model: ModelSpec, classes: str | None) -> Benchmark:
    """The benchmark with labels in the classifier's classes, as far as their names are known.

    They are if ``classes`` names a file of them, or if published weights say what they were trained with and
    the benchmark speaks of the same classes. Otherwise the benchmark stays as it is, and the number of classes
    must agree.
    """
    if classes is not None:
        return benchmark.in_classes(read_class_names(Path(classes)))
    if model.files != [PRETRAINED]:
        return benchmark
    own = set(benchmark.class_names)
    known = max(published_classes(model.architecture), key=lambda names: len(own & set(names)), default=())
    # some shared names and one foreign is a mistake, which in_classes names
    return benchmark.in_classes(known) if own & set(known) else benchmark
