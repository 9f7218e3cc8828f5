"""ModelSpec and build_classifier: the one place where the name of a model becomes a classifier."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import Field, model_validator
from torch import nn

from oodscope.activations.activations import Activations
from oodscope.activations.store.store import ActivationStore
from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError, OodscopeError, UsageError
from oodscope.base.files import cache_root, is_folder
from oodscope.data.benchmark import Benchmark, Role
from oodscope.data.corpora import get_corpus
from oodscope.data.images.labels import read_class_names
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress
from oodscope.jobs.stages import addresses, check_training, train_stages
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.head import Head
from oodscope.models.density.saved import FILE as DENSITY
from oodscope.models.zoo.backbones import LIBRARIES, check_backbone, read_head
from oodscope.models.zoo.origin import ModelOrigin, vote
from oodscope.models.zoo.published import published_classes
from oodscope.models.zoo.python_object import PREFIX, call_python, find_python
from oodscope.models.zoo.zero_shot import TextHead
from oodscope.models.zoo.zoo import MODELS, check_architecture, create_model
from oodscope.results.runfile import RECORD
from oodscope.runs.training.run import Training
from oodscope.training.heads.linear_probe import LinearProbe
from oodscope.training.network import WEIGHTS, TrainedOrigin, network_beside, trained_origin
from oodscope.training.registry import Stages

PRETRAINED = "pretrained"
FEATURES_ONLY = ("dinov2:", "open_clip:")
"""Networks that have no head of their own: one is given, fitted, or made of words."""


class ModelSpec(StrictModel):
    """Which network, and where its weights come from. A name alone stands for ``{architecture: NAME}``.

    Parameters
    ----------
    architecture : a small net (``oodscope list models``), ``timm:NAME``, ``torchvision:NAME``, ``hf:NAME``,
        ``open_clip:NAME/TAG``, ``dinov2:NAME``, or ``python:PACKAGE.MODULE:FUNCTION``, which is called and brings its
        own weights; or the folder of a training (``oodscope train``), which has its weights.
    weights : a ``.safetensors`` file, or ``pretrained``; a list of files makes an ensemble.
    train : train it here on ``id_train``: ``{recipe: NAME, ...}`` (``oodscope list recipes``), cross-entropy if none is
        named; a list is a chain of stages. With ``weights`` the first stage starts from them.
    members : how many networks to train, each with the next seed; more than one make an ensemble.
    head : a file with the linear head of a network that ends in features (``dinov2``, a function of your own; ``timm``,
        ``open_clip`` and ``hf`` do when asked for a head).
    probe : fit such a head to the features of ``id_train`` here.
    embedding : the network ends in an embedding (CIDER, NPOS) and has no classes: only detectors that read features
        apply; networks of libraries are then taken without their heads.
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
    embedding: bool = False
    text_head: TextHead | None = None
    trained_on: list[str] = []
    pretrained_on: list[str] = []

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, declared: Any) -> Any:
        return {"architecture": declared} if isinstance(declared, str) else declared

    def found_from(self, folder: Path) -> "ModelSpec":
        """The same with files relative to ``folder``."""
        update: dict[str, Any] = {
            "weights": [each if each == PRETRAINED else str(folder / each) for each in self.files] or None
        }
        if self.architecture not in MODELS and is_folder(place := folder / self.architecture):
            return self._trained_in(place)
        library, _, name = self.architecture.partition(":")
        if library == "hf" and is_folder(folder / name):
            update["architecture"] = f"hf:{folder / name}"
        if self.head is not None:
            update["head"] = str(folder / self.head)
        if self.text_head is not None and self.text_head.negatives and (folder / self.text_head.negatives).is_file():
            words = str(folder / self.text_head.negatives)
            update["text_head"] = self.text_head.model_copy(update={"negatives": words})
        return self.model_copy(update=update)

    def _trained_in(self, place: Path) -> "ModelSpec":
        """The networks in the folder of a training, or of one of its networks."""
        if self.weights is not None:
            raise UsageError(f"{place}: the folder of a training holds its weights; remove weights")
        folders = [place]
        if (place / RECORD).is_file():
            folders = [Path(each.folder) for each in Training.load(place).networks]
        files = [str(each / WEIGHTS) for each in folders]
        record = network_beside(files[0])
        if (folders[0] / DENSITY).is_file():
            raise UsageError(
                f"{place}: the network of a detector, not a classifier; name it as network of the detector"
            )
        if record is None:
            raise OodscopeError(f"{place}: no training here; name the folder of one, or a model (oodscope list models)")
        return self.model_copy(update={"architecture": record.architecture, "weights": files})

    @property
    def files(self) -> list[str]:
        """The weights, one entry per network."""
        return [self.weights] if isinstance(self.weights, str) else list(self.weights or ())

    @property
    def name(self) -> str:
        """What tables and boards call the network: a folder of this machine by its last name."""
        count = max(self.members, len(self.files))
        library, colon, place = self.architecture.rpartition(":")
        said = f"{library}{colon}{Path(place).name}" if Path(place).is_absolute() else self.architecture
        return said if count == 1 else f"{count} x {said}"

    @property
    def own_code(self) -> bool:
        """Whether a function of the user's makes it."""
        return self.architecture.startswith(PREFIX)

    @property
    def history(self) -> dict[str, list[str]]:
        """What the network has seen: as declared, and what it was trained on here."""
        here = ["id_train"] if self.train is not None or self.probe is not None else []
        here += ["ood_train"] if any(stage.ood_batch_size for stage in self.train or ()) else []
        return {"trained_on": [*here, *self.trained_on], "pretrained_on": self.pretrained_on}

    def each_network(self) -> list["ModelSpec"]:
        """The same for every single network: one weights file, or one training with the next seed."""
        if self.train is None:
            return [self.model_copy(update={"weights": file}) for file in self.files]
        return [
            self.model_copy(update={"train": _with_next_seed(self.train, number), "members": 1})
            for number in range(self.members)
        ]

    def check(self, *, untrained: bool = False) -> None:
        """Refuse options that contradict each other, unknown names, and files that are not there; builds nothing.

        Parameters
        ----------
        untrained : whether weights are drawn later, by who trains it: then it must bring none.
        """
        if untrained:
            self._check_absent("is trained from random weights", "weights", "train", "head", "probe", "text_head")
        elif self.own_code:
            self._check_absent("the function brings its own", "weights", "text_head")
            self._check_head()
        else:
            self._check_weights()
            self._check_head()
        if own := next((stage for stage in self.train or () if stage.own_network), None):
            raise UsageError(
                f"{own.name} trains no classifier but the network of a detector: train it by "
                f"'oodscope train --recipe {own.name}', then name {own.name} among the detectors"
            )
        for name in self.pretrained_on:
            get_corpus(name)
        if self.own_code:
            find_python(self.architecture)
        else:
            check_architecture(self.architecture)
        for file in [*self.files, *([] if self.head is None else [self.head])]:
            if file != PRETRAINED and not Path(file).is_file():
                raise ModelError(f"{self.architecture}: {file}: no such file of weights")

    def _check_absent(self, why: str, *keys: str) -> None:
        if given := [key for key in keys if getattr(self, key) is not None]:
            raise UsageError(f"{self.architecture}: {why}; leave out {', '.join(given)}")

    def _check_weights(self) -> None:
        if not self.files and self.train is None:
            raise UsageError("a model needs weights (a file, or 'pretrained'), a train section, or both")
        if self.train is not None and len(self.files) > 1:
            raise UsageError("a training starts from one weights file; an ensemble of them cannot be trained on")
        if self.text_head is not None and not self.architecture.startswith("open_clip:"):
            raise UsageError(f"{self.architecture}: text_head is for networks that classify by words (open_clip)")

    def _check_head(self) -> None:
        if self.embedding:
            self._check_absent("embedding says that it has no head", "head", "probe", "text_head", "train")
        if self.train is None and self.members > 1:
            raise UsageError("members belongs to a train section; name several weights files to judge an ensemble")
        if self.head is not None and self.probe is not None:
            raise UsageError("a model gets its head from a file (head) or from a fit (probe), not both")
        if self.head is None and self.probe is None:
            return
        if self.train is not None or len(self.files) > 1:
            raise UsageError("head and probe belong to one network with weights (a file, or 'pretrained')")
        if not self.own_code:
            check_backbone(self.architecture)


def _with_next_seed(stages: Stages, number: int) -> Stages:
    return tuple(stage.model_copy(update={"seed": stage.seed + number}) for stage in stages)


@dataclass(frozen=True)
class ModelData:
    """What a model is built for.

    Parameters
    ----------
    class_names : the classes of the data; without them a network keeps those of its weights.
    id_train, id_val, ood_train : what a network or a head that is fitted here learns from.
    transform : preprocessing for networks that bring none.
    name : of the benchmark, for messages.
    sets : every set with its role: outliers that a training sees must be none of them.
    """

    class_names: Sequence[str] = ()
    id_train: ImageSet | None = None
    id_val: ImageSet | None = None
    ood_train: ImageSet | None = None
    transform: Preprocess | None = None
    name: str = ""
    sets: tuple[tuple[Role, ImageSet], ...] = ()

    def members(self) -> Iterator[tuple[Role, ImageSet]]:
        """Every set with its role."""
        yield from self.sets

    @classmethod
    def of(cls, benchmark: Benchmark) -> "ModelData":
        """Of a benchmark."""
        sets = (benchmark.id_train, benchmark.id_val, benchmark.ood_train)
        return cls(benchmark.class_names, *sets, benchmark.transform, benchmark.name, tuple(benchmark.members()))


class BuiltModel(NamedTuple):
    """A classifier; how it was trained here (empty if it was not); which network of the zoo it is, if one."""

    classifier: Classifier
    recipe: str
    origin: ModelOrigin | None


def build_classifier(
    spec: ModelSpec,
    data: ModelData,
    *,
    device: str = "auto",
    features_only: bool = False,
    progress: Progress = SILENT,
) -> BuiltModel:
    """The classifier that a spec describes: every command and every job gets its model here.

    Parameters
    ----------
    features_only : take a network that has no head of its own as it is, for who reads features and no classes.
    """
    spec.check()
    head = None if spec.head is None else read_head(spec.head)
    headless = spec.head is not None or spec.probe is not None
    if spec.embedding and spec.architecture.partition(":")[0] in LIBRARIES:
        headless = True
    if features_only and spec.architecture.startswith(FEATURES_ONLY):
        headless = True
    origin = None if spec.own_code else _origin(spec, headless, head)
    recipe = ""
    transform: Any
    if spec.train is not None:
        network, transform = _train_members(spec, data, device, progress), data.transform
        recipe = " + ".join(str(stage.describe()["method"]) for stage in spec.train)
    elif origin is not None:
        classes = None if spec.embedding else len(data.class_names) or None
        network, transform = origin.build(classes, spec.files, class_names=data.class_names, device=device)
        recipe = origin.network.method if isinstance(origin, TrainedOrigin) else ""
    else:
        made = call_python(spec.architecture)
        if isinstance(made, Classifier) and not headless and not spec.embedding:
            return BuiltModel(made.with_history(**spec.history), recipe, None)
        network, transform = (made.model, made.transform) if isinstance(made, Classifier) else (made, None)
    if (headless or spec.embedding) and not features_only:
        transform = transform or data.transform
    options: dict[str, Any] = {"device": device, "name": spec.name, "embedding": spec.embedding, **spec.history}
    if spec.probe is not None:
        ending_in_features = Classifier(network, transform, device=device, name=spec.name)
        head, penalty = _fit_probe(spec.probe, ending_in_features, data, progress)
        recipe = ", ".join(filter(None, [recipe, f"linear probe (penalty {penalty:g})"]))
    return BuiltModel(Classifier(network, transform, head=head, **options), recipe, origin)


def network_factory(spec: ModelSpec) -> Callable[[int], nn.Module]:
    """Makes untrained networks for a number of classes, for who trains them; the user's own function has its number."""

    def build(num_classes: int) -> nn.Module:
        if not spec.own_code:
            return create_model(spec.architecture, num_classes=num_classes).model
        made = call_python(spec.architecture)
        return made.model if isinstance(made, Classifier) else made

    return build


def with_identity_head(ending_in_features: Classifier) -> Classifier:
    """The same with the identity for a head: what it calls logits are the features themselves."""
    width = ending_in_features.num_classes
    return Classifier(
        ending_in_features.model,
        ending_in_features.transform,
        head=Head(torch.eye(width)),
        device=ending_in_features.device,
        name=ending_in_features.name,
    )


def _origin(spec: ModelSpec, headless: bool, head: Head | None) -> ModelOrigin:
    if spec.train is None and not headless and (trained := trained_origin(spec.architecture, spec.files)) is not None:
        return trained
    return ModelOrigin(
        architecture=spec.architecture,
        pretrained=spec.files == [PRETRAINED],
        members=max(spec.members, len(spec.files)),
        headless=headless,
        width=None if head is None else head.dim,
        text_head=spec.text_head,
    )


def _fit_probe(probe: LinearProbe, network: Classifier, data: ModelData, progress: Progress) -> tuple[Head, float]:
    if data.id_train is None:
        raise OodscopeError("there is no id_train: nothing to fit a probe to")
    bare = with_identity_head(network)

    def extract(images: ImageSet) -> Activations:
        return ActivationStore().extract(bare, images, progress=progress)

    val = None if data.id_val is None else extract(data.id_val)
    fitted = probe.fit(extract(data.id_train), val, len(data.class_names), bare.device)
    return fitted.head, fitted.penalty


def _train_members(spec: ModelSpec, data: ModelData, device: str, progress: Progress) -> nn.Module:
    assert spec.train is not None, "asked for by build_classifier"
    check_training(spec.train, data)
    return vote([_train(each, data, device, progress) for each in spec.each_network()])


def _train(spec: ModelSpec, data: ModelData, device: str, progress: Progress) -> nn.Module:
    assert spec.train is not None, "asked for by build_classifier"
    weights = spec.files[0] if spec.files else None
    make = network_factory(spec)
    own = (lambda: make(len(data.class_names))) if spec.own_code else None
    names = addresses(spec.architecture, spec.train, data, weights)
    folders = [cache_root() / "training" / f"{spec.architecture}-{name}" for name in names]
    stages = train_stages(spec.architecture, spec.train, data, folders, device, progress, weights=weights, build=own)
    return stages[-1].model


def matched(benchmark: Benchmark, model: ModelSpec, classes: str | None) -> Benchmark:
    """The benchmark with labels in the classifier's classes, as far as their names are known (``class_order``)."""
    order = class_order(benchmark.class_names, model, classes)
    return benchmark if order is None else benchmark.in_classes(order)


def class_order(names: Sequence[str], model: ModelSpec, classes: str | None) -> Sequence[str] | None:
    """The classifier's classes in the order of its logits, if they are known.

    They are if ``classes`` names a file of them, or if published weights say what they were trained with and ``names``,
    those of the data, are among them. Otherwise the data stay as they are, and the number of classes must agree.
    """
    if classes is not None:
        return read_class_names(Path(classes))
    if model.files != [PRETRAINED]:
        return None
    own = set(names)
    order = max(published_classes(model.architecture), key=lambda known: len(own & set(known)), default=())
    # some shared names and an unknown one is a mistake, which the matching names
    return order if own & set(order) else None
