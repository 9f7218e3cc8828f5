"""FrozenEmbeddings: every image goes through a network once; each fold trains a small head on what came out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.extract import Ask, run_network
from oodscope.activations.store.store import ActivationStore
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.crossval.draws import Rows, TrainingRows
from oodscope.runs.crossval.trainer import FoldModel, Price, few_rows, seconds_of
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.trained import TrainedHead
from oodscope.training.heads.training import train_heads

TOGETHER = 25
"""Heads in one batched training: enough to keep an accelerator busy, few enough for a small memory."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """A set on the device: embeddings ``[N, D]`` and labels ``[N]``."""

    embeddings: Tensor
    labels: Tensor


@dataclass(frozen=True, eq=False)
class HeadModel:
    """One fold's head over the embeddings of all sets."""

    trained: TrainedHead
    embedded: dict[str, Embedded]

    def activations(self, images: ImageSet, rows: Rows) -> Activations:
        whole = self.embedded[images.name]
        chosen = torch.from_numpy(rows).to(whole.labels.device)
        return self.trained.activations(whole.embeddings[chosen], whole.labels[chosen])


class FrozenEmbeddings:
    """Two-layer heads on the features of a network that never changes.

    The embeddings of all sets stay on the device, and the heads of many folds are trained in one batched computation,
    so that a study of thousands of models takes minutes. The network must not know the folded images or their
    classes: ``cross_validate`` refuses it where that can be known.

    Parameters
    ----------
    classifier : its features, the input of its head, are the embeddings; the output of a network that has no head.
    recipe : of the heads.
    store : where the embeddings are kept; by default in the cache.
    at_once : heads in one batched training.
    batch_size : images per forward pass.
    """

    has_pre_activation = True

    def __init__(
        self,
        classifier: Classifier,
        recipe: HeadRecipe | None = None,
        *,
        store: ActivationStore | None = None,
        at_once: int = TOGETHER,
        batch_size: int = 256,
    ) -> None:
        self.classifier, self.recipe = classifier, recipe or HeadRecipe()
        self.at_once = at_once
        # with its index, as tensors say it: "cuda" and "cuda:0" would pass for two devices
        self.device = torch.empty(0, device=classifier.device).device
        self._store, self._batch_size = store or ActivationStore(), batch_size
        self._embedded: dict[str, Embedded] = {}

    def describe(self) -> dict[str, Any]:
        return {
            "backbone": "frozen",
            "model": self.classifier.name,
            "weights": self.classifier.fingerprint,
            "transform": self.classifier.transform_key,
            "recipe": self.recipe.describe(),
            "at_once": self.at_once,
        }

    def begins_from(self) -> Classifier:
        return self.classifier

    def open(self, sets: Sequence[ImageSet], progress: Progress) -> None:
        for images in sets:
            found = self._store.extract(self.classifier, images, batch_size=self._batch_size, progress=progress)
            features = found.features if "features" in found else found.logits
            # a copy, because what the store gives may be a map of a file
            embeddings = torch.empty(features.shape, device=self.device).copy_(features)
            labels = torch.from_numpy(images.labels).to(self.device)
            self._embedded[images.name] = Embedded(embeddings, labels)

    def price(self, images: ImageSet) -> Price:
        rows = few_rows(images)
        run = partial(run_network, self.classifier, images, [Ask(rows, True, ())], self._batch_size)
        (found,) = run()
        width = found.get("features", found["logits"]).shape[1]
        count = 4 * max(len(images.class_names), 16)
        embeddings = torch.randn(count, width, generator=torch.Generator().manual_seed(0)).to(self.device)
        labels = torch.arange(count, device=self.device) % len(images.class_names)
        learnt, judged = np.split(np.arange(count), [3 * count // 4])
        tasks = [HeadTask(learnt, judged, seed) for seed in range(self.at_once)]
        recipe = self.recipe.model_copy(update={"epochs": 1})
        train = partial(
            train_heads, recipe, embeddings, labels, tasks, len(images.class_names), device=self.device, progress=SILENT
        )
        per_epoch = seconds_of(train) / (len(learnt) * self.at_once)
        return Price(seconds_of(run) / len(rows), per_epoch, self.recipe.epochs, self.recipe.oe_epochs, True)

    def train(
        self, images: ImageSet, folds: Sequence[TrainingRows], progress: Progress = SILENT
    ) -> Sequence[FoldModel]:
        tasks = [HeadTask(fold.train, fold.val, fold.seed) for fold in folds]
        return self._train(images, None, tasks, progress)

    def expose(
        self,
        models: Sequence[FoldModel],
        images: ImageSet,
        outliers: ImageSet,
        folds: Sequence[TrainingRows],
        progress: Progress = SILENT,
    ) -> Sequence[FoldModel]:
        tasks = [
            HeadTask(fold.train, fold.val, fold.seed, fold.outliers, model.trained)
            for fold, model in zip(folds, models)
            if isinstance(model, HeadModel)
        ]
        return self._train(images, outliers, tasks, progress)

    def _train(
        self, images: ImageSet, outliers: ImageSet | None, tasks: Sequence[HeadTask], progress: Progress
    ) -> Sequence[FoldModel]:
        known = self._embedded[images.name]
        heads = train_heads(
            self.recipe,
            known.embeddings,
            known.labels,
            tasks,
            len(images.class_names),
            outliers=None if outliers is None else self._embedded[outliers.name].embeddings,
            device=self.device,
            progress=progress,
        )
        return [HeadModel(head, self._embedded) for head in heads]
