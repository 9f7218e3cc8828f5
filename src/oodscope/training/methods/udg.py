"""UDG: known images hidden among the outliers are found by clustering, and get their labels."""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from oodscope.base.errors import ModelError
from oodscope.base.paper import Paper
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.loop.randomness import generator
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import Batch, Step, TrainingFacts

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Stream, Streams

OUTLIER = -1
"""The label of an outlier that no class claims."""

_WALK, _PIECE, _ROUNDS, _COMPONENTS, _SPREAD = 256, 8192, 20, 256, 0.01


class ClusteredHead(nn.Module):
    """The linear head, one for the clusters beside it, and what clustering said of every image.

    The clusters, labels and weights are buffers of the sizes of the sets, there from the beginning, so that a training
    that was stopped goes on with them.
    """

    def __init__(self, main: nn.Linear, clusters: int, n_train: int, n_ood: int) -> None:
        super().__init__()
        self.main = main
        self.cluster = nn.Linear(main.in_features, clusters)
        for name, size in (("of_train", n_train), ("of_ood", n_ood)):
            self.register_buffer(name, torch.zeros(size, dtype=torch.long))
        self.register_buffer("label_of_ood", torch.full((n_ood,), OUTLIER))
        self.register_buffer("weight_of_ood", torch.ones(n_ood))
        self.register_buffer("weight_of_cluster", torch.ones(clusters))

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        sizes = {"n_train": len(self.get_buffer("of_train")), "n_ood": len(self.get_buffer("of_ood"))}
        return {"main": self.main, "clusters": self.cluster.out_features, **sizes}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        return {"logits": self.main(features), "clusters": self.cluster(features), "features": features}


class UDG(CrossEntropy):
    r"""Cross-entropy, a flat prediction on outliers, and the cluster of every image as a second task.

    .. math:: L = \mathrm{CE}(z, \text{labels}) + \lambda\,\overline{v\,\mathrm{CE}(u, p)}_{\text{outliers}}
              + \mu\,\overline{w_k\,\mathrm{CE}(a, k)}

    Before each epoch the features of all images are whitened and clustered. In a cluster where one label has more than
    ``purity`` of all images, the outliers take it: that of a class, or none. In all others they have none. Outliers in
    clusters that are so nearly pure of outliers count :math:`v =` ``enhance`` times in the mean; in OpenOOD's code that
    cannot happen. Clusters weigh by one over the root of their size, 1 on average over those that are not empty. Known
    images and outliers go through the network one after the other, so that batch normalisation keeps them apart. The
    score is ``msp``.

    Parameters
    ----------
    weight : :math:`\lambda`.
    cluster_weight : :math:`\mu`.
    clusters : at most so many; never more than one for fifty images.
    purity : share of one label above which a cluster is pure.
    enhance : what an outlier in a pure cluster of outliers counts.
    """

    name: ClassVar[str] = "udg"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Semantically Coherent Out-of-Distribution Detection", "Yang et al.", "ICCV 2021"
    )
    cost: ClassVar[float | None] = 3.0
    detectors: ClassVar[tuple[str, ...]] = ("msp",)

    ood_batch_size: int = Field(default=256, gt=0)
    weight: float = Field(default=0.5, ge=0)
    cluster_weight: float = Field(default=0.1, ge=0)
    clusters: int = Field(default=1000, gt=1)
    purity: float = Field(default=0.8, gt=0, lt=1)
    enhance: float = Field(default=2.0, ge=1)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        count = max(2, min(self.clusters, (facts.n_train + facts.n_ood) // 50))
        return replace_layer(model, lambda last: ClusteredHead(last, count, facts.n_train, facts.n_ood))

    @torch.no_grad()
    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        assert streams.ood is not None  # there is always one where ood_batch_size is above zero
        head = _head(model)
        features = torch.cat([_features(model, streams.train), _features(model, streams.ood)])
        draws = generator("clusters", self.seed, epoch)
        assigned = k_means(whitened(features), head.cluster.out_features, draws)
        known = len(streams.train)
        labels = torch.cat([streams.train.labels, head.get_buffer("label_of_ood")])
        label, weight = self.judged(assigned, labels, known)
        head.get_buffer("of_train").copy_(assigned[:known])
        head.get_buffer("of_ood").copy_(assigned[known:])
        head.get_buffer("label_of_ood").copy_(label)
        head.get_buffer("weight_of_ood").copy_(weight)
        head.get_buffer("weight_of_cluster").copy_(cluster_weights(assigned, head.cluster.out_features))
        head.cluster.weight.copy_(_SPREAD * torch.randn(head.cluster.weight.shape, generator=draws))
        head.cluster.bias.zero_()

    def judged(self, assigned: Tensor, labels: Tensor, known: int) -> tuple[Tensor, Tensor]:
        """The new label of each outlier, and what it counts, from the clusters of all images.

        Parameters
        ----------
        labels : of all images, the ``known`` first; those of outliers as the epoch before left them.
        """
        classes = int(labels.max()) + 1
        votes = torch.zeros(int(assigned.max()) + 1, classes + 1, device=labels.device)
        # the last column is that of no class
        votes.index_put_((assigned, labels % (classes + 1)), torch.ones((), device=labels.device), accumulate=True)
        share, winner = (votes / votes.sum(dim=1, keepdim=True).clamp(min=1)).max(dim=1)
        pure = share > self.purity
        new = torch.where(pure & (winner < classes), winner, OUTLIER)
        counts = torch.where(pure & (winner == classes), self.enhance, 1.0)
        return new[assigned[known:]], counts[assigned[known:]]

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.ood is not None  # there is always one where ood_batch_size is above zero
        head = _head(model)
        known, other = model(batch.images), model(batch.ood.images)
        labels = head.get_buffer("label_of_ood")[batch.ood.rows]
        outlier = labels == OUTLIER
        weight = head.get_buffer("weight_of_ood")[batch.ood.rows] * outlier
        logits = torch.cat([known["logits"], other["logits"]])
        named = cross_entropy(logits, torch.cat([batch.labels, labels]), ignore_index=OUTLIER)
        flat = -other["logits"].log_softmax(dim=1).mean(dim=1)
        flat = (weight * flat).sum() / outlier.sum().clamp(min=1)
        clusters = torch.cat([head.get_buffer("of_train")[batch.rows], head.get_buffer("of_ood")[batch.ood.rows]])
        each = cross_entropy(torch.cat([known["clusters"], other["clusters"]]), clusters, reduction="none")
        grouped = (head.get_buffer("weight_of_cluster")[clusters] * each).mean()
        return Step(named + self.weight * flat + self.cluster_weight * grouped, known["logits"])


def cluster_weights(assigned: Tensor, count: int) -> Tensor:
    """What an image of each cluster counts: one over the root of its size, 1 on average over those with images."""
    sizes = assigned.bincount(minlength=count)
    weights = torch.where(sizes > 0, sizes.clamp(min=1).float().rsqrt(), 0.0)
    return weights * (sizes > 0).sum() / weights.sum()


def whitened(features: Tensor) -> Tensor:
    """The first principal components with variance 1, as unit vectors; components without variance are left out."""
    centred = (features - features.mean(dim=0)).double().cpu()
    values, vectors = torch.linalg.eigh(centred.T @ centred / len(centred))
    kept = (values > 1e-9 * values[-1].clamp(min=torch.finfo(torch.float64).tiny)).nonzero().flatten()[-_COMPONENTS:]
    made = centred @ vectors[:, kept] / values[kept].sqrt()
    return normalize(made).float().to(features.device)


def k_means(points: Tensor, count: int, draws: torch.Generator) -> Tensor:
    """The cluster of each of the unit ``points`` after twenty rounds, from random points as first centres."""
    centres = points[torch.randperm(len(points), generator=draws)[:count].to(points.device)]
    assigned = torch.zeros(len(points), dtype=torch.long, device=points.device)
    for _ in range(_ROUNDS):
        lengths = centres.square().sum(dim=1)
        assigned = torch.cat([(lengths - 2 * part @ centres.T).argmin(dim=1) for part in _pieces(points)])
        sizes = assigned.bincount(minlength=len(centres))
        sums = torch.zeros_like(centres).index_add_(0, assigned, points)
        centres = torch.where(sizes[:, None] > 0, sums / sizes[:, None].clamp(min=1), centres)
    return assigned


def _pieces(points: Tensor) -> list[Tensor]:
    return [points[start : start + _PIECE] for start in range(0, len(points), _PIECE)]


def _features(model: nn.Module, stream: "Stream") -> Tensor:
    return torch.cat([model(batch.images)["features"].float() for batch in stream.walk(_WALK)])


def _head(model: nn.Module) -> ClusteredHead:
    head = next((part for part in model.modules() if isinstance(part, ClusteredHead)), None)
    if head is None:
        raise ModelError("this network was not prepared by the recipe 'udg'")
    return head
