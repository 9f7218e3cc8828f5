"""CSI, second stage: class, turn and both together, read off the features of the first stage."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, Optimizer

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import JOINT, ROTATION, TURNS, Branches
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.augment.reading import AnyAugment
from oodscope.training.loop.parts import Parts
from oodscope.training.methods.cross_entropy import CrossEntropy, label_loss
from oodscope.training.methods.csi import HEAD_RATE, TURNED_VIEW, ContrastHead, turn_labels, turned
from oodscope.training.recipe import Batch, Role, Step, TrainingFacts


class CSIHeads(CrossEntropy):
    r"""Three linear heads on frozen features: of the class, of the quarter turn, and of both together.

    .. math:: L = \mathrm{CE}(z(x), y) + \frac14\sum_k\mathrm{CE}(r(T_k x), k)
              + \frac14\sum_k\mathrm{CE}(j(T_k x), (k, y))

    The second stage of ``csi``, whose projection it leaves away; of any other network it takes the features as they
    are. The frozen part keeps its statistics. The score averages the joint head over the turns (detector ``csi``).
    The class head learns by Adam, the two others by SGD without momentum, at rates that fall together.
    """

    name: ClassVar[str] = "csi_heads"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "CSI: Novelty Detection via Contrastive Learning on Distributionally Shifted Instances",
        "Tack et al.",
        "NeurIPS 2020",
    )
    cost: ClassVar[float | None] = 4 / 3  # four passes forward, none back
    detectors: ClassVar[tuple[str, ...]] = ("csi", "msp")

    momentum: float = Field(default=0.0, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    decay: Literal["cosine", "steps", "constant"] = "steps"
    milestones: tuple[float, ...] | None = (0.6, 0.75, 0.9)
    augment: AnyAugment = TURNED_VIEW

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        model.requires_grad_(False)

        def heads(main: nn.Linear) -> nn.Module:
            widths = {ROTATION: TURNS, JOINT: TURNS * facts.num_classes}
            fresh = {name: nn.Linear(main.in_features, width) for name, width in widths.items()}
            return Branches(nn.Linear(main.in_features, facts.num_classes), fresh)

        for path, part in model.named_modules():
            if isinstance(part, ContrastHead):
                layer = heads(part.main)
                if not path:
                    return layer
                model.set_submodule(path, layer)
                return model
        return replace_layer(model, heads)

    def view(self, pixels: Tensor, generator: torch.Generator, role: Role) -> Tensor:
        return self.augment(turned(pixels, generator), generator)

    def optimizer(self, model: nn.Module) -> Optimizer:
        layer = next(part for part in model.modules() if isinstance(part, Branches))
        others = SGD(
            layer.branches.parameters(),
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )
        return Parts([others, Adam(layer.main.parameters(), lr=HEAD_RATE)])

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        output = model(batch.images)
        upright = output["logits"][: len(batch.labels)]
        count = len(batch.images)
        turn = cross_entropy(output[ROTATION], turn_labels(torch.zeros_like(batch.labels), 1, count))
        both = cross_entropy(output[JOINT], turn_labels(batch.labels, upright.shape[1], count))
        return Step(label_loss(upright, batch) + turn + both, upright)
