"""Why a network has no linear head, in words."""

import torch
from torch import Tensor

from oodscope.models.trace import LinearCall, Trace

_NEVER_SEEN = "no linear layer was seen at work (is the network compiled, scripted or purely functional?)"


def spread(logits: Tensor) -> Tensor:
    """The widest range that one logit covers over the images of a batch."""
    return (logits.amax(0) - logits.amin(0)).max()


def uninformative(logits: Tensor) -> str | None:
    """What makes a pass useless as a proof: any layer whatever would fit logits that do not vary."""
    if not torch.isfinite(logits).all():
        return "the logits of noise images are not finite"
    size, width = float(logits.abs().max()), float(spread(logits.double()))
    if width == 0:
        return "the logits are the same for all probe images (are the weights untrained or zero?)"
    if width < 1000 * torch.finfo(logits.dtype).eps * size:
        return f"over the probe images the logits vary by only {width / size:.1g} of their size"
    return None


def explain(seen: Trace, tolerance: float) -> str:
    """The most telling reason why no layer of this pass is a head."""
    if not seen.calls:
        return _NEVER_SEEN
    rivals = [call for call in seen.calls if call.output.shape == seen.logits.shape]
    vectors = [call for call in rivals if call.features is not None]
    for group in (vectors[-2:], vectors):
        if len(group) > 1 and _close(torch.stack([c.output for c in group]).mean(0), seen.logits, tolerance):
            return f"the logits are the average of {_count(len(group))} linear layers {_names(group)}"
    for call in reversed([call for call in rivals if call.features is None]):
        if _close(call.output, seen.logits, tolerance) or _close(call.rectified, seen.logits, tolerance):
            kind = "a convolution" if call.convolution else "applied to every token and"
            return f"the last layer {call.path!r} is {kind} followed by pooling"
    return "no linear layer produces the logits: something follows the last one, or it is not a module"


def _close(value: Tensor, logits: Tensor, tolerance: float) -> bool:
    return bool((value - logits).abs().max() <= tolerance * spread(logits))


def _count(number: int) -> str:
    return {2: "two", 3: "three", 4: "four"}.get(number, str(number))


def _names(calls: list[LinearCall]) -> str:
    quoted = [f"{call.path!r}" for call in calls]
    return ", ".join(quoted[:-1]) + " and " + quoted[-1]
