r"""Spectral normalisation: layers whose weight matrix stretches nothing by more than one."""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, embedding, linear, normalize


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
