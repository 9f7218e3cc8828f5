"""MOS: a softmax for each group of classes, each with a place for everything else."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from oodscope.base.errors import DataError
from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import OTHERS
from oodscope.models.classifier.last_layer import LastLayer
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.mixup import drawn_partners, drawn_share
from oodscope.training.recipe import Batch, Step, TrainingFacts

_WARMUP_STEPS, _WARMUP_SHARE = 500, 0.05


class GroupedHead(LastLayer):
    r"""A linear layer with one more output than classes in every group, and a softmax over each group.

    The logits handed on are :math:`\log p_g(c)` of each class within its group; ``others`` holds
    :math:`\log p_g(\mathrm{others})` of each group. It starts from zeros.

    Parameters
    ----------
    width : of the features.
    groups : the group of each class, numbered from 0.
    """

    def __init__(self, width: int, groups: Sequence[int]) -> None:
        super().__init__()
        self.groups = tuple(groups)
        count = max(groups) + 1
        self.linear = nn.Linear(width, len(groups) + count)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        group = torch.tensor(groups)
        # outputs lie group by group, "others" first; each group's are gathered into a row, filled up to the longest
        members = [(group == number).nonzero().flatten() for number in range(count)]
        starts = np.cumsum([0, *(len(each) + 1 for each in members)])
        longest = 1 + max(len(each) for each in members)
        places = torch.zeros(count, longest, dtype=torch.long)
        empty = torch.ones(count, longest, dtype=torch.bool)
        slot = torch.zeros(len(groups), dtype=torch.long)
        for number, own in enumerate(members):
            places[number, : len(own) + 1] = int(starts[number]) + torch.arange(len(own) + 1)
            empty[number, : len(own) + 1] = False
            slot[own] = number * longest + 1 + torch.arange(len(own))
        for name, value in (("group", group), ("places", places), ("empty", empty), ("slot", slot)):
            self.register_buffer(name, value, persistent=False)

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {"width": self.linear.in_features, "groups": list(self.groups)}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        return self.split(self.linear(features))

    def split(self, outputs: Tensor) -> dict[str, Tensor]:
        """What the layer returns, from its outputs ``[B, C + G]``."""
        exact = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
        rows = exact[:, self.get_buffer("places")].masked_fill(self.get_buffer("empty"), -torch.inf)
        logs = rows.log_softmax(dim=2)
        return {"logits": logs.flatten(1)[:, self.get_buffer("slot")], OTHERS: logs[:, :, 0]}

    def loss(self, output: dict[str, Tensor], labels: Tensor) -> Tensor:
        """The cross-entropies of all groups, added: towards the class in its group, towards "others" elsewhere."""
        own = output["logits"].gather(1, labels[:, None]).sum(dim=1)
        group = self.get_buffer("group")[labels]
        elsewhere = output[OTHERS].sum(dim=1) - output[OTHERS].gather(1, group[:, None]).flatten()
        return -(own + elsewhere).mean()


class MOS(CrossEntropy):
    r"""Cross-entropy within groups of classes, where each group also learns what it does not hold.

    .. math:: L = \sum_g \mathrm{CE}(z_g, t_g)

    with the class's own place in its group as :math:`t_g`, and "others" in every other group; on mixtures of two images
    towards both of their labels. In OpenOOD's code the mixtures are thrown away, and plain images get the mixed labels.
    The score is the least probability of "others" (detector ``mos``); the class is the one of the largest probability
    within its group.

    The defaults fine-tune a trained network by BiT's rule: 10,000 steps, a warm-up of 500, rates that fall to a tenth
    after 3/10, 6/10 and 9/10 of them, no weight decay. On ImageNet-1K: ``steps: 20000``.

    Parameters
    ----------
    level : of the training images' hierarchy, such as ``superclass``, whose values are the groups; without it the only
        level there is.
    groups : classes of each group by name, for images without a hierarchy: ``{fish: [tench, goldfish], dogs: [...]}``.
    alpha : of Mixup's Beta distribution; 0 mixes nothing, as BiT does below 20,000 images.
    parity : show plain images with mixed labels, as the code behind the published rows does.
    """

    name: ClassVar[str] = "mos"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "MOS: Towards Scaling Out-of-distribution Detection for Large Semantic Space", "Huang & Li", "CVPR 2021"
    )
    detectors: ClassVar[tuple[str, ...]] = ("mos", "msp")

    epochs: int = Field(default=30, gt=0)
    steps: int | None = Field(default=10_000, gt=0)
    learning_rate: float = Field(default=0.003, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    milestones: tuple[float, ...] | None = (0.3, 0.6, 0.9)
    level: str | None = None
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    alpha: float = Field(default=0.1, ge=0)
    parity: bool = False

    def check(self, facts: TrainingFacts) -> None:
        self._groups(facts)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        groups = self._groups(facts)
        return replace_layer(model, lambda last: GroupedHead(last.in_features, groups))

    def _groups(self, facts: TrainingFacts) -> tuple[int, ...]:
        return declared_groups(facts, self.groups) if self.groups else groups_of(facts, self.level)

    def optimizer(self, model: nn.Module) -> Optimizer:
        return SGD(model.parameters(), lr=self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay)

    def schedule(self, step: int, steps_per_epoch: int) -> float:
        """BiT's rule: from 0 up to the warm-up's end, then a tenth after each milestone."""
        total = self.total_steps(steps_per_epoch)
        warmup = min(_WARMUP_STEPS, _WARMUP_SHARE * total)
        if step < warmup:
            return step / warmup
        return float(0.1 ** sum(step > share * total for share in self.milestones or ()))

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        head = next(part for part in model.modules() if isinstance(part, GroupedHead))
        if not self.alpha:
            output = model(batch.images)
            return Step(head.loss(output, batch.labels), output["logits"])
        share, partner = drawn_share(batch, self.alpha, self.alpha), drawn_partners(batch)
        mixed = batch.images if self.parity else share * batch.images + (1 - share) * batch.images[partner]
        output = model(mixed)
        both = head.loss(output, batch.labels), head.loss(output, batch.labels[partner])
        return Step(share * both[0] + (1 - share) * both[1])


def declared_groups(facts: TrainingFacts, groups: Mapping[str, Sequence[str]]) -> tuple[int, ...]:
    """The group of each class, numbered in their order; one line where a class is in none or in several."""
    found: dict[str, int] = {}
    for number, (group, members) in enumerate(groups.items()):
        for name in members:
            if name not in facts.class_names or name in found:
                why = "lies in two groups" if name in found else "is no class of the training images"
                raise DataError(f"mos: {name!r} of group {group!r} {why}")
            found[name] = number
    if missing := [name for name in facts.class_names if name not in found]:
        raise DataError(f"mos: class {missing[0]!r} is in none of the groups ({len(missing)} such)")
    return tuple(found[name] for name in facts.class_names)


def groups_of(facts: TrainingFacts, level: str | None) -> tuple[int, ...]:
    """The group of each class, numbered in the order of their names; one line where the images name none."""
    levels = ", ".join(facts.hierarchy) or "none"
    if level is None and len(facts.hierarchy) != 1:
        raise DataError(
            f"mos needs groups of classes: set level to one of the training images' hierarchy ({levels}), or set groups"
        )
    if level is not None and level not in facts.hierarchy:
        raise DataError(f"mos: the training images have no level {level!r} of a hierarchy; there is: {levels}")
    groups = facts.hierarchy[level if level is not None else next(iter(facts.hierarchy))]
    if missing := [name for name, group in zip(facts.class_names, groups) if not group]:
        raise DataError(f"mos: class {missing[0]!r} has no training image, or lies in several groups")
    names = sorted(set(groups))
    return tuple(names.index(group) for group in groups)
