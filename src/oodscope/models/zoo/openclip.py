"""Vision-language networks of open_clip: image and text towers with their published weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from oodscope.base.errors import UnknownNameError
from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint
from oodscope.models.classifier.network import choose_device, evaluating
from oodscope.models.classifier.transform import PictureTransform
from oodscope.models.zoo.libraries import published_weights, require

_BATCH = 256


class ImageTower(nn.Module):
    """The half of a vision-language network that embeds images."""

    def __init__(self, visual: nn.Module) -> None:
        super().__init__()
        self.visual = visual

    def forward(self, images: Tensor) -> Tensor:
        returned = self.visual(images)
        embedding: Tensor = returned[0] if isinstance(returned, tuple) else returned
        return embedding


class Towers(NamedTuple):
    """An open_clip network taken apart: what a zero-shot classifier or a probe on image embeddings needs."""

    image: ImageTower
    transform: PictureTransform
    network: Any
    tokenizer: Any

    @property
    def scale(self) -> float:
        return float(self.network.logit_scale.detach().exp())

    @property
    def bias(self) -> float:
        bias = getattr(self.network, "logit_bias", None)
        return 0.0 if bias is None else float(bias.detach())

    def embed(self, sentences: Sequence[str], device: str = "auto") -> Tensor:
        """Text embeddings ``[N, D]`` on the CPU."""
        place = choose_device(device)
        network = self.network.to(place)
        with evaluating(network), torch.no_grad():
            parts = [
                network.encode_text(self.tokenizer(list(sentences[start : start + _BATCH])).to(place)).float().cpu()
                for start in range(0, len(sentences), _BATCH)
            ]
        return torch.cat(parts)


def open_towers(name: str, weights: str | Path | None) -> Towers:
    """``open_clip:NAME/TAG``, where the tag names published weights.

    Parameters
    ----------
    weights : ``"pretrained"`` for those of the tag; a file's path for one's own; ``None`` leaves it untrained.
    """
    library = require("open_clip", "clip", f"open_clip:{name}")
    architecture, _, tag = name.partition("/")
    if architecture not in library.list_models():
        raise UnknownNameError("open_clip model", architecture, library.list_models(), "See: open_clip.list_models()")
    pretrained = weights == "pretrained"
    tags = library.list_pretrained_tags_by_model(architecture)
    if (pretrained or tag) and tag not in tags:
        hint = f"Say open_clip:{architecture}/TAG with a TAG of: {', '.join(tags) or '(there are none)'}"
        raise UnknownNameError(f"weights of open_clip:{architecture}:", tag, tags, hint)
    # some weights were trained with another activation than their architecture's present one
    quick = bool(tag) and bool(library.get_pretrained_cfg(architecture, tag).get("quick_gelu", False))
    with published_weights(f"open_clip:{name}"):
        network = library.create_model(
            architecture,
            pretrained=tag if pretrained else None,
            force_quick_gelu=quick,
            weights_only=True,
            # towers' own ImageNet or text weights are not what was asked for
            pretrained_image=False,
            pretrained_text=False,
        )
        tokenizer = library.get_tokenizer(architecture)
    if weights is not None and not pretrained:
        load_weights(network, read_checkpoint(weights), str(weights))
    cfg = library.get_model_preprocess_cfg(network)
    transform = library.transform.image_transform_v2(library.transform.PreprocessCfg(**cfg), is_train=False)
    return Towers(ImageTower(network.visual), transform, network, tokenizer)
