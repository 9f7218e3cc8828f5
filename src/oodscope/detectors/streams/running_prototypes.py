"""Running prototypes: an axis between the means of what looked ID and what looked OOD so far."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.math.neighbors import unit
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.streaming import Described, Mode, StreamDetector


class RunningPrototypes(StreamDetector):
    r"""Two running means of the stream, of what a base score calls ID and OOD; images are placed between them.

    .. math:: s(x) = \hat h\cdot\bigl(\hat\mu_{\mathrm{OOD}} - \hat\mu_{\mathrm{ID}}\bigr)

    After the idea of DART, of which only the abstract was at hand (unverified form; one layer). The base score is the
    negative cosine to the nearest class mean; it enters the ID mean below ``quantile`` of its values on held-out
    images, and the OOD mean above. The ID mean begins with the training mean; until the OOD mean has an image, the
    base score stands.

    Parameters
    ----------
    quantile : of the held-out images' base scores.
    weight : of a new image in the running means.
    """

    name = "running_prototypes"
    paper = Paper("DART", "unverified form of the abstract", "arXiv 2603.15213")
    needs = Needs.FEATURES | Needs.TRAIN | Needs.LABELS
    cost = Cost.MOMENTS
    unverified_form = True

    def __init__(self, mode: Mode = "causal", quantile: float = 0.95, weight: float = 0.02) -> None:
        self.mode = mode
        self.quantile = quantile
        self.weight = weight

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        labels, rows = train.labels.long(), precise(unit(train.features))
        classes = torch.unique(labels)
        self.means_ = unit(torch.stack([rows[labels == each].mean(dim=0) for each in classes]))
        self.centre_ = unit(rows.mean(dim=0, keepdim=True))
        held = -(precise(unit(val.features)) @ self.means_.T).amax(dim=1)
        self.border_ = held.quantile(self.quantile)

    def _begin(self) -> None:
        self._known, self._foreign = self.centre_.clone(), self.centre_[:0]

    def _describe(self, batch: Activations) -> Described:
        rows = precise(unit(batch.features))
        return rows, -(rows @ self.means_.T).amax(dim=1)

    def _judge(self, *images: Tensor) -> Tensor:
        rows, base = images
        return base if not len(self._foreign) else (rows @ (self._foreign - self._known).T)[:, 0]

    def _remember(self, *images: Tensor) -> None:
        rows, base = images
        for row, foreign in zip(rows, (base > self.border_).tolist()):
            mean = self._foreign if foreign else self._known
            moved = unit((1 - self.weight) * mean + self.weight * row) if len(mean) else row.unsqueeze(0)
            if foreign:
                self._foreign = moved
            else:
                self._known = moved
