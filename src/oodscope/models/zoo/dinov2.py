"""DINOv2 (Oquab et al., TMLR 2024): self-supervised backbones that end in features and get a linear head."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint
from oodscope.models.zoo.libraries import published_weights

BACKBONES = {
    "vits14": "vit_small_patch14_dinov2",
    "vitb14": "vit_base_patch14_dinov2",
    "vitl14": "vit_large_patch14_dinov2",
    "vitg14": "vit_giant_patch14_dinov2",
    "vits14_reg": "vit_small_patch14_reg4_dinov2",
    "vitb14_reg": "vit_base_patch14_reg4_dinov2",
    "vitl14_reg": "vit_large_patch14_reg4_dinov2",
    "vitg14_reg": "vit_giant_patch14_reg4_dinov2",
}
"""The names of the paper's release and the same networks in timm; ``_reg`` have register tokens."""

SIZE = 224
TRANSFORM = Preprocess(
    size=SIZE, resize=256, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), interpolation="bicubic"
)
"""What the paper's linear classifiers were evaluated with."""


class TokenFeatures(nn.Module):
    """Class tokens of the last layers, and the mean of the last layer's patches, side by side.

    That is what the published linear heads read: of one layer (twice the width of the network), or of four (five
    times). All tokens pass the network's final norm.

    Parameters
    ----------
    backbone : a vision transformer of timm.
    layers : how many layers give their class token.
    """

    def __init__(self, backbone: nn.Module, layers: int = 1) -> None:
        super().__init__()
        self.backbone = backbone
        self.layers = layers

    def forward(self, images: Tensor) -> Tensor:
        backbone: Any = self.backbone
        shown = backbone.get_intermediate_layers(images, n=self.layers, return_prefix_tokens=True, norm=True)
        # the class token is the first of the prefix; registers follow it and are left out
        tokens = [prefix[:, 0] for _, prefix in shown]
        return torch.cat([*tokens, shown[-1][0].mean(dim=1)], dim=1)


def build_dinov2(name: str, weights: str | Path | None, width: int | None = None) -> TokenFeatures:
    """``dinov2:NAME`` as a network that ends in features.

    Parameters
    ----------
    weights : ``"pretrained"`` for the published ones; a file of timm's or of the paper's release; ``None`` leaves it
        untrained.
    width : of the features, as a given head reads them; it says from how many layers they are taken.
    """
    if name not in BACKBONES:
        raise UnknownNameError("DINOv2 model", name, BACKBONES, f"Known: {', '.join(BACKBONES)}")
    import timm
    from timm.models.vision_transformer import checkpoint_filter_fn

    spec, pretrained = f"dinov2:{name}", weights == "pretrained"
    with published_weights(spec):
        backbone: Any = timm.create_model(BACKBONES[name], pretrained=pretrained, num_classes=0, img_size=SIZE)
    if weights is not None and not pretrained:
        # the release names its tensors otherwise and was trained at another size; timm knows both
        load_weights(backbone, checkpoint_filter_fn(read_checkpoint(weights), backbone), str(weights))
    layers, rest = divmod(width or 2 * backbone.embed_dim, backbone.embed_dim)
    if rest or not 2 <= layers <= len(backbone.blocks) + 1:
        raise ModelError(
            f"{spec}: a head over {width} features does not fit: they come in multiples of {backbone.embed_dim}, "
            f"{2 * backbone.embed_dim} for one layer"
        )
    return TokenFeatures(backbone, layers - 1)
