"""How the network of a training is built again: ``network.json`` beside its weights.

A recipe may change the network that it trains: it adds a head, a buffer, a layer before the last one. Its weights then
fit no network of the zoo, so what was done to the network is kept beside them: each stage of the training, what the
recipe knew of the data when it prepared the network, and what it changed. The changes open the network without the
recipe; where they cannot be described, the recipe prepares the network once more.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import nn

from oodscope.base.catalog import catalog
from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import ModelError, OodscopeError
from oodscope.base.files import write_text
from oodscope.models.classifier.checkpoint import head_classes, load_weights, read_checkpoint
from oodscope.models.zoo.origin import ModelOrigin
from oodscope.models.zoo.zoo import ZooModel, create_model
from oodscope.training.recipe import Recipe, TrainingFacts
from oodscope.training.registry import read_recipe
from oodscope.training.wrappers import Before, Change, apply_changes, describe_changes

FILE = "network.json"
WEIGHTS = "model.safetensors"
PRETRAINED = "pretrained"


class StageRecord(StrictModel):
    """One stage: the recipe as a job file declares it, the facts that it prepared the network by, and what it changed.

    ``changes`` is ``None`` where these cannot be described.
    """

    recipe: dict[str, Any]
    class_names: tuple[str, ...]
    n_train: int
    size: int
    n_ood: int = 0
    hierarchy: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    changes: tuple[Change, ...] | None = None

    @classmethod
    def of(cls, recipe: Recipe, facts: TrainingFacts) -> "StageRecord":
        """What ``recipe`` does with a network for these data."""
        return cls(
            recipe={"recipe": recipe.name or type(recipe).__name__, **recipe.model_dump(mode="json")},
            class_names=facts.class_names,
            n_train=facts.n_train,
            size=facts.size,
            n_ood=facts.n_ood,
            hierarchy=dict(facts.hierarchy),
        )

    def prepare(self, model: nn.Module) -> nn.Module:
        """The network as the recipe prepares it."""
        if self.changes is not None:
            return apply_changes(model, self.changes)
        facts = TrainingFacts(**self.model_dump(exclude={"recipe", "changes"}))
        return read_recipe(self.recipe).prepare(model, facts)


class NetworkRecord(StrictModel):
    """The network that a training ended with.

    Parameters
    ----------
    architecture : a name of the zoo.
    num_classes : of the network that the first stage began with.
    stages : what was done to it, in order.
    """

    architecture: str
    num_classes: int | None
    stages: tuple[StageRecord, ...]

    def build(self) -> nn.Module:
        """The network without its weights."""
        # a prepared layer draws its first weights, and nobody else's random numbers should notice
        with torch.random.fork_rng(devices=[]):
            model = create_model(self.architecture, num_classes=self.num_classes).model
            for stage in self.stages:
                model = stage.prepare(model)
        return model

    def followed_by(self, stages: Sequence[StageRecord]) -> "NetworkRecord":
        """The record after further stages, with what each of them changed."""
        record = self
        for stage in stages:
            with torch.random.fork_rng(devices=[]):
                start = record.build()
                before = Before(start)
                changes = describe_changes(before, stage.prepare(start), record.build)
            added = stage.model_copy(update={"changes": changes})
            record = record.model_copy(update={"stages": (*record.stages, added)})
        return record

    @property
    def method(self) -> str:
        """How it was trained, stage by stage, as the record of a run says it."""
        entries = catalog("recipes")
        names = [str(stage.recipe["recipe"]) for stage in self.stages]
        targets = [entries[name]["target"].rpartition(":")[2] if name in entries else name for name in names]
        return " + ".join(targets)

    def alike(self) -> "NetworkRecord":
        """The same but for seeds: equal for networks that were trained alike."""
        stages = (each.model_copy(update={"recipe": {**each.recipe, "seed": 0}}) for each in self.stages)
        return self.model_copy(update={"stages": tuple(stages)})

    def write(self, folder: Path) -> None:
        """Write ``network.json``."""
        write_text(folder / FILE, json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")


class TrainedOrigin(ModelOrigin):
    """A network of the zoo, and what trainings made of it."""

    network: NetworkRecord

    def _make(self, state: Any, num_classes: int | None, **words: Any) -> ZooModel:
        classes = len(self.network.stages[-1].class_names) if self.network.stages else self.network.num_classes
        if num_classes is not None and classes is not None and num_classes != classes:
            raise ModelError(f"{self.architecture} was trained for {classes} classes, and the data have {num_classes}")
        model = self.network.build()
        if state is not None:
            weights = state if isinstance(state, dict) else read_checkpoint(state)
            load_weights(model, weights, "the state dict" if isinstance(state, dict) else str(state))
        return ZooModel(model, None)


def network_beside(weights: str | Path) -> NetworkRecord | None:
    """What ``network.json`` beside a file of weights says, if there is one."""
    path = Path(weights).parent / FILE
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not the record of a network ({error}); train it again") from error
    return parse(NetworkRecord, content, str(path))


def trained_origin(architecture: str, files: Sequence[str | Path]) -> TrainedOrigin | None:
    """Where these weights come from, if trainings of ours wrote them; several files must be seeds of one training."""
    records = [record for file in files if file != PRETRAINED and (record := network_beside(file)) is not None]
    if not records:
        return None
    for file, record in zip(files, records):
        if record.architecture != architecture:
            raise OodscopeError(f"{file}: weights of {record.architecture}, not of {architecture}; name that model")
        if len(records) < len(files) or record.alike() != records[0].alike():
            raise OodscopeError(f"{file}: trained in another way than the others; evaluate them one by one")
    first = records[0]
    return TrainedOrigin(architecture=architecture, members=len(files), network=first)


def build_start(architecture: str, num_classes: int, weights: str | None) -> nn.Module:
    """The network that a training starts from: with random weights, or those of a file or publisher."""
    if weights is None:
        return create_model(architecture, num_classes=num_classes).model
    origin = None if weights == PRETRAINED else trained_origin(architecture, [weights])
    if origin is not None:
        return origin.build(None, [weights]).model
    return create_model(architecture, weights=weights).model


def start_record(architecture: str, num_classes: int, weights: str | None) -> NetworkRecord:
    """The record of that network."""
    if weights is None:
        return NetworkRecord(architecture=architecture, num_classes=num_classes, stages=())
    if weights != PRETRAINED and (before := network_beside(weights)) is not None:
        return before
    model = create_model(architecture, weights=weights).model
    return NetworkRecord(architecture=architecture, num_classes=head_classes(model, model.state_dict()), stages=())
