"""Why a network has no linear head, in words."""

import torch
from torch import Tensor

from oodscope.models.evidence import allowed, deviation
from oodscope.models.trace import LinearCall, Trace


def explain(seen: Trace) -> str:
    """The most telling reason why no layer of this pass is a head."""
    if not seen.calls:
        return "no linear layer was seen at work (is the network compiled, scripted or purely functional?)"
    rivals = [call for call in seen.calls if call.output.shape == seen.logits.shape]
    vectors = [call for call in rivals if call.features is not None]
    for group in (vectors[-2:], vectors):
        if len(group) > 1 and _equal(torch.stack([c.output for c in group]).mean(0), seen.logits):
            return f"the logits are the average of {_count(len(group))} linear layers {_names(group)}"
    for call in reversed([call for call in rivals if call.features is None]):
        if _equal(call.output, seen.logits) or _equal(call.rectified, seen.logits):
            kind = "a convolution" if call.convolution else "applied to every token and"
            return f"the last layer {call.path!r} is {kind} followed by pooling"
        if _equal(call.first, seen.logits):
            return f"the last layer {call.path!r} is applied to every token, and one token's answer is kept"
    return "no linear layer produces the logits: something follows the last one, or it is not a module"


def _equal(value: Tensor, logits: Tensor) -> bool:
    return deviation(value, logits) <= allowed(logits)


def _count(number: int) -> str:
    return {2: "two", 3: "three", 4: "four"}.get(number, str(number))


def _names(calls: list[LinearCall]) -> str:
    quoted = [f"{call.path!r}" for call in calls]
    return ", ".join(quoted[:-1]) + " and " + quoted[-1]
