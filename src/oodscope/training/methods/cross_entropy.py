"""Cross-entropy: the plain classifier that every other method is compared with."""

from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.training.loop.logits import logits_of
from oodscope.training.recipe import Batch, Recipe, Step


class CrossEntropy(Recipe):
    r"""Softmax cross-entropy.

    .. math:: L = -\log \operatorname{softmax}(f(x))_y

    The defaults are OpenOOD's for CIFAR: 100 epochs of SGD with Nesterov's momentum .9, learning rate .1
    along a cosine to 1e-6, weight decay 5e-4, batches of 128, crops after 4 pixels of padding, mirroring.
    """

    name: ClassVar[str] = "cross_entropy"
    recordable: ClassVar[bool] = True
    per_row: ClassVar[bool] = True
    detectors: ClassVar[tuple[str, ...]] = ("msp",)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        logits = logits_of(model(batch.images))
        return Step(label_loss(logits, batch), logits)


def label_loss(logits: Tensor, batch: Batch) -> Tensor:
    """The mean cross-entropy of a batch; of a balanced recipe the mean weighted by the images' classes."""
    if batch.weights is None:
        return cross_entropy(logits, batch.labels)
    each = cross_entropy(logits, batch.labels, reduction="none")
    return (batch.weights * each).sum() / batch.weights.sum()
