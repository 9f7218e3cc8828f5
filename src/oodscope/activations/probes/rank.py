"""The probe behind RankFeat: logits after the strongest direction was taken out of a stage's maps."""

import torch
from torch import Tensor

from oodscope.activations.probes.probe import Passes, Probe
from oodscope.models.classifier.anatomy import altered_map

STAGES = 2
"""How many of the last stages are altered, one at a time."""


class RankReducedLogits(Probe):
    r"""Logits of the network when a stage's map, as a matrix channels x pixels, loses its first singular part.

    .. math:: F' = F - \sigma_1 u_1 v_1^\top

    Song, Sebe & Wang, "RankFeat: Rank-1 Feature Removal for Out-of-distribution Detection", NeurIPS 2022. The
    column is ``[N, 2, C]``: the last stage altered, then the one before it. One forward pass each.
    """

    @property
    def column(self) -> str:
        return "rank_reduced_logits"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset(f"{self.column}, stage {stage}" for stage in range(1, STAGES + 1))

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, passes: Passes) -> Tensor:
        stages = passes.classifier.anatomy.stages
        logits = []
        for back in range(1, STAGES + 1):
            with altered_map(passes.classifier.model, stages[-min(back, len(stages))], without_first_rank):
                logits.append(passes.classifier.forward(passes.images).logits)
        return torch.stack(logits, dim=1)


def without_first_rank(maps: Tensor) -> Tensor:
    """Maps ``[N, C, H, W]`` minus their best approximation of rank one.

    The first right singular vector is the first eigenvector of the smaller Gram matrix; that one is found in
    float64 from a full decomposition, because power iteration stalls where two singular values are close.
    """
    flat = maps.flatten(2)
    precise = flat.double() if flat.device.type != "mps" else flat
    wide = precise.shape[1] < precise.shape[2]
    gram = precise @ precise.mT if wide else precise.mT @ precise
    first = torch.linalg.eigh(gram).eigenvectors[:, :, -1:]
    part = first @ (first.mT @ precise) if wide else (precise @ first) @ first.mT
    rest: Tensor = (precise - part).to(maps.dtype)
    return rest.view_as(maps)
