"""Trunk: a network up to its head, free of hooks, in bf16."""

import copy
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import returned_tensor

TOLERANCE = 1e-3
"""Outputs of trunk and classifier in float32 may differ by this share of their spread."""


class Trunk:
    """A copy of a classifier's network that returns features in one pass (logits, where there is no head).

    ``Classifier.forward`` catches features by a hook, at which a compiler stops. Here the head is replaced by the
    identity, so that features are simply what the network returns; ``agrees`` proves that they are the same.
    """

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self.head = None if classifier.head is None else classifier.head.to(classifier.device)
        self.network = copy.deepcopy(classifier.model).eval().requires_grad_(False)
        self.network = self.network.to(memory_format=torch.channels_last)
        self._half = False
        if classifier.head_path:
            self.network.set_submodule(classifier.head_path, nn.Identity())

    def __call__(self, prepared: Tensor) -> Tensor:
        """Features ``[N, D]`` in float32 of images that are prepared for the network."""
        device = prepared.device.type
        with torch.autocast(device, dtype=torch.bfloat16) if self._half else nullcontext():
            returned = self.network(prepared.contiguous(memory_format=torch.channels_last))
        return returned_tensor(returned).flatten(1).float()

    def agrees(self, prepared: Tensor) -> bool:
        """Whether it says of some images what the classifier says; asked before ``halve``."""
        theirs = self.classifier.forward(prepared)
        wanted = theirs.logits if self.head is None else theirs.features
        try:
            ours = self(prepared)
        except Exception:  # a network that looks at its head from elsewhere breaks in ways of its own
            return False
        if wanted is None or ours.shape != wanted.shape:
            return False
        return bool((ours - wanted).abs().max() <= TOLERANCE * wanted.abs().max())

    def halve(self) -> "Trunk":
        """Multiply in bf16 from now on; norms and sums stay in float32, as autocast decides."""
        self._half = True
        for module in self.network.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                # cast once, not in every pass
                module.to(torch.bfloat16)
        return self
