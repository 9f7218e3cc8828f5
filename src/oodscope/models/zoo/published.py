"""The class names that published weights were trained with."""

from typing import Any

from oodscope.data.packaged import class_list, class_words


def published_classes(spec: str) -> list[tuple[str, ...]]:
    """What the logits of ``timm:NAME`` or ``torchvision:NAME`` with pretrained weights stand for, if that is known.

    ImageNet's classes have several names: WordNet ids, by which its folders are called, the words on its card, and
    those of the library. Each entry of the answer names all classes in the order of the logits.
    """
    library, _, name = spec.rpartition(":")
    if library == "timm":
        return _timm(name)
    if library == "torchvision":
        return _torchvision(name)
    return []


def _timm(name: str) -> list[tuple[str, ...]]:
    import timm

    data: Any = timm.data  # its helpers carry no types
    config: Any = timm.get_pretrained_cfg(name, allow_unregistered=True)
    subset = None if config is None else data.infer_imagenet_subset(config.to_dict())
    return [] if subset is None else _with_words(tuple(data.ImageNetInfo(subset).label_names()))


def _torchvision(name: str) -> list[tuple[str, ...]]:
    import timm
    from torchvision import models

    if name not in models.list_models(module=models):
        return []
    data: Any = timm.data
    words = tuple(models.get_model_weights(name).DEFAULT.meta["categories"])
    ids = tuple(data.ImageNetInfo().label_names())
    return [*_with_words(ids), words] if len(ids) == len(words) else [words]


def _with_words(ids: tuple[str, ...]) -> list[tuple[str, ...]]:
    """WordNet ids, and the words of the card where they are ImageNet-1K's."""
    return [ids, class_words("imagenet_1k")] if ids == tuple(class_list("imagenet_1k")) else [ids]
