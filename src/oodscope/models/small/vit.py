"""Vision transformers (Touvron et al., ICML 2021) for small images: their width, heads and depth, patches of 4 px."""

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError

PATCH, DEPTH, HEAD = 4, 12, 64


class VisionTransformer(nn.Module):
    """Pre-norm transformer over 4 px patches; its feature is the mean of the normalised tokens, hence signed.

    Positions are the fixed two-dimensional sines of He et al. (CVPR 2022), computed for the grid at hand, so that
    one network reads 28 and 32 px images.
    """

    def __init__(self, width: int, num_classes: int = 10, channels: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, PATCH, stride=PATCH)
        layer = nn.TransformerEncoderLayer(
            width, width // HEAD, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, DEPTH, nn.LayerNorm(width), enable_nested_tensor=False)
        self.fc = nn.Linear(width, num_classes)
        # The encoder copies one initialised layer; without fresh draws all layers would start out equal.
        for parameter in self.encoder.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[-1] % PATCH or images.shape[-2] % PATCH:
            size = f"{images.shape[-2]}x{images.shape[-1]}"
            raise ModelError(f"vit: images are {size}; both sides must be a multiple of {PATCH} pixels")
        maps = self.patches(images)
        tokens = maps.flatten(2).transpose(1, 2) + _positions(*maps.shape[1:]).to(maps)
        logits: Tensor = self.fc(self.encoder(tokens).mean(dim=1))
        return logits


def _positions(width: int, rows: int, columns: int) -> Tensor:
    """Sines and cosines of row and column at geometric wavelengths, [rows * columns, width]."""
    frequency = 10000.0 ** -torch.arange(0, 1, 4 / width)
    by_row = torch.arange(rows)[:, None, None] * frequency.expand(rows, columns, -1)
    by_column = torch.arange(columns)[None, :, None] * frequency.expand(rows, columns, -1)
    return torch.cat([by_row.sin(), by_row.cos(), by_column.sin(), by_column.cos()], dim=-1).flatten(0, 1)


def vit_tiny_32(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """ViT-Tiny for 28 or 32 px images; 5.3 million parameters, 192 signed features."""
    return VisionTransformer(192, num_classes, channels)


def vit_small_32(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """ViT-Small for 28 or 32 px images; 21.3 million parameters, 384 signed features."""
    return VisionTransformer(384, num_classes, channels)
