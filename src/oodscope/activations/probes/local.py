"""LocalConcepts: how well the best patch of an image fits one class, from the value tokens of a vision transformer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from oodscope.activations.probes.probe import Tap
from oodscope.base.errors import ModelError
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.openclip import ImageTower
from oodscope.models.zoo.zero_shot import ZeroShot


def has_patches(model: nn.Module) -> bool:
    """Whether the network compares images with words and shows the patches of its last block."""
    if not (isinstance(model, ZeroShot) and isinstance(model.tower, ImageTower)):
        return False
    visual: Any = model.tower.visual
    plain = getattr(visual, "attn_pool", None) is None and getattr(visual, "proj", None) is not None
    block = _last_block(visual)
    return plain and block is not None and isinstance(getattr(block, "attn", None), nn.MultiheadAttention)


def _last_block(visual: Any) -> Any:
    blocks = getattr(getattr(visual, "transformer", None), "resblocks", None)
    return blocks[-1] if blocks else None


class LocalConcepts(Tap):
    r"""The largest softmax probability over classes of any patch, ``[N, 1]``.

    .. math:: \max_{u, c} \mathrm{softmax}_c\bigl(\cos(v_u, t_c)/\tau\bigr)

    with :math:`v_u` the value token of patch u in the last block: taken through the output layer of the attention, the
    last normalisation and the projection to texts, without attending to other patches (Zhou et al., ECCV 2022).

    Parameters
    ----------
    temperature : :math:`\tau`, in units of cosine.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    @property
    def column(self) -> str:
        return f"local_concepts(temperature={self.temperature:g})"

    @contextmanager
    def watching(self, classifier: Classifier) -> Iterator[Callable[[], Tensor]]:
        model = classifier.model
        if not has_patches(model):
            raise ModelError("patches are known of vision transformers of open_clip alone")
        assert isinstance(model, ZeroShot) and isinstance(model.tower, ImageTower), "it has patches"
        visual: Any = model.tower.visual
        seen: list[Tensor] = []
        handle = _last_block(visual).register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        try:
            yield lambda: self.reduce(local_embeddings(visual, seen.pop()), model.text.weight)
        finally:
            handle.remove()

    def reduce(self, local: Tensor, texts: Tensor) -> Tensor:
        """``[N, 1]`` of unit patch embeddings ``[N, P, D]`` and the rows of the head."""
        cosines = local.float() @ normalize(texts.float(), dim=1).T
        return (cosines / self.temperature).softmax(dim=2).amax(dim=(1, 2)).unsqueeze(1)


@torch.no_grad()
def local_embeddings(visual: Any, hidden: Tensor) -> Tensor:
    """Unit embeddings ``[N, P, D]`` of the patches, from what the last block is given."""
    block = _last_block(visual)
    tokens = hidden if getattr(visual.transformer, "batch_first", True) else hidden.transpose(0, 1)
    attention, width = block.attn, tokens.shape[2]
    bias = None if attention.in_proj_bias is None else attention.in_proj_bias[2 * width :]
    values = attention.out_proj(linear(block.ln_1(tokens), attention.in_proj_weight[2 * width :], bias))
    # the first token stands for the whole image
    return normalize(visual.ln_post(values[:, 1:]) @ visual.proj, dim=2)
