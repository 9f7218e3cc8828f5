"""Average: several detectors as one, each by the rank of its score among held-out images."""

import logging

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Capabilities, Detector, Needs
from oodscope.detectors.combination import Combination, OfMembers, needs_of
from oodscope.detectors.registry import create_detector

_LOG = logging.getLogger(__name__)

COMBINATIONS = ("rank", "sum_z")
CLOSE = 1e-5
"""Scores closer than this, in standard deviations, count as equal: rounding must not order them."""


class Average(Combination):
    r"""Mean over its members of the share of held-out images that score lower.

    .. math:: s(x) = \frac1M\sum_m F_m\bigl(s_m(x)\bigr), \qquad
              F_m(t) = \frac{\#\{v_i<t\} + \tfrac12\#\{v_i=t\}}{n}

    with the scores :math:`v_i` that member m gives the held-out images. Above the largest and below the smallest of
    them, where all ranks are equal, :math:`F_m` goes on as :math:`1 + (t-\max v)/\sigma_v` and
    :math:`-(\min v-t)/\sigma_v`. Held-out images are needed: members have adapted to the training images, among which
    most others would stand at the last rank.

    Parameters
    ----------
    members : names of detectors, separated by commas; ``react+msp`` is one.
    combine : ``rank`` as above; ``sum_z`` adds :math:`(s_m-\bar v)/\sigma_v`.
    """

    name = "average"
    needs = OfMembers(lambda members: needs_of(members) | Needs.HELD_OUT)
    paper = Paper("Average of mid-rank probabilities", "a combination of this package", "unpublished")

    def __init__(self, members: str = "ebo,knn", combine: str = "rank") -> None:
        self.members = members
        self.combine = combine

    def _new_members(self) -> list[Detector]:
        names = [name.strip() for name in self.members.split(",") if name.strip()]
        if len(names) < 2 or self.name in names:
            raise DetectorError(f"average: members must be two detectors or more, separated by commas, not {names}")
        return [create_detector(name) for name in names]

    @property
    def probes(self) -> tuple[Probe, ...]:
        members = self._fitted_members() if self.fitted else self._new_members()
        probes = [probe for member in members for probe in member.probes]
        return tuple({probe.column: probe for probe in probes}.values())

    def unmet_requirement(self, capabilities: Capabilities) -> str | None:
        reasons = {member.name: member.unmet_requirement(capabilities) for member in self._new_members()}
        own = (f"its member {name} {reason}" for name, reason in reasons.items() if reason)
        return next(own, super().unmet_requirement(capabilities))

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.combine not in COMBINATIONS:
            raise DetectorError(f"average: combine must be one of {', '.join(COMBINATIONS)}, not {self.combine!r}")
        if val is train:
            _LOG.warning("average: no held-out images (id_val); ranks among training images tie most others at the end")
        members = [each.to(self.device).fit(train, val, ood_val=ood_val) for each in self._new_members()]
        self._keep(members)
        self.held_out_ = torch.stack([member.score(val).sort().values for member in members])
        spread, self.centre_ = torch.std_mean(self.held_out_, dim=1, correction=0)
        self.spread_ = torch.where(spread > 0, spread, torch.ones_like(spread))

    def _score(self, batch: Activations) -> Tensor:
        scores = torch.stack([member.score_batch(batch) for member in self._fitted_members()])
        spread = self.spread_.unsqueeze(1)
        if self.combine == "sum_z":
            return ((scores - self.centre_.unsqueeze(1)) / spread).sum(dim=0)
        below = torch.searchsorted(self.held_out_, (scores - CLOSE * spread).contiguous())
        up_to = torch.searchsorted(self.held_out_, (scores + CLOSE * spread).contiguous(), right=True)
        ranks = (below + up_to).to(scores) / (2 * self.held_out_.shape[1])
        least, most = self.held_out_[:, :1], self.held_out_[:, -1:]
        beyond = (scores - most).clamp(min=0) - (least - scores).clamp(min=0)
        # within rounding of an end, the rank stands
        outside = beyond.abs() > CLOSE * spread
        return (ranks + torch.where(outside, beyond / spread, torch.zeros_like(beyond))).mean(dim=0)
