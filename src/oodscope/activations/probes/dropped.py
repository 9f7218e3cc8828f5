"""DroppedLogits: what a network says when its own dropout layers are at work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from oodscope.activations.probes.probe import Passes, Probe
from oodscope.base.hashing import fingerprint

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


def dropout_layers(model: nn.Module) -> dict[str, nn.Module]:
    """The dropout layers of a network that drop anything, by name."""
    return {path: part for path, part in model.named_modules() if isinstance(part, DROPOUTS) and part.p > 0}


class DroppedLogits(Probe):
    r"""Logits of several passes with dropout, ``[N, passes, C]``.

    Gal & Ghahramani, "Dropout as a Bayesian Approximation", ICML 2016. The masks are a function of seed, layer and pass
    and the same for all images, so that a score depends on the image alone, whatever batch it is in; everything else is
    in evaluation mode.

    Parameters
    ----------
    passes : how many.
    seed : of the masks.
    """

    def __init__(self, passes: int, seed: int = 0) -> None:
        self.passes, self.seed = passes, seed

    @property
    def column(self) -> str:
        return f"dropped_logits(passes={self.passes}, seed={self.seed})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset(f"dropout {number}, seed {self.seed}" for number in range(self.passes))

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, passes: Passes) -> Tensor:
        logits = []
        for number in range(self.passes):
            with self._dropping(passes.classifier.model, number):
                logits.append(passes.classifier.forward(passes.images).logits.float())
        return torch.stack(logits, dim=1)

    @contextmanager
    def _dropping(self, model: nn.Module, number: int) -> Iterator[None]:
        hooks = [
            layer.register_forward_hook(self._dropped(path, number)) for path, layer in dropout_layers(model).items()
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _dropped(self, path: str, number: int) -> Any:
        def hook(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            read = inputs[0]
            # the others than plain dropout drop whole channels
            shape = read.shape[1:] if type(layer) is nn.Dropout else (read.shape[1], *[1] * (read.ndim - 2))
            seed = int(fingerprint(["dropout", self.seed, path, number, list(shape)])[:15], 16)
            kept = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) >= layer.p
            return read * (kept.to(read) / (1 - layer.p))

        return hook
