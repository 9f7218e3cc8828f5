"""MFS: a distance over those features alone in which mixtures of images differ most from images."""

import math

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.mixed import MixedFeatures
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.combination import Combination, OfMembers, needs_of, reads_features_alone
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.registry import create_detector


class MFS(Combination):
    r"""A detector of features, fitted to the share of them that marginal distances select.

    .. math:: w_j = \frac1{|A|}\sum_{\alpha\in A}\frac1n\sum_{i=1}^n
              \frac{\bigl|h_{(i)j} - g^\alpha_{(i)j}\bigr|}{\max_i h_{ij} - \min_i h_{ij}}, \qquad
              g^\alpha_i = h\bigl(\alpha x_i + (1-\alpha)x'_i\bigr), \quad A = \{.25, .5, .75\}

    over the n held-out images, :math:`h_{(i)j}` the i-th smallest value of feature j: the Wasserstein distance between
    its values of images and of mixtures, after scaling by its range. The :math:`\lceil\kappa D\rceil` features of the
    largest :math:`w_j` are kept. As released, :math:`x'` is a validation outlier; here it is a held-out image of
    another class, in every track, so that no outlier is needed. Fitting costs three passes for each held-out image;
    scoring costs none.

    Parameters
    ----------
    detector : a name; it must need nothing but features (``mds``, ``mahalanobis_pp``, ``knn``, ...).
    share : :math:`\kappa`, the share of the features that is kept.
    seed : which image of another class each is mixed with.
    """

    name = "mfs"
    paper = Paper("OpenMIBOOD: marginal feature selection", "OpenMIBOOD authors", "software, 2026")
    needs = OfMembers(lambda members: needs_of(members) | Needs.FEATURES | Needs.TRAIN | Needs.HELD_OUT | Needs.COPIES)
    grid = {"share": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)}

    def __init__(self, detector: str = "mahalanobis_pp", share: float = 0.5, seed: int = 0) -> None:
        self.detector = detector
        self.share = share
        self.seed = seed

    def _new_members(self) -> list[Detector]:
        member = create_detector(self.detector)
        if not reads_features_alone(member):
            raise DetectorError(f"mfs: {self.detector} needs more than features, of which a part is to be kept")
        return [member]

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Mixtures, of the held-out images alone and only until it is fitted."""
        return () if self.fitted else (MixedFeatures(self.seed),)

    def _columns(self) -> list[str]:
        return ["features"]

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if not 0 < self.share <= 1:
            raise DetectorError(f"mfs: share must lie in (0, 1], not {self.share}")
        column = MixedFeatures(self.seed).column
        held_out = next((part for part in (val, train) if column in part), None)
        if held_out is None:
            raise DetectorError(f"mfs: needs {column} of held-out images, which these activations do not hold")
        distances = _distances(precise(held_out.features.to(self.device)), held_out[column].to(self.device))
        count = max(1, math.ceil(round(self.share * len(distances), 9)))
        kept = distances.argsort(descending=True, stable=True)[:count].sort().values
        (member,) = self._new_members()
        known = train.as_features("features", kept)
        member.to(self.device).fit(known, known if val is train else val.as_features("features", kept))
        self._keep([member])
        self.kept_ = kept

    def _score(self, batch: Activations) -> Tensor:
        (member,) = self._fitted_members()
        return member.score_batch(batch.as_features("features", self.kept_))


def _distances(features: Tensor, mixed: Tensor) -> Tensor:
    """Of each feature, the mean distance of its sorted values, in units of its range; 0 where it never changes."""
    ranked = features.sort(dim=0).values
    others = [precise(mixed[:, place]).sort(dim=0).values for place in range(mixed.shape[1])]
    apart = [(ranked - other).abs().mean(dim=0) for other in others]
    width = ranked[-1] - ranked[0]
    return torch.where(width > 0, torch.stack(apart).mean(dim=0) / torch.where(width > 0, width, 1.0), 0.0)
