"""Ensemble: several networks that vote as one."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.models.classifier.network import returned_tensor

MEMBER_LOGITS = "member_logits"
"""Key under which a network may return the logits of its members, ``[N, M, C]``."""


class Ensemble(nn.Module):
    r"""Networks for the same classes and the same preprocessing, whose probabilities are averaged.

    .. math:: z_c(x) = \log\frac1M\sum_m \mathrm{softmax}_c\bigl(z^{(m)}(x)\bigr)

    It is a network like any other: ``Classifier(Ensemble([first, second, third]), transform)``. One pass
    through it is one pass through each member; detectors of disagreement read the members' logits.

    Parameters
    ----------
    members : two networks or more.
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        if len(members) < 2:
            raise ModelError(f"an ensemble needs two networks or more, not {len(members)}")
        self.members = nn.ModuleList(members)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        logits = torch.stack([returned_tensor(member(images)) for member in self.members], dim=1)
        mean = logits.log_softmax(dim=2).logsumexp(dim=1) - math.log(len(self.members))
        return {"logits": mean, MEMBER_LOGITS: logits}
