"""ModelSpec: which network to judge, or which ensemble of networks, and where the weights come from."""

from pathlib import Path
from typing import Any

from pydantic import Field
from torch import nn

from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError
from oodscope.base.files import cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data import Benchmark
from oodscope.execution import Progress
from oodscope.models import Classifier, Ensemble, create_model
from oodscope.training import CrossEntropy, train

PRETRAINED = "pretrained"


class ModelSpec(StrictModel):
    """Which network, and where its weights come from.

    Parameters
    ----------
    architecture : a small net (``oodscope list models``), ``timm:NAME`` or ``torchvision:NAME``.
    weights : a ``.safetensors`` file, or ``pretrained``; a list of files makes an ensemble.
    train : train it here on ``id_train`` instead, with this cross-entropy recipe.
    members : how many networks to train, each with the next seed; more than one make an ensemble.
    trained_on : sets or roles of the benchmark that the weights were trained on; ``id_train`` for a training here.
    pretrained_on : what the weights saw before, such as ``imagenet21k``.
    """

    architecture: str
    weights: str | list[str] | None = None
    train: CrossEntropy | None = None
    members: int = Field(default=1, gt=0)
    trained_on: list[str] = []
    pretrained_on: list[str] = []

    def found_from(self, folder: Path) -> "ModelSpec":
        """The same with files relative to ``folder``."""
        found = [each if each == PRETRAINED else str(folder / each) for each in self.files]
        return self.model_copy(update={"weights": found or None})

    @property
    def files(self) -> list[str]:
        """The weights, one entry per network."""
        return [self.weights] if isinstance(self.weights, str) else list(self.weights or ())


def make_classifier(spec: ModelSpec, benchmark: Benchmark, device: str, progress: Progress) -> tuple[Classifier, str]:
    """The classifier that a spec describes, and the recipe it was trained with here (empty if it was not)."""
    if (not spec.files) == (spec.train is None):
        raise OodscopeError("a model needs either weights (a file, or 'pretrained') or a train section, not both")
    if spec.files and spec.members > 1:
        raise OodscopeError("members belongs to a train section; name several weights files to judge an ensemble")
    classes = len(benchmark.class_names)
    if spec.train is None:
        made = [create_model(spec.architecture, num_classes=classes, weights=file) for file in spec.files]
        network, transform = _vote([model for model, _ in made]), made[0][1]
        return Classifier(network, transform, device=device, name=_name(spec), **_history(spec)), ""
    recipes = [spec.train.model_copy(update={"seed": spec.train.seed + number}) for number in range(spec.members)]
    models = [_train(spec.architecture, recipe, benchmark, device, progress) for recipe in recipes]
    classifier = Classifier(_vote(models), benchmark.transform, device=device, name=_name(spec), **_history(spec))
    return classifier, str(spec.train.describe()["method"])


def _history(spec: ModelSpec) -> dict[str, Any]:
    """What the network has seen: as declared, and what it was trained on here."""
    here = ["id_train"] if spec.train is not None else []
    return {"trained_on": [*here, *spec.trained_on], "pretrained_on": spec.pretrained_on}


def _vote(models: list[nn.Module]) -> nn.Module:
    return models[0] if len(models) == 1 else Ensemble(models)


def _name(spec: ModelSpec) -> str:
    count = max(spec.members, len(spec.files))
    return spec.architecture if count == 1 else f"{count} x {spec.architecture}"


def _train(architecture: str, recipe: CrossEntropy, benchmark: Benchmark, device: str, progress: Progress) -> nn.Module:
    if benchmark.id_train is None or benchmark.transform is None:
        raise OodscopeError(f"benchmark {benchmark.name!r} has no id_train and transform: nothing to train on")

    def build() -> Any:
        return create_model(architecture, num_classes=len(benchmark.class_names))[0]

    build.__name__ = architecture
    address = fingerprint(recipe.describe(), architecture, benchmark.transform.key, benchmark.id_train.fingerprint)[:24]
    trained = train(
        build,
        recipe,
        benchmark.id_train,
        benchmark.transform,
        folder=cache_root() / "training" / f"{architecture}-{address}",
        device=device,
        progress=progress,
    )
    return trained.model
