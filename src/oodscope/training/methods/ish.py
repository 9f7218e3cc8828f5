"""ISH: what an image counts for the last layer's weights depends on how in-distribution its features look."""

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.optim import Optimizer

from oodscope.base.errors import ModelError
from oodscope.base.paper import Paper
from oodscope.models.classifier.network import evaluating, run_network
from oodscope.models.classifier.new_head import last_linear, replace_layer
from oodscope.models.classifier.noise import noise_like
from oodscope.models.classifier.trace import captured_input
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import TrainingFacts

_SMALLER = 0.1
"""The weight decay of the last layer, as a share of all others'."""


def shaped(features: Tensor, share: float) -> Tensor:
    r"""Features in the gradient: the largest alone, times :math:`e^{s_1/s_2}`.

    :math:`s_1` is the sum of all features of an image and :math:`s_2` that of those kept, ``share`` of them.
    """
    kept = features.topk(max(1, int(share * features.shape[1])), dim=1)
    total, top = features.sum(dim=1, keepdim=True), kept.values.sum(dim=1, keepdim=True)
    ratio = torch.where(top > 0, total / torch.where(top > 0, top, 1.0), 1.0)
    return torch.zeros_like(features).scatter(1, kept.indices, kept.values) * ratio.exp()


class _Shaped(torch.autograd.Function):
    """A linear map whose weight learns from shaped features; all else is as usual."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None, share: float) -> Tensor:
        ctx.save_for_backward(features, weight)
        ctx.share, ctx.biased = share, bias is not None
        return linear(features, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        (gradient,) = gradients
        features, weight = ctx.saved_tensors
        return (
            gradient @ weight,
            gradient.T @ shaped(features, ctx.share),
            gradient.sum(0) if ctx.biased else None,
            None,
        )


class ShapedLinear(nn.Linear):
    """A linear layer that is any other in evaluation; in training its weight's gradient is that of ``shaped``.

    Parameters
    ----------
    in_features, out_features, bias : of the layer.
    share : of the features, that count.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool, share: float) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.share = share

    @classmethod
    def of(cls, layer: nn.Linear, share: float) -> "ShapedLinear":
        """One with the weights of a layer."""
        made = cls(layer.in_features, layer.out_features, layer.bias is not None, share)
        made.load_state_dict(layer.state_dict())
        return made

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        sizes = {"in_features": self.in_features, "out_features": self.out_features}
        return {**sizes, "bias": self.bias is not None, "share": self.share}

    def forward(self, features: Tensor) -> Tensor:
        if not self.training:
            return super().forward(features)
        with torch.autocast(features.device.type, enabled=False):
            outputs: Tensor = _Shaped.apply(features.to(self.weight.dtype), self.weight, self.bias, self.share)
            return outputs


class ISH(CrossEntropy):
    r"""Cross-entropy whose gradient for the last weights is scaled image by image.

    .. math:: \frac{\partial L}{\partial W} = \sum_i g_i\,\tilde x_i^\top, \qquad
              \tilde x = e^{s_1/s_2}\,\mathrm{top}_k(x)

    with the logits' gradients :math:`g`; the forward pass, and all other gradients, are as they were. The defaults
    fine-tune a trained network as the paper does on ImageNet-1K. The score is ``scale``.

    Parameters
    ----------
    share : of the features, that are kept: :math:`k = \lfloor p D\rfloor`.
    """

    name: ClassVar[str] = "ish"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Scaling for Training Time and Post-hoc Out-of-distribution Detection Enhancement", "Xu et al.", "ICLR 2024"
    )
    detectors: ClassVar[tuple[str, ...]] = ("scale", "msp")

    epochs: int = Field(default=10, gt=0)
    batch_size: int = Field(default=512, gt=0)
    learning_rate: float = Field(default=0.003, gt=0)
    share: float = Field(default=0.15, gt=0, le=1)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        path, last = last_linear(model)
        images = noise_like(torch.zeros(1, _channels(model), facts.size, facts.size)).to(last.weight)
        with evaluating(model), torch.no_grad(), captured_input(model, path) as seen:
            run_network(model, images)
        if bool((seen[-1] < 0).any()):
            raise ModelError("ish needs features of zero or more (as after a ReLU), and this network's may be negative")
        return replace_layer(model, lambda layer: ShapedLinear.of(layer, self.share))

    def optimizer(self, model: nn.Module) -> Optimizer:
        last = [each for part in model.modules() if isinstance(part, ShapedLinear) for each in part.parameters()]
        return self.descent(model, last, weight_decay=_SMALLER * self.weight_decay)


def _channels(model: nn.Module) -> int:
    first = next((part for part in model.modules() if isinstance(part, nn.Conv2d)), None)
    return 3 if first is None else first.in_channels
