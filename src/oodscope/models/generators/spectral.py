r"""Spectral normalisation: layers whose weight matrix stretches nothing by more than one."""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, embedding, linear, max_pool2d, normalize


class SpectralWeight(nn.Module):
    r"""A weight divided by its largest singular value (Miyato et al., ICLR 2018).

    .. math:: \bar W = W / σ(W), \qquad σ(W) \approx u^\top W v

    The singular vectors are followed by one step of power iteration in every training pass; weights move slowly, so
    one step is enough. First weights are orthogonal, for which the first estimate is exact. Always in 32 bit: sums of
    squares lose too much in bfloat16.

    Parameters
    ----------
    shape : of the weight; the first dimension counts as rows of the matrix, all others as columns.
    """

    left: Tensor

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.orthogonal_(torch.empty(*shape)))
        self.register_buffer("left", normalize(torch.randn(shape[0]), dim=0))

    def normalised(self) -> Tensor:
        """The weight over its largest singular value."""
        with torch.autocast(self.weight.device.type, enabled=False):
            matrix = self.weight.flatten(1)
            with torch.no_grad():
                right = normalize(self.left @ matrix, dim=0)
                left = normalize(matrix @ right, dim=0)
                if self.training:
                    self.left.copy_(left)
            return self.weight / (left @ matrix @ right)


class SpectralLinear(SpectralWeight):
    """A linear layer."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__(outputs, inputs)
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, values: Tensor) -> Tensor:
        return linear(values, self.normalised(), self.bias)


class SpectralConv(SpectralWeight):
    """A convolution; without a word on ``padding``, stride 1 and an odd kernel keep the size."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 3, *, stride: int = 1, padding: int | None = None
    ) -> None:
        super().__init__(outputs, inputs, kernel, kernel)
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.stride, self.padding = stride, kernel // 2 if padding is None else padding

    def forward(self, images: Tensor) -> Tensor:
        return conv2d(images, self.normalised(), self.bias, stride=self.stride, padding=self.padding)


class SpectralEmbedding(SpectralWeight):
    """A vector per class."""

    def forward(self, classes: Tensor) -> Tensor:
        return embedding(classes, self.normalised())


class SelfAttention(nn.Module):
    r"""Attention over the places of a map (Zhang et al., "Self-Attention Generative Adversarial Networks", ICML 2019).

    .. math:: y = x + γ\, W_o \sum_j \mathrm{softmax}_j\big(θ(x_i)^\top φ(x_j)\big)\, g(x_j)

    θ and φ have an eighth of the channels, g half of them; φ and g are halved in size by max pooling. γ begins at 0, so
    a network learns what is near first.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        few, half = max(1, channels // 8), max(1, channels // 2)
        self.query, self.key = SpectralConv(channels, few, 1), SpectralConv(channels, few, 1)
        self.value, self.out = SpectralConv(channels, half, 1), SpectralConv(half, channels, 1)
        self.strength = nn.Parameter(torch.zeros(()))

    def forward(self, maps: Tensor) -> Tensor:
        query = self.query(maps).flatten(2)
        key, value = (max_pool2d(layer(maps), 2).flatten(2) for layer in (self.key, self.value))
        weights = torch.softmax(query.transpose(1, 2) @ key, dim=2)
        gathered = (value @ weights.to(value.dtype).transpose(1, 2)).reshape(len(maps), -1, *maps.shape[2:])
        spread: Tensor = self.out(gathered)
        return maps + self.strength.to(spread.dtype) * spread
