"""SNGP and DDU: networks whose features keep distances, and what is made of them."""

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import batch_norm, conv2d, linear, normalize
from torch.nn.grad import conv2d_input

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import VARIANCE
from oodscope.models.classifier.last_layer import LastLayer
from oodscope.models.classifier.network import evaluating
from oodscope.models.classifier.new_head import replace_layer
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import TrainingFacts

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams

_WALK = 256
_STATISTICS = 0.01
"""Momentum of the running statistics of normalisations whose stretch is bounded."""


class SoftSpectralConv(nn.Module):
    r"""A convolution that stretches no image by more than ``bound``.

    .. math:: \bar W = W / \max(1, \sigma(W)/c)

    with the largest singular value of the convolution as an operator on images of one size, not that of its kernel as
    a matrix, which is smaller. It is followed by one step of power iteration in every training pass.

    Parameters
    ----------
    main : the convolution, whose weights stay.
    bound : :math:`c`.
    height, width : of the images that it reads.
    """

    def __init__(self, main: nn.Conv2d, bound: float, height: int, width: int) -> None:
        super().__init__()
        self.main, self.bound = main, bound
        self.image: Tensor
        self.register_buffer("image", normalize(torch.randn(1, main.in_channels * height * width)).view(
            1, main.in_channels, height, width))  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        height, width = self.image.shape[2:]
        return {"main": self.main, "bound": self.bound, "height": height, "width": width}

    def stretch(self) -> Tensor:
        """The largest singular value, as far as it is known; a training pass comes closer."""
        weight = self.main.weight
        with torch.autocast(weight.device.type, enabled=False):
            image = self.image
            if self.training:
                with torch.no_grad():
                    there = self._convolved(image, weight)
                    back = conv2d_input(  # type: ignore[no-untyped-call]
                        image.shape, weight, there, self.main.stride, self.main.padding, self.main.dilation,
                        self.main.groups,
                    )  # fmt: skip
                    image = back / torch.linalg.vector_norm(back).clamp(min=1e-12)
                    self.image.copy_(image)
                    image = image.clone()  # the buffer moves on before the gradient is taken
            norm: Tensor = torch.linalg.vector_norm(self._convolved(image, weight))
            return norm

    def _convolved(self, images: Tensor, weight: Tensor) -> Tensor:
        main = self.main
        return conv2d(images, weight, None, main.stride, main.padding, main.dilation, main.groups)

    def forward(self, images: Tensor) -> Tensor:
        main = self.main
        weight = main.weight / (self.stretch() / self.bound).clamp(min=1.0)
        return conv2d(images, weight, main.bias, main.stride, main.padding, main.dilation, main.groups)


class SoftSpectralNorm(nn.Module):
    r"""A batch normalisation that stretches no channel by more than ``bound``.

    .. math:: \bar\gamma = \gamma / \max\Bigl(1, \max_j\frac{\lvert\gamma_j\rvert}{\sqrt{v_j + \epsilon}}/c\Bigr)

    Parameters
    ----------
    main : the normalisation, whose weights and statistics stay.
    bound : :math:`c`.
    """

    def __init__(self, main: nn.BatchNorm2d, bound: float) -> None:
        super().__init__()
        self.main, self.bound = main, bound

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {"main": self.main, "bound": self.bound}

    def forward(self, images: Tensor) -> Tensor:
        main = self.main
        assert main.running_var is not None
        stretch = (main.weight.abs() / (main.running_var + main.eps).sqrt()).amax()
        weight = main.weight / (stretch / self.bound).clamp(min=1.0)
        return batch_norm(
            images, main.running_mean, main.running_var, weight, main.bias, self.training, _STATISTICS, main.eps
        )


def bound_stretches(model: nn.Module, bound: float, size: int) -> nn.Module:
    """``model`` with every convolution and batch normalisation bounded; changed in place."""
    sizes: dict[str, tuple[int, int]] = {}
    parts = dict(model.named_modules())
    convolutions = {path: part for path, part in parts.items() if type(part) is nn.Conv2d}
    hooks = [
        part.register_forward_pre_hook(
            lambda _, inputs, path=path: sizes.update({path: (inputs[0].shape[2], inputs[0].shape[3])})
        )
        for path, part in convolutions.items()
    ]
    channels = next(iter(convolutions.values())).in_channels if convolutions else 3
    weight = next(model.parameters())
    with evaluating(model), torch.no_grad():
        model(torch.zeros(2, channels, size, size, device=weight.device, dtype=weight.dtype))
    for hook in hooks:
        hook.remove()
    for path, part in parts.items():
        if path in sizes:
            model.set_submodule(path, SoftSpectralConv(convolutions[path], bound, *sizes[path]).to(weight.device))
        elif type(part) is nn.BatchNorm2d and part.affine and part.track_running_stats:
            model.set_submodule(path, SoftSpectralNorm(part, bound))
    return model


class GaussianProcessLayer(LastLayer):
    r"""A linear layer on random cosine features, and the variance of its logits by Laplace's approximation.

    .. math:: \phi(h) = \tfrac1s\cos\bigl(W\,\mathrm{LN}(Ph) + b\bigr), \qquad
              v(h) = \rho\,\phi^\top\Lambda^{-1}\phi, \qquad \Lambda = \rho I + \sum_i\phi_i\phi_i^\top, \qquad
              z = \frac{\beta\phi}{\sqrt{1 + \lambda v}}

    :math:`P`, :math:`W` and :math:`b` are fixed: a Gaussian projection to fewer dimensions, rows of orthogonal blocks
    with the lengths of Gaussian vectors, and uniform phases. In training the logits are :math:`\beta\phi`; the
    covariance is there from the end of the training on.

    Parameters
    ----------
    width : of the features.
    reduced : dimensions after :math:`P`.
    count : random features.
    scale : :math:`s`; it belongs together with ``ridge`` and ``factor``.
    ridge : :math:`\rho`.
    factor : :math:`\lambda`; 25 as in the code behind EvG's row, :math:`\pi/8` by theory.
    """

    def __init__(
        self,
        width: int,
        num_classes: int,
        reduced: int = 128,
        count: int = 1024,
        scale: float = 2.0,
        ridge: float = 1.0,
        factor: float = 25.0,
    ) -> None:
        super().__init__()
        self.scale, self.ridge, self.factor = scale, ridge, factor
        self.norm = nn.LayerNorm(reduced)
        self.linear = nn.Linear(count, num_classes)
        for name, value in (
            ("projection", 0.05 * torch.randn(reduced, width)),
            ("directions", orthogonal_rows(count, reduced)),
            ("phases", 2 * math.pi * torch.rand(count)),
            ("covariance", torch.zeros(count, count)),
        ):
            self.register_buffer(name, value)

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        reduced, width = self.get_buffer("projection").shape
        count, classes = self.linear.in_features, self.linear.out_features
        names = ("width", "num_classes", "reduced", "count", "scale", "ridge", "factor")
        return dict(zip(names, (width, classes, reduced, count, self.scale, self.ridge, self.factor)))

    def random_features(self, features: Tensor) -> Tensor:
        """The cosine features of features ``[N, width]``."""
        with torch.autocast(features.device.type, enabled=False):
            exact = features.to(self.linear.weight.dtype)
            reduced = self.norm(linear(exact, self.get_buffer("projection")))
            return torch.cos(linear(reduced, self.get_buffer("directions"), self.get_buffer("phases"))) / self.scale

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        phi = self.random_features(features)
        with torch.autocast(features.device.type, enabled=False):
            logits, variance = self.linear(phi), predictive_variance(phi, self.get_buffer("covariance"), self.ridge)
            if not self.training:
                logits = mean_field(logits, variance, self.factor)
        return {"logits": logits, VARIANCE: variance[:, None]}


def orthogonal_rows(count: int, width: int) -> Tensor:
    """Random rows, orthogonal within blocks of ``width``, as long as Gaussian vectors are."""
    blocks = [torch.linalg.qr(torch.randn(width, width))[0] for _ in range(-(-count // width))]
    lengths: Tensor = torch.linalg.vector_norm(torch.randn(count, width), dim=1, keepdim=True)
    return torch.cat(blocks)[:count] * lengths


def predictive_variance(phi: Tensor, covariance: Tensor, ridge: float) -> Tensor:
    r""":math:`\rho\,\phi^\top\Sigma\phi` of each row; only the diagonal is formed."""
    return ridge * ((phi @ covariance) * phi).sum(dim=1)


def weighted_features(phi: Tensor, logits: Tensor) -> Tensor:
    r"""Features times :math:`\sqrt{p(1 - p)}` of the likeliest class: the curvature of its cross-entropy."""
    most = logits.softmax(dim=1).amax(dim=1, keepdim=True)
    return phi * (most * (1 - most)).sqrt()


def mean_field(logits: Tensor, variance: Tensor, factor: float) -> Tensor:
    r""":math:`z/\sqrt{1 + \lambda v}`."""
    return logits / (1 + factor * variance.clamp(min=0))[:, None].sqrt()


class DDU(CrossEntropy):
    r"""Cross-entropy with bounded stretches, so that features keep distances between images.

    Every convolution and batch normalisation stretches by at most ``bound``; shortcuts keep the network from
    collapsing. The score is the density of the features under a Gaussian of each class (``gmm_ddu``). The authors also
    take leaky ReLU and average-pooled shortcuts; the network's own stay here.

    Parameters
    ----------
    bound : of each layer's stretch.
    """

    name: ClassVar[str] = "ddu"
    paper: ClassVar[Paper | None] = Paper(
        "Deep Deterministic Uncertainty: A New Simple Baseline", "Mukhoti et al.", "CVPR 2023"
    )
    cost: ClassVar[float | None] = 1.2
    detectors: ClassVar[tuple[str, ...]] = ("gmm_ddu", "msp")

    bound: float = Field(default=3.0, gt=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return bound_stretches(model, self.bound, facts.size)


class SNGP(DDU):
    r"""Bounded stretches, and a Gaussian process in the place of the last layer.

    The logits of an image shrink with its distance from the training images (``GaussianProcessLayer``); the covariance
    is gathered in one clean pass after the last epoch. The score is ``dempster_shafer``.

    Parameters
    ----------
    bound : of each layer's stretch.
    reduced, features, scale, ridge, factor : of the layer.
    curvature : whether a training image counts :math:`p(1 - p)` of its likeliest class in the precision, as in the
        paper's formula, or 1, as in the code behind EvG's row.
    """

    name: ClassVar[str] = "sngp"
    paper: ClassVar[Paper | None] = Paper(
        "Simple and Principled Uncertainty Estimation with Deterministic Deep Learning via Distance Awareness",
        "Liu et al.",
        "NeurIPS 2020",
    )
    detectors: ClassVar[tuple[str, ...]] = ("dempster_shafer", "msp")

    epochs: int = Field(default=50, gt=0)
    learning_rate: float = Field(default=0.05, gt=0)
    decay: Literal["cosine", "steps", "constant"] = "steps"
    milestones: tuple[float, ...] | None = (0.3, 0.6, 0.8)
    reduced: int = Field(default=128, gt=0)
    features: int = Field(default=1024, gt=0)
    scale: float = Field(default=2.0, gt=0)
    ridge: float = Field(default=1.0, gt=0)
    factor: float = Field(default=25.0, ge=0)
    curvature: bool = False

    def schedule(self, step: int, steps_per_epoch: int) -> float:
        """To a fifth at each milestone."""
        if self.decay != "steps":
            return super().schedule(step, steps_per_epoch)
        warmup, total = round(self.warmup_epochs * steps_per_epoch), self.total_steps(steps_per_epoch)
        rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
        return rise * float(0.2 ** sum(step >= share * total for share in self.milestones or ()))

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        settings = (self.reduced, self.features, self.scale, self.ridge, self.factor)
        model = replace_layer(model, lambda last: GaussianProcessLayer(last.in_features, facts.num_classes, *settings))
        return super().prepare(model, facts)

    @torch.no_grad()
    def finish(self, model: nn.Module, streams: "Streams") -> None:
        layer = next(part for part in model.modules() if isinstance(part, GaussianProcessLayer))
        seen: list[Tensor] = []
        hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        count = layer.linear.in_features
        precision = layer.ridge * torch.eye(count, dtype=torch.float64, device=layer.linear.weight.device)
        for batch in streams.train.walk(_WALK):
            model(batch.images)
            phi = layer.random_features(seen.pop())
            exact = (weighted_features(phi, layer.linear(phi)) if self.curvature else phi).double()
            precision += exact.T @ exact
        hook.remove()
        layer.get_buffer("covariance").copy_(torch.cholesky_inverse(torch.linalg.cholesky(precision)))
