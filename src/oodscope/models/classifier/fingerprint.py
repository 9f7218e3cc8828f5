"""The identity of a network: its weights, its structure, its head."""

from typing import Any

import torch
from torch import Tensor, nn

from oodscope.base.hashing import fingerprint

_BOOKKEEPING = {"training"}


def weights_fingerprint(model: nn.Module) -> str:
    """Of all parameters and buffers by name, type, shape and bytes; the same on every device."""
    tensors = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    tensors.sort(key=lambda pair: pair[0])
    return fingerprint([[name, str(value.dtype), list(value.shape), _bytes(value)] for name, value in tensors])


def structure_fingerprint(model: nn.Module) -> str:
    """Of the module tree: each module's path, class and plain public attributes.

    The attributes count because much of a network's behaviour is neither a weight nor printed: the
    pooling of a vision transformer is the attribute ``global_pool``. The code of ``forward`` does not
    count: after editing it, name the class anew or clear the store.
    """
    return fingerprint([[path, _class(module), _settings(module)] for path, module in model.named_modules()])


def _bytes(tensor: Tensor) -> str:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return fingerprint(flat.view(torch.uint8).numpy().tobytes())


def _settings(module: nn.Module) -> dict[str, Any]:
    return {
        name: _plain(value)
        for name, value in vars(module).items()
        if not name.startswith("_") and name not in _BOOKKEEPING and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str)) or hasattr(value, "__qualname__")


def _plain(value: Any) -> Any:
    """A value that JSON can carry; a function or class counts by name, a float by its exact text."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return repr(value)
    return getattr(value, "__qualname__", value)


def _class(module: nn.Module) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"
