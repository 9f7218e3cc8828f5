"""FullTraining, FineTuning: a whole network for every fold."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from oodscope.activations.activations import Activations
from oodscope.activations.extract import Ask, run_network
from oodscope.base.errors import ModelError
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import choose_device
from oodscope.runs.crossval.draws import Rows, TrainingRows
from oodscope.runs.crossval.trainer import FoldModel, Price, few_rows, seconds_of
from oodscope.training.methods.fine_tune import FineTune
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.recipe import Recipe
from oodscope.training.train import train

EXPOSED = 5
"""Epochs with outliers, as in the paper; fewer where the training itself has fewer."""


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """One fold's network; images go through it when they are asked for."""

    classifier: Classifier
    batch_size: int

    def activations(self, images: ImageSet, rows: Rows) -> Activations:
        (found,) = run_network(self.classifier, images, [Ask(rows, True, ())], self.batch_size)
        columns = {name: torch.from_numpy(values).to(self.classifier.device) for name, values in found.items()}
        labels = torch.from_numpy(images.labels[rows]).to(self.classifier.device)
        return Activations(
            logits=columns["logits"], features=columns.get("features"), labels=labels, head=self.classifier.head
        )


class NetworkTrainer(ABC):
    """Trains one network after the other; subclasses say what it starts from.

    Parameters
    ----------
    recipe : of the plain training; its seed is replaced by each fold's. Its ``patience`` stops it by the fold's
        validation images.
    preprocess : from stored pixels to what the network expects.
    exposure : of the fine-tuning with outliers; by default the paper's, with all else as in ``recipe``.
    """

    at_once = 1
    has_pre_activation = False

    def __init__(
        self,
        name: str,
        recipe: Recipe,
        preprocess: Preprocess,
        exposure: OutlierExposure | None,
        device: torch.device,
        batch_size: int,
    ) -> None:
        self.name, self.recipe, self.preprocess = name, recipe, preprocess
        self.exposure = exposure or OutlierExposure.after(recipe, epochs=min(EXPOSED, recipe.epochs))
        self.device, self._batch_size = device, batch_size

    @abstractmethod
    def _start(self, num_classes: int) -> nn.Module | Callable[[], nn.Module]:
        """What ``train`` begins with."""

    @abstractmethod
    def begins_from(self) -> Classifier | None:
        """The network whose weights every fold starts from; ``None`` where they are drawn anew."""

    def describe(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "transform": self.preprocess.key,
            "recipe": self.recipe.model_copy(update={"seed": 0}).describe(),
            "exposure": self.exposure.model_copy(update={"seed": 0}).describe(),
        }

    def open(self, sets: Sequence[ImageSet], progress: Progress) -> None:  # noqa: B027  nothing serves all folds
        """Nothing is done for all folds."""

    def price(self, images: ImageSet) -> Price:
        rows = few_rows(images)
        few, start = images.take(rows), self._start(len(images.class_names))
        recipe = self.recipe.model_copy(update={"epochs": 1})
        device = str(self.device)
        per_epoch = seconds_of(partial(train, start, recipe, few, self.preprocess, val=few, device=device)) / len(rows)
        network = start() if not isinstance(start, nn.Module) else start
        classifier = Classifier(network, self.preprocess, device=self.device, name=self.name)
        run = partial(run_network, classifier, images, [Ask(rows, True, ())], self._batch_size)
        return Price(seconds_of(run) / len(rows), per_epoch, self.recipe.epochs, self.exposure.epochs, False)

    def train(
        self, images: ImageSet, folds: Sequence[TrainingRows], progress: Progress = SILENT
    ) -> Sequence[FoldModel]:
        start = self._start(len(images.class_names))
        return [self._train(start, self.recipe, images, None, fold, progress) for fold in folds]

    def expose(
        self,
        models: Sequence[FoldModel],
        images: ImageSet,
        outliers: ImageSet,
        folds: Sequence[TrainingRows],
        progress: Progress = SILENT,
    ) -> Sequence[FoldModel]:
        return [
            self._train(model.classifier.model, self.exposure, images, outliers.take(fold.outliers), fold, progress)
            for model, fold in zip(models, folds)
            if isinstance(model, NetworkModel) and fold.outliers is not None
        ]

    def _train(
        self,
        start: nn.Module | Callable[[], nn.Module],
        recipe: Recipe,
        images: ImageSet,
        outliers: ImageSet | None,
        fold: TrainingRows,
        progress: Progress,
    ) -> NetworkModel:
        trained = train(
            start,
            recipe.model_copy(update={"seed": fold.seed}),
            images.take(fold.train),
            self.preprocess,
            val=images.take(fold.val),
            ood_train=outliers,
            folder=fold.place,
            device=str(self.device),
            progress=progress,
        )
        classifier = Classifier(trained.model, self.preprocess, device=self.device, name=self.name)
        return NetworkModel(classifier, self._batch_size)


class FullTraining(NetworkTrainer):
    """A network trained from random weights for every fold: it cannot have seen what it is tested on.

    Parameters
    ----------
    build : makes an untrained network for so many classes, such as
        ``lambda classes: oods.create_model("small_cnn", num_classes=classes).model``.
    recipe, preprocess, exposure : see ``NetworkTrainer``.
    name : how tables call the network; it is part of the identity of a study.
    """

    def __init__(
        self,
        build: Callable[[int], nn.Module],
        recipe: Recipe,
        preprocess: Preprocess,
        *,
        name: str,
        exposure: OutlierExposure | None = None,
        device: str | torch.device = "auto",
        batch_size: int = 256,
    ) -> None:
        super().__init__(name, recipe, preprocess, exposure, choose_device(device), batch_size)
        self._build = build

    def describe(self) -> dict[str, Any]:
        return {"backbone": "full", **super().describe()}

    def begins_from(self) -> None:
        return None

    def _start(self, num_classes: int) -> Callable[[], nn.Module]:
        return partial(self._build, num_classes)


class FineTuning(NetworkTrainer):
    """A pretrained network that every fold adapts, all of it, with a new head: ViT-B/16 in the paper.

    Parameters
    ----------
    classifier : the network and its preprocessing; it is left as it is.
    recipe : by default the paper's.
    exposure : see ``NetworkTrainer``.
    """

    def __init__(
        self,
        classifier: Classifier,
        recipe: Recipe | None = None,
        *,
        exposure: OutlierExposure | None = None,
        batch_size: int = 256,
    ) -> None:
        if not isinstance(classifier.transform, Preprocess):
            raise ModelError(
                f"{classifier.name}: fine-tuning varies pixels before they are normalised, so it needs its "
                "preprocessing as transform=Preprocess(size=..., mean=..., std=...)"
            )
        recipe = recipe or FineTune()
        super().__init__(classifier.name, recipe, classifier.transform, exposure, classifier.device, batch_size)
        self.classifier = classifier

    def describe(self) -> dict[str, Any]:
        return {"backbone": "finetune", "weights": self.classifier.fingerprint, **super().describe()}

    def begins_from(self) -> Classifier:
        return self.classifier

    def _start(self, num_classes: int) -> nn.Module:
        return self.classifier.model
