"""Image classifiers and encoders of Hugging Face's transformers, with the image processor that belongs to them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.models.zoo.libraries import Built, check_classes, published_weights, require


class ProcessorTransform:
    """A transformers image processor as a transform: one picture in, one tensor out.

    Its text is the processor's whole configuration, so that equal processors share stored activations.
    """

    def __init__(self, processor: Any) -> None:
        self.processor = processor

    def __call__(self, picture: Image.Image) -> Tensor:
        pixels: Tensor = self.processor(picture, return_tensors="pt")["pixel_values"][0]
        return pixels

    def __repr__(self) -> str:
        return f"ProcessorTransform({' '.join(repr(self.processor).split())})"


class ImageFeatures(nn.Module):
    """An encoder of transformers as a module: pixels in, one vector per image out.

    Of a network with an image and a text tower (CLIP, SigLIP) it is the image embedding; of others (DINOv2, ViT, MAE)
    the pooled output, or the first token where nothing is pooled.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        towers = getattr(self.model, "get_image_features", None)
        returned = self.model(pixel_values=images) if towers is None else towers(pixel_values=images)
        if isinstance(returned, Tensor):
            return returned
        pooled: Tensor | None = getattr(returned, "pooler_output", None)
        features: Tensor = returned.last_hidden_state[:, 0] if pooled is None else pooled
        return features.flatten(1)


def build_hf_encoder(name: str, *, pretrained: bool = False) -> Built:
    """``hf:NAME`` without a head, as ``build_hf`` finds it: images in, features out."""
    spec = f"hf:{name}"
    library = require("transformers", "hf", spec)
    _refuse_pickles(name, spec)
    with published_weights(spec):
        processor = library.AutoImageProcessor.from_pretrained(name, trust_remote_code=False)
        if pretrained:
            model = library.AutoModel.from_pretrained(name, use_safetensors=True, trust_remote_code=False)
        else:
            config = library.AutoConfig.from_pretrained(name, trust_remote_code=False)
            model = library.AutoModel.from_config(config, trust_remote_code=False)
    transform: Callable[..., Tensor] = ProcessorTransform(processor)
    return ImageFeatures(model), transform


def build_hf(name: str, num_classes: int | None, *, pretrained: bool = False) -> Built:
    """``hf:NAME``: a name on the hub, or a folder that ``save_pretrained`` wrote; always with its transform.

    Weights are read from safetensors only, and code that a repository brings along is never run. Without
    ``pretrained`` the network is built from its configuration and left untrained.
    """
    spec = f"hf:{name}"
    library = require("transformers", "hf", spec)
    _refuse_pickles(name, spec)
    auto = library.AutoModelForImageClassification
    with published_weights(spec):
        processor = library.AutoImageProcessor.from_pretrained(name, trust_remote_code=False)
        config = library.AutoConfig.from_pretrained(name, trust_remote_code=False)
        if pretrained:
            check_classes(spec, config.num_labels, num_classes)
            model: nn.Module = auto.from_pretrained(name, config=config, use_safetensors=True, trust_remote_code=False)
        else:
            config.num_labels = config.num_labels if num_classes is None else num_classes
            model = auto.from_config(config, trust_remote_code=False)
    transform: Callable[..., Tensor] = ProcessorTransform(processor)
    return model, transform


def _refuse_pickles(name: str, spec: str) -> None:
    folder = Path(name)
    pickled = sorted(folder.glob("pytorch_model*.bin")) if folder.is_dir() else []
    if pickled and not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{spec}: its weights are pickled ({pickled[0].name}), and unpickling can run any code. Save them where "
            "they were made: model.save_pretrained(..., safe_serialization=True)"
        )
