"""T2FNorm: features are normalised in training, not at test."""

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from oodscope.base.paper import Paper
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import TrainingFacts


class TrainedToFeatures(nn.Module):
    """Features of length :math:`1/\\tau` in training; at test as they are, over :math:`\\tau` or not.

    Parameters
    ----------
    temperature : :math:`\\tau`.
    scale_at_test : divide by it at test too.
    """

    def __init__(self, temperature: float, scale_at_test: bool) -> None:
        super().__init__()
        self.scale_at_test = scale_at_test
        self.register_buffer("temperature", torch.tensor(temperature))

    def facts(self) -> dict[str, Any]:
        """The arguments that make the same."""
        return {"temperature": float(self.get_buffer("temperature")), "scale_at_test": self.scale_at_test}

    def forward(self, features: Tensor) -> Tensor:
        temperature = self.get_buffer("temperature")
        if self.training:
            return normalize(features.to(torch.promote_types(features.dtype, torch.float32))) / temperature
        return features / temperature if self.scale_at_test else features

    def extra_repr(self) -> str:
        return f"scale_at_test={self.scale_at_test}"


class T2FNorm(CrossEntropy):
    r"""Cross-entropy on features of constant norm; at test, known images have the longer ones.

    .. math:: L = \mathrm{CE}\Bigl(W \frac{h}{\lVert h\rVert\,\tau} + b,\; y\Bigr), \qquad
              s(x) = 1 - \max_c \mathrm{softmax}_c\Bigl(W \frac{h}{\tau} + b\Bigr)

    The trained network gives the logits of the second formula, so its score is ``msp``, and its features are
    :math:`h/\tau`. Its accuracy differs from that of the first formula only through the bias.

    Parameters
    ----------
    temperature : :math:`\tau`.
    scale_at_test : from scratch the logits at test are those above; a network that was fine-tuned takes
        :math:`W h + b`, by false.
    """

    name: ClassVar[str] = "t2fnorm"
    paper: ClassVar[Paper | None] = Paper(
        "T2FNorm: Train-time Feature Normalization for OOD Detection in Image Classification",
        "Regmi et al.",
        "CVPR Workshops 2024",
    )

    temperature: float = Field(default=0.1, gt=0)
    scale_at_test: bool = True

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        scaling = TrainedToFeatures(self.temperature, self.scale_at_test)
        return replace_layer(model, lambda last: nn.Sequential(scaling, last))
