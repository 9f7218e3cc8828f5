"""Networks of timm and torchvision, with their published weights and the transforms that belong to them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from oodscope.base.errors import ModelError, OodscopeError, UnknownNameError
from oodscope.models.classifier.network import first_line


def require(module: str, extra: str, spec: str) -> Any:
    """The module, or one line that says which extra of this package brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ModelError(f"{spec} needs {module}, which is not installed: pip install 'oodscope[{extra}]'") from error


Built = tuple[nn.Module, Callable[..., Tensor] | None]


def build_timm(name: str, num_classes: int | None, *, pretrained: bool = False) -> Built:
    """``timm:NAME``; a pretrained one comes with its evaluation transform."""
    import timm

    base, _, tag = name.partition(".")
    if not timm.is_model(base):
        raise UnknownNameError("timm model", name, timm.list_models(), "See: timm.list_models()")
    if tag and name not in (published := timm.list_pretrained(f"{base}.*")):
        raise UnknownNameError("timm weights", name, published, "See: timm.list_pretrained()")
    if not pretrained:
        return timm.create_model(name, **_classes(num_classes)), None
    with published_weights(f"timm:{name}"):
        model: Any = timm.create_model(name, pretrained=True)
    check_classes(f"timm:{name}", model.num_classes, num_classes)
    data: Any = timm.data  # its helpers carry no types
    return model, data.create_transform(**data.resolve_model_data_config(model), is_training=False)


def build_torchvision(name: str, num_classes: int | None, *, pretrained: bool = False) -> Built:
    """``torchvision:NAME``; a pretrained one comes with its evaluation transform.

    ``NAME.TAG`` names one of several published weights, such as ``resnet50.IMAGENET1K_V1``; without a tag
    they are the library's present default.
    """
    from torchvision import models

    name, _, tag = name.partition(".")
    known = models.list_models(module=models)
    if name not in known:
        raise UnknownNameError("torchvision model", name, known, "See: torchvision.models.list_models()")
    published = models.get_model_weights(name)
    tags = [each.name for each in published]
    if tag and tag not in tags:
        raise UnknownNameError(f"weights of torchvision:{name}:", tag, tags, f"Known: {', '.join(tags)}")
    if not pretrained:
        # the Inception networks warn that their slow initialisation will go away unless asked for
        extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        return models.get_model(name, weights=None, **extra, **_classes(num_classes)), None
    weights = published[tag] if tag else published.DEFAULT
    check_classes(f"torchvision:{name}", len(weights.meta["categories"]), num_classes)
    with published_weights(f"torchvision:{name}"):
        return models.get_model(name, weights=weights), weights.transforms()


def library_names() -> list[str]:
    """Every ``timm:`` and ``torchvision:`` name that can be asked for."""
    import timm
    from torchvision import models

    own = [f"torchvision:{name}" for name in models.list_models(module=models)]
    return own + [f"timm:{name}" for name in timm.list_models()]


@contextmanager
def published_weights(spec: str) -> Iterator[None]:
    """Loading in this block never unpickles, and its failure (mostly: no network) is one line."""
    variable = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        yield
    except OodscopeError:
        raise
    except Exception as error:  # the libraries raise their own, their HTTP client's and urllib's errors
        raise ModelError(
            f"{spec}: the pretrained weights could not be downloaded ({first_line(error)}). Without access to the "
            "internet, fetch them elsewhere and pass the file as weights=PATH"
        ) from error
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def check_classes(spec: str, published: int, wanted: int | None) -> None:
    """Refuse to swap a trained head for an untrained one, which the libraries would do or fail at."""
    if wanted is not None and wanted != published:
        raise ModelError(f"{spec}: the pretrained weights have {published} classes, not {wanted}")


def _classes(num_classes: int | None) -> dict[str, Any]:
    return {} if num_classes is None else {"num_classes": num_classes}
