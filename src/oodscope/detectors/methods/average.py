"""Average: several detectors as one, each by the rank of its score among held-out images."""

import logging
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Capabilities, Cost, Detector, Needs
from oodscope.detectors.registry import create_detector

_LOG = logging.getLogger(__name__)

COMBINATIONS = ("rank", "sum_z")
CLOSE = 1e-5
"""Scores closer than this, in standard deviations, count as equal: rounding must not order them."""


class _OfMembers:
    """What a combination has from its members; of the class, from those that it has by default."""

    def __init__(self, join: Callable[[list[Detector]], Any]) -> None:
        self.join = join

    def __get__(self, combination: "Average | None", owner: "type[Average]") -> Any:
        return self.join((owner() if combination is None else combination)._new_members())


class Average(Detector):
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
    needs = _OfMembers(lambda members: reduce(or_, (each.needs for each in members), Needs.HELD_OUT))
    optional = _OfMembers(lambda members: reduce(or_, (each.optional for each in members)))
    cost = _OfMembers(lambda members: max((each.cost for each in members), key=list(Cost).index))
    signed_features_ok = _OfMembers(lambda members: all(each.signed_features_ok for each in members))
    outputs = _OfMembers(lambda members: tuple({name: 0 for each in members for name in each.outputs}))
    paper = Paper("Average of mid-rank probabilities", "a combination of this package", "unpublished")

    def __init__(self, members: str = "ebo,knn", combine: str = "rank") -> None:
        self.members = members
        self.combine = combine

    def _new_members(self) -> list[Detector]:
        """The members, not fitted."""
        names = [name.strip() for name in self.members.split(",") if name.strip()]
        if len(names) < 2 or self.name in names:
            raise DetectorError(f"average: members must be two detectors or more, separated by commas, not {names}")
        return [create_detector(name) for name in names]

    def _fitted_members(self) -> list[Detector]:
        """The members with the state that ``_fit`` took from them."""
        members, state = self._new_members(), self._state()
        for number, member in enumerate(members):
            prefix = _prefix(number)
            for key in state:
                if key.startswith(prefix):
                    setattr(member, key.removeprefix(prefix), state[key])
            member.to(self.device)
        return members

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
        members = self._new_members()
        state: dict[str, Any] = {}
        held_out = []
        for number, member in enumerate(members):
            member.to(self.device).fit(train, val, ood_val=ood_val)
            state |= {f"{_prefix(number)}{key}": value for key, value in member._state().items()}
            held_out.append(member.score(val).sort().values)
        for key, value in state.items():
            setattr(self, key, value)
        self.held_out_ = torch.stack(held_out)
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


def _prefix(number: int) -> str:
    return f"member{number}_"
