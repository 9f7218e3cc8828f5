"""G-ODIN: a logit is a quotient, of what speaks for the class and of what speaks for any class at all."""

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim import Optimizer

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import NUMERATORS
from oodscope.models.classifier.last_layer import LastLayer
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import TrainingFacts

Similarity = Literal["cosine", "euclid", "inner"]

_TINY = 1e-4


class Quotient(LastLayer):
    r"""Logits :math:`z_c = h_c(x) / g(x)` of features :math:`e`.

    .. math:: h_c = \frac{\langle e, w_c\rangle}{(\lVert e\rVert + 10^{-4})(\lVert w_c\rVert + 10^{-4})}, \qquad
              g = \sigma(\mathrm{BN}(\langle v, e\rangle + a))

    for ``cosine``; :math:`h_c = -\frac1D\lVert e - w_c\rVert^2` for ``euclid``, and
    :math:`\langle e, w_c\rangle + b_c` for ``inner``.
    """

    def __init__(self, width: int, num_classes: int, similarity: Similarity) -> None:
        super().__init__()
        self.similarity = similarity
        self.classes = nn.Linear(width, num_classes, bias=similarity == "inner")
        nn.init.kaiming_normal_(self.classes.weight, nonlinearity="relu")
        self.any_class = nn.Sequential(nn.Linear(width, 1), nn.BatchNorm1d(1), nn.Sigmoid())

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        width, classes = self.classes.in_features, self.classes.out_features
        return {"width": width, "num_classes": classes, "similarity": self.similarity}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        with torch.autocast(features.device.type, enabled=False):
            exact = features.to(torch.promote_types(features.dtype, torch.float32))
            numerators = self.numerators(exact)
            return {"logits": numerators / self.any_class(exact), NUMERATORS: numerators}

    def numerators(self, features: Tensor) -> Tensor:
        """The class-conditional part :math:`h`."""
        if self.similarity == "inner":
            inner: Tensor = self.classes(features)
            return inner
        weight = self.classes.weight
        products = features @ weight.T
        if self.similarity == "cosine":
            lengths = torch.linalg.vector_norm(features, dim=1, keepdim=True) + _TINY
            cosine: Tensor = products / lengths / (torch.linalg.vector_norm(weight, dim=1) + _TINY)
            return cosine
        squares = features.square().sum(dim=1, keepdim=True) + weight.square().sum(dim=1)
        return (2 * products - squares) / features.shape[1]


class GODIN(CrossEntropy):
    """Cross-entropy on the quotient of a class's similarity and the confidence that there is a class.

    The score is the largest similarity after a small step of the image towards it (detector ``godin``). The weights of
    the similarities carry no weight decay, and one schedule drives them and all others. The head is not affine, so
    detectors that need its weights do not apply.

    Parameters
    ----------
    similarity : of features and a class; ``cosine`` is the paper's DeConf-C.
    """

    name: ClassVar[str] = "godin"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Generalized ODIN: Detecting Out-of-distribution Image without Learning from Out-of-distribution Data",
        "Hsu et al.",
        "CVPR 2020",
    )
    detectors: ClassVar[tuple[str, ...]] = ("godin", "msp")

    similarity: Similarity = Field(default="cosine")

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return replace_layer(model, lambda last: Quotient(last.in_features, facts.num_classes, self.similarity))

    def optimizer(self, model: nn.Module) -> Optimizer:
        own = [each for part in model.modules() if isinstance(part, Quotient) for each in part.classes.parameters()]
        return self.descent(model, own, weight_decay=0.0)
