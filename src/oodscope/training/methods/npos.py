"""NPOS: outliers around the boundary points of each class, without a Gaussian; a small network learns them apart."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize
from torch.optim import Optimizer

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import EMBEDDING
from oodscope.training.methods.cider import CIDER
from oodscope.training.methods.prototypes import Prototypes, prototypes_of
from oodscope.training.methods.queues import ClassQueues
from oodscope.training.recipe import Batch, Step, TrainingFacts

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams

_HIDDEN = 128
_SLOW = 0.1
"""The learning rate of the small network, as a share of all others'."""


class BoundaryLayer(Prototypes):
    """Prototypes, the latest features of every class, and a small network that says whether a feature is real."""

    def __init__(self, width: int, num_classes: int, size: int, temperature: float, queue: int) -> None:
        super().__init__(width, num_classes, size, temperature)
        self.queues = ClassQueues.of("npos", num_classes, queue, width)
        self.is_real = nn.Sequential(nn.Linear(width, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 1))

    def facts(self) -> dict[str, Any]:
        inherited = {name: value for name, value in super().facts().items() if name != "each"}
        return {**inherited, "queue": self.queues.features.shape[1]}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        return {**super().forward(features), "features": features}


class NPOS(CIDER):
    r"""CIDER's loss, and real features apart from outliers that were made around the boundary of each class.

    .. math:: L = w_1 L_{\mathrm{compact}} + w_2 L_{\mathrm{disperse}} + \lambda\,\mathrm{BCE}(\phi(h), 1)
              + \lambda\,\mathrm{BCE}(\phi(v), 0)

    with both terms of :math:`\phi` as one mean. From ``outlier_epoch`` on, once the queues of all classes are full: of
    each queue the ``boundary`` features farthest from their ``neighbours``-th neighbour are boundary points; around
    ``centres`` of them ``noise`` Gaussian points are drawn, and the ``keep_of_noise`` farthest from the queue are the
    outliers. Distances are those of unit features; the noise is added before that. In OpenOOD's code and the authors'
    the distances are matched to other points than they were computed of, and the queues begin every epoch with zeros.
    The score is ``knn``.

    Parameters
    ----------
    weight : :math:`\lambda`.
    outlier_epoch : the first epoch, counted from 0, with outliers.
    queue : features kept of each class.
    neighbours, boundary, centres, noise, keep_of_noise : of the synthesis, above.
    spread : standard deviation of the noise.
    parity : keep the outliers of mismatched distances and empty the queues before every epoch, as the code behind the
        published rows does; places that are still empty are then the first boundary points.
    """

    name: ClassVar[str] = "npos"
    paper: ClassVar[Paper | None] = Paper("Non-Parametric Outlier Synthesis", "Tao et al.", "ICLR 2023")

    batch_size: int = Field(default=256, gt=0)
    learning_rate: float = Field(default=0.1, gt=0)
    compactness: float = Field(default=1.0, ge=0)
    dispersion: float = Field(default=0.5, ge=0)
    weight: float = Field(default=0.1, ge=0)
    outlier_epoch: int = Field(default=40, ge=0)
    queue: int = Field(default=1000, gt=1)
    neighbours: int = Field(default=300, gt=0)
    boundary: int = Field(default=200, gt=0)
    centres: int = Field(default=2, gt=0)
    noise: int = Field(default=600, gt=0)
    keep_of_noise: int = Field(default=200, gt=0)
    spread: float = Field(default=0.1, gt=0)
    parity: bool = False

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        for small, large in (("neighbours", "queue"), ("boundary", "queue"), ("centres", "boundary")):
            given, bound = getattr(self, small), getattr(self, large)
            if given > bound - (small == "neighbours"):
                raise ValueError(f"npos: {small}={given} is too many for {large}={bound}")
        if self.keep_of_noise > self.noise:
            raise ValueError(f"npos: keep_of_noise={self.keep_of_noise} is too many for noise={self.noise}")
        return self

    def layer(self, width: int, facts: TrainingFacts) -> Prototypes:
        return BoundaryLayer(width, facts.num_classes, self.size, self.temperature, self.queue)

    def optimizer(self, model: nn.Module) -> Optimizer:
        return self.descent(model, _layer(model).is_real.parameters(), lr=_SLOW * self.learning_rate)

    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        super().start_epoch(model, epoch, streams)
        if self.parity:
            _layer(model).queues.features.zero_()  # what was pushed still counts, so they count as full

    def phase(self, epoch: int) -> int:
        """Whether outliers are made."""
        return int(epoch >= self.outlier_epoch)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.draws is not None, "the loop gives each batch its random numbers"
        output, layer = model(batch.images), _layer(model)
        step = self.embedded_loss(model, output[EMBEDDING], batch)
        features = output["features"]
        layer.queues.push(features.detach(), batch.labels.repeat(self.views))
        if not self.phase(batch.epoch):
            return step
        with torch.autocast(features.device.type, enabled=False):
            made = self.outliers_of(layer.queues.features, batch.draws)
            apart = real_or_made(layer.is_real(features.float()), layer.is_real(made))
        return step._replace(loss=step.loss + self.weight * torch.where(layer.queues.full, apart, 0.0))

    @torch.no_grad()
    def outliers_of(self, queues: Tensor, draws: torch.Generator) -> Tensor:
        """Outliers of all classes, ``[C * centres * keep_of_noise, D]``, from features ``[C, Q, D]``."""
        width, device = queues.shape[2], draws.device
        noise = self.spread * torch.randn(self.noise, width, generator=draws, device=device).to(queues.device)
        made = []
        for queue in queues:
            unit = normalize(queue)
            edge = farthest(unit, unit, self.neighbours + 1, self.boundary)  # the nearest of a row is the row itself
            chosen = torch.rand(self.boundary, generator=draws, device=device).argsort()[: self.centres]
            points = queue[edge[chosen.to(queues.device)]][:, None] + noise
            similar = similarity(normalize(points.flatten(0, 1)), unit, self.neighbours)
            # the released code reads the list of all points' noise as if it lay sample by sample
            similar = similar.view(-1, self.centres).T if self.parity else similar.view(self.centres, -1)
            kept = similar.topk(self.keep_of_noise, dim=1, largest=False).indices
            made.append(points.gather(1, kept[:, :, None].expand(-1, -1, width)).flatten(0, 1))
        return torch.cat(made)


def farthest(points: Tensor, bank: Tensor, neighbours: int, count: int) -> Tensor:
    """Rows of the ``count`` unit ``points`` that are farthest from their ``neighbours``-th nearest of ``bank``."""
    return similarity(points, bank, neighbours).topk(count, largest=False).indices


def similarity(points: Tensor, bank: Tensor, neighbours: int) -> Tensor:
    """The cosine of unit ``points`` and their ``neighbours``-th nearest of ``bank``; what has no direction has none.

    Zeros, of which only the released form has any, are farther than everything.
    """
    cosines = (points @ bank.T).topk(neighbours, dim=1).values[:, -1]  # of unit vectors the nearest is most similar
    return cosines.masked_fill(~points.any(dim=1), -torch.inf)


def real_or_made(real: Tensor, made: Tensor) -> Tensor:
    """The mean binary cross-entropy of the logits of real features, towards 1, and of made ones, towards 0."""
    logits = torch.cat([real, made]).flatten()
    is_real = torch.arange(len(logits), device=logits.device) < len(real)
    return binary_cross_entropy_with_logits(logits, is_real.to(logits))


def _layer(model: nn.Module) -> BoundaryLayer:
    layer = prototypes_of(model)
    assert isinstance(layer, BoundaryLayer), "prepared by this recipe"
    return layer
