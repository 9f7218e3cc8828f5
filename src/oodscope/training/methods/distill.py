"""Distillation: a network learns the mean prediction of its teachers."""

from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.base.errors import ModelError, UsageError
from oodscope.base.files import checksum
from oodscope.base.paper import Paper
from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.network import WEIGHTS, network_beside
from oodscope.training.recipe import Batch, Step, TrainingFacts

_KNOWN = "teachers"


class Distillation(CrossEntropy):
    r"""Cross-entropy towards the mean of the teachers' probabilities, without labels.

    .. math:: L = -(1-\lambda)\,T^2\sum_c t_c\log\mathrm{softmax}_c(z/T) + \lambda\,\mathrm{CE}(z, y), \qquad
              t = \frac1M\sum_m\mathrm{softmax}(z^{(m)}/T)

    The small form of MEAL V2. Its discriminator is left out: in the released code its loss is added for both sides, so
    that it pushes the student to be distinguishable. The student is best a network that was trained before; teachers
    see the same views, in evaluation mode.

    Parameters
    ----------
    teachers : folders of trained networks, as ``oodscope train`` writes them, for the same classes.
    temperature : :math:`T`.
    labels : :math:`\lambda`, what the labels count.
    """

    name: ClassVar[str] = "distill"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "MEAL V2: Boosting Vanilla ResNet-50 to 80%+ Top-1 Accuracy on ImageNet without Tricks",
        "Shen & Savvides",
        "NeurIPS 2020 workshop",
    )
    cost: ClassVar[float | None] = None

    epochs: int = Field(default=40, gt=0)
    learning_rate: float = Field(default=0.01, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    teachers: tuple[str, ...] = ()
    temperature: float = Field(default=1.0, gt=0)
    labels: float = Field(default=0.0, ge=0, le=1)

    def check(self, facts: TrainingFacts) -> None:
        if not self.teachers:
            raise UsageError("distill needs teachers: set teachers to folders of trained networks")
        for folder in self.teachers:
            if not (Path(folder) / WEIGHTS).is_file():
                raise UsageError(f"distill: {folder} holds no {WEIGHTS}: name the folder of a trained network")

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        self.check(facts)
        # the teachers' digests are part of the network, so that other teachers make another training
        digests = [int(checksum((Path(folder) / WEIGHTS).read_bytes())) for folder in self.teachers]
        model.register_buffer(_KNOWN, torch.tensor(digests))
        with torch.no_grad():
            shown = opened(self.teachers, torch.device("cpu"))[0](
                torch.zeros(2, facts.channels, facts.size, facts.size)
            )
        if logits_of(shown).shape[1] != facts.num_classes:
            raise ModelError(
                f"distill: {self.teachers[0]} knows {logits_of(shown).shape[1]} classes, "
                f"and the training images have {facts.num_classes}"
            )
        return model

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        logits = logits_of(model(batch.images))
        with torch.no_grad():
            given = [logits_of(each(batch.images)) for each in opened(self.teachers, batch.images.device)]
        soft = soft_loss(logits, mean_prediction(given, self.temperature), self.temperature)
        loss = (1 - self.labels) * soft
        return Step(loss + self.labels * cross_entropy(logits, batch.labels) if self.labels else loss, logits)


def mean_prediction(logits: list[Tensor], temperature: float) -> Tensor:
    """The mean of the networks' probabilities."""
    return torch.stack([(each.float() / temperature).softmax(dim=1) for each in logits]).mean(dim=0)


def soft_loss(logits: Tensor, target: Tensor, temperature: float) -> Tensor:
    """The mean cross-entropy towards probabilities; gradients keep their size whatever the temperature is."""
    return -(temperature**2) * (target * (logits.float() / temperature).log_softmax(dim=1)).sum(dim=1).mean()


@lru_cache(maxsize=4)
def opened(folders: tuple[str, ...], device: torch.device) -> tuple[nn.Module, ...]:
    """The networks of these folders, frozen, in evaluation mode."""
    found = []
    for folder in folders:
        path = Path(folder) / WEIGHTS
        record = network_beside(path)
        if record is None:
            raise ModelError(f"distill: {folder} has no network.json beside its weights: train it with oodscope train")
        model = record.build()
        load_weights(model, read_checkpoint(path), str(path))
        found.append(model.eval().requires_grad_(False).to(device))
    return tuple(found)
