"""Layers: one feature detector at several stages of the network, and their scores as one."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import PooledMaps
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.combination import Combination, OfMembers, needs_of, reads_features_alone
from oodscope.detectors.registry import create_detector

AGGREGATES = ("mean", "fisher", "max")


class Layers(Combination):
    r"""A detector of features, fitted to the pooled map of each stage.

    .. math:: s(x) = \frac1L\sum_l \frac{s_l(x)-\bar v_l}{\sigma_{v_l}} \quad\text{(mean)}, \qquad
              s(x) = -2\sum_l\log p_l(x), \quad p_l(x) = \frac{1+\#\{v_{li}\ge s_l(x)\}}{n+1} \quad\text{(fisher)}

    with the scores :math:`v_{li}` that stage l gives the held-out images. ``max`` is the largest of the standardised
    scores. Fisher's sum has few values where few images are held out: all images beyond the last of them tie.

    Parameters
    ----------
    detector : a name; it must need nothing but features (knn, mds, mahalanobis_pp, rmds, maha_free, ...).
    stages : ``all``, or numbers from 0 on, separated by commas.
    aggregate : ``mean``, ``fisher`` or ``max``.
    """

    name = "layers"
    paper = Paper("oodeel 0.4: aggregation of feature detectors over layers", "DEEL team", "software, 2024")
    needs = OfMembers(lambda members: needs_of(members) & ~Needs.FEATURES | Needs.MAPS | Needs.TRAIN | Needs.HELD_OUT)

    def __init__(self, detector: str = "knn", stages: str = "all", aggregate: str = "mean") -> None:
        self.detector = detector
        self.stages = stages
        self.aggregate = aggregate

    def _new_members(self) -> list[Detector]:
        member = create_detector(self.detector)
        if not reads_features_alone(member):
            raise DetectorError(f"layers: {self.detector} needs more than features, and stages have nothing else")
        return [create_detector(self.detector) for _ in getattr(self, "stages_", [0])]

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (PooledMaps(),)

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.aggregate not in AGGREGATES:
            raise DetectorError(f"layers: aggregate must be one of {', '.join(AGGREGATES)}, not {self.aggregate!r}")
        column = PooledMaps().column
        self.stages_ = self._chosen(train.shape(column)[1])
        members, held_out = self._new_members(), []
        for stage, member in zip(self.stages_, members):
            known = val.as_features(column, stage)
            member.to(self.device).fit(known if val is train else train.as_features(column, stage), known)
            held_out.append(member.score(known).sort().values)
        self._keep(members)
        self.held_out_ = torch.stack(held_out)
        spread, self.centre_ = torch.std_mean(self.held_out_, dim=1, correction=0)
        self.spread_ = torch.where(spread > 0, spread, torch.ones_like(spread))

    def _chosen(self, count: int) -> list[int]:
        if self.stages == "all":
            return list(range(count))
        try:
            numbers = [int(each) for each in self.stages.split(",")]
        except ValueError:
            numbers = []
        if not numbers or not all(0 <= number < count for number in numbers):
            raise DetectorError(
                f"layers: stages must be 'all' or numbers from 0 to {count - 1}, separated by commas, "
                f"not {self.stages!r}"
            )
        return numbers

    def _score(self, batch: Activations) -> Tensor:
        members, column = self._fitted_members(), PooledMaps().column
        parts = [batch.as_features(column, stage) for stage in self.stages_]
        scores = torch.stack([member.score_batch(part) for member, part in zip(members, parts)])
        if self.aggregate == "fisher":
            count = self.held_out_.shape[1]
            reached = count - torch.searchsorted(self.held_out_, scores.contiguous())
            return -2 * ((1 + reached.to(scores)) / (count + 1)).log().sum(dim=0)
        standard = (scores - self.centre_.unsqueeze(1)) / self.spread_.unsqueeze(1)
        return standard.mean(dim=0) if self.aggregate == "mean" else standard.amax(dim=0)
