"""CSI without labels: similarity to the nearest training image and certainty of the turn, in four turns."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.turns import TurnedViews
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.bank import picked_rows, remembered
from oodscope.detectors.math.numbers import precise
from oodscope.models.classifier.branches import PROJECTION, ROTATION, TURNS


class CSIUnlabelled(Detector):
    r"""Minus the weighted similarity to the nearest training image and the logit of the true turn, mean over turns.

    .. math:: s(x) = -\frac14\sum_{k=0}^3\Bigl[w_k\max_m\langle f_k(x), \hat a_{km}\rangle + v_k\,r_k(x)\Bigr]

    with projections :math:`f_k` and turn logits :math:`r_k` of the image in turn :math:`k`, averaged over ``views``
    fixed crops, and unit projections :math:`\hat a_{km}` of training images in the same turn. The weights make both
    terms 1 on average over the training images: :math:`w_k = 1/\overline{\lVert f_k\rVert}`,
    :math:`v_k = 1/\overline{r_k}`. For networks trained by the recipe ``csi_unlabelled``. The authors draw ten
    augmentations of each image anew, so that a score depends on its batch; here the crops are fixed.

    Parameters
    ----------
    views : crops of each turn; each is a pass.
    rows : training images to compare with, at most, drawn at random.
    seed : which crops and which images.
    """

    name = "csi_unlabelled"
    paper = Paper(
        "CSI: Novelty Detection via Contrastive Learning on Distributionally Shifted Instances",
        "Tack et al.",
        "NeurIPS 2020",
    )
    needs = Needs.OUTPUTS | Needs.TRAIN
    cost = Cost.PASSES
    outputs: ClassVar[tuple[str, ...]] = (PROJECTION, ROTATION)

    def __init__(self, views: int = 4, rows: int = 10_000, seed: int = 0) -> None:
        self.views = views
        self.rows = rows
        self.seed = seed

    @property
    def probes(self) -> tuple[Probe, ...]:
        for key in ("views", "rows"):
            if getattr(self, key) < 1:
                raise DetectorError(f"csi_unlabelled: {key} must be at least 1, not {getattr(self, key)}")
        return (TurnedViews(self.views, self.seed),)

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        column = self.probes[0].column
        lengths, logits = torch.zeros(TURNS, dtype=torch.float64), torch.zeros(TURNS, dtype=torch.float64)
        for chunk in train.chunks(device=self.device, only=(column,)):
            rows = chunk[column].double().cpu()
            lengths += rows[:, :, :-1].norm(dim=2).sum(dim=0)
            logits += rows[:, :, -1].sum(dim=0)
        if (logits <= 0).any() or (lengths <= 0).any():
            raise DetectorError(
                "csi_unlabelled: the network does not recognise turns of its training images: train it longer"
            )
        self.weights_ = precise((len(train) / torch.stack([lengths, logits])).to(self.device))
        chosen = picked_rows(self.name, train, min(1.0, self.rows / len(train)), self.seed)
        self.bank_ = remembered(train, column, chosen, self.device, _directions)

    def _score(self, batch: Activations) -> Tensor:
        rows = precise(batch[self.probes[0].column])
        total = torch.zeros(len(rows), dtype=rows.dtype, device=rows.device)
        for turn in range(TURNS):
            nearest = (rows[:, turn, :-1] @ self.bank_[:, turn].T).amax(dim=1)
            total = total + self.weights_[0, turn] * nearest + self.weights_[1, turn] * rows[:, turn, -1]
        return -total / TURNS


def _directions(rows: Tensor) -> Tensor:
    """Unit projections of every turn, ``[N, 4, P]``."""
    return normalize(precise(rows[:, :, :-1]), dim=2)
