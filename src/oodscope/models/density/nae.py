"""NAE: an autoencoder whose reconstruction error is the energy of a density."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, leaky_relu, relu

from oodscope.models.density.autoencoder import squared_error
from oodscope.models.density.base import DensityModel, DensityShape
from oodscope.models.density.langevin import unit_sphere

HALVINGS = 3
GROUPS = 2
SLOPE = 0.2


class NAEShape(DensityShape):
    """What decides the layers of an ``NAE``.

    Parameters
    ----------
    width : channels of the first layers, an even number; the paper has 128.
    code : length of the latents, which lie on the unit sphere.
    memory : latents that chains of later steps start from.
    """

    kind: Literal["nae"] = "nae"
    width: int = Field(default=64, ge=2, multiple_of=2)
    code: int = Field(default=32, ge=2)
    memory: int = Field(default=10_000, ge=1)


class NAE(DensityModel):
    r"""A normalised autoencoder: :math:`p(x) \propto e^{-E(x)/T}` with the reconstruction error :math:`E`.

    Maximum likelihood pushes the error of data down and that of the model's own samples up, which are exactly the
    outliers that an autoencoder reconstructs. No layer normalises over the batch: chains and data would share
    statistics. Yoon et al., ICML 2021.
    """

    shape: NAEShape
    replay: Tensor
    filled: Tensor

    def __init__(self, shape: NAEShape) -> None:
        super().__init__(shape)
        small, width = shape.halved(HALVINGS, "the normalised autoencoder"), shape.width
        self.encoder = nn.Sequential(
            nn.Conv2d(shape.channels, width, 3, padding=1),
            DownBlock(width, width, halve=True),
            DownBlock(width, width),
            DownBlock(width, 2 * width, halve=True),
            DownBlock(2 * width, 2 * width),
            DownBlock(2 * width, 2 * width, halve=True),
            DownBlock(2 * width, 2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(2 * width, shape.code, 1),
            nn.Flatten(),
        )
        self.decoder = nn.Sequential(
            nn.Unflatten(1, (shape.code, 1, 1)),
            nn.ConvTranspose2d(shape.code, width, small),
            *(UpBlock(width) for _ in range(HALVINGS)),
            nn.GroupNorm(GROUPS, width),
            nn.ReLU(),
            nn.Conv2d(width, shape.channels, 3, padding=1),
            nn.Sigmoid(),
        )
        self.register_buffer("replay", torch.zeros(shape.memory, shape.code))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))

    def encode(self, pixels: Tensor) -> Tensor:
        """Latents of length one."""
        return unit_sphere(self.encoder(pixels).to(pixels.dtype))

    def decode(self, latents: Tensor) -> Tensor:
        """Pixels in [0, 1]."""
        drawn: Tensor = self.decoder(latents)
        return drawn.to(latents.dtype)

    def score(self, pixels: Tensor) -> Tensor:
        """The energy: squared error per image, averaged over pixels and channels."""
        return squared_error(self.decode(self.encode(pixels)), pixels)

    def remember(self, latents: Tensor, draws: torch.Generator) -> None:
        """Keep the ends of chains; when the memory is full they replace others at random."""
        size, filled = self.shape.memory, int(self.filled)
        free = torch.arange(filled, min(filled + len(latents), size))
        # no row twice: which of two writes stays is not decided on a GPU
        others = torch.randperm(filled, generator=draws, device=draws.device).cpu()
        rows = torch.cat([free, others])[: len(latents)].to(self.replay.device)
        self.replay[rows] = latents[: len(rows)].detach().to(self.replay.dtype)
        self.filled.fill_(min(filled + len(latents), size))

    def recalled(self, count: int, fresh: float, draws: torch.Generator) -> Tensor:
        """Starts for ``count`` chains: remembered latents, and a share of ``fresh`` ones uniform on the sphere."""
        device = self.replay.device
        anew = torch.randn(count, self.shape.code, generator=draws, device=draws.device).to(device)
        starts = unit_sphere(anew)
        if not int(self.filled):
            return starts
        rows = torch.randint(int(self.filled), (count,), generator=draws, device=draws.device).to(device)
        keep = torch.rand(count, 1, generator=draws, device=draws.device).to(device) >= fresh
        return torch.where(keep, self.replay[rows], starts)


class DownBlock(nn.Module):
    """Two convolutions after leaky ReLUs, beside a shortcut; no norm."""

    def __init__(self, before: int, after: int, halve: bool = False) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, padding=1)
        self.second = nn.Conv2d(after, after, 3, padding=1)
        self.shortcut = nn.Conv2d(before, after, 1) if before != after else nn.Identity()
        self.halve = halve

    def forward(self, values: Tensor) -> Tensor:
        made = self.second(leaky_relu(self.first(leaky_relu(values, SLOPE)), SLOPE))
        made = made + self.shortcut(values)
        return avg_pool2d(made, 2) if self.halve else made


class UpBlock(nn.Module):
    """Two convolutions after group norms and ReLUs, the first on doubled maps, beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(GROUPS, width) for _ in range(2))
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.shortcut = nn.Conv2d(width, width, 1)

    def forward(self, values: Tensor) -> Tensor:
        made = self.convs[0](interpolate(relu(self.norms[0](values)), scale_factor=2.0))
        made = self.convs[1](relu(self.norms[1](made)))
        result: Tensor = made + self.shortcut(interpolate(values, scale_factor=2.0))
        return result
