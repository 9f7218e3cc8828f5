"""When does one tensor equal the logits, and when does that prove anything?"""

import torch
from torch import Tensor

TOLERANCE = 1e-4  # of the logits' spread: float32 layers reach 1e-5, a layer that is not the head is off by 1


def deviation(candidate: Tensor, logits: Tensor) -> float:
    """The largest difference between two ``[N, C]`` tensors, as a fraction of the logits' spread."""
    return float((_wide(candidate) - _wide(logits)).abs().max()) / _spread(logits)


def allowed(logits: Tensor) -> float:
    """The deviation up to which a layer counts as equal: the tolerance and the network's own rounding.

    A sum over a thousand features is off by some ten rounding steps; that shows only where logits hardly vary.
    """
    return TOLERANCE + 16 * _resolution(logits)


def uninformative(logits: Tensor) -> str:
    """Why a pass proves nothing (empty if it does): any layer would fit logits that do not vary."""
    if not torch.isfinite(logits).all():
        return "the logits of noise images are not finite"
    if _spread(logits) == 0:
        return "the logits are the same for all noise images (are the weights trained?)"
    if _resolution(logits) > 1e-3:
        varied = _spread(logits) / float(logits.abs().max())
        return f"over noise images the logits vary by {varied:.0e} of their size, too little for a proof"
    return ""


def _spread(logits: Tensor) -> float:
    """The widest range that one logit covers over the images of a batch."""
    wide = _wide(logits)
    return float((wide.amax(0) - wide.amin(0)).max())


def _resolution(logits: Tensor) -> float:
    """One rounding step of the largest logit, as a fraction of the spread."""
    return torch.finfo(logits.dtype).eps * float(logits.abs().max()) / _spread(logits)


def _wide(values: Tensor) -> Tensor:
    """In float64, on the CPU because MPS has none."""
    return values.cpu().double()
