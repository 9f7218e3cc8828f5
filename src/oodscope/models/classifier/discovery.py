"""Find the head of any network, and believe it only with proof."""

import copy
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.models.classifier.head import Head
from oodscope.models.classifier.network import NetworkError, input_dtype
from oodscope.models.classifier.trace import LinearCall, Trace, linear_bias, linear_weight, trace

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


def explain(seen: Trace) -> str:
    """The most informative reason why no layer of this pass is a head."""
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


@dataclass(frozen=True)
class DiscoveredHead:
    """The outcome of a search.

    Parameters
    ----------
    path : the module's name inside the network; ``None`` if no head was found.
    num_classes : the number of logits, known either way.
    deviation : the largest difference between ``features · Wᵀ + b`` and the logits, as a fraction of
        the logits' spread over the probe images.
    reason : why there is no head, in words; empty if there is one.
    """

    path: str | None
    num_classes: int
    deviation: float | None = None
    reason: str = ""


def locate_head(model: nn.Module, batches: Iterable[Tensor], name: str | None = None) -> DiscoveredHead:
    """The head (or the one called ``name``), sought on the first of ``batches`` that the network digests.

    A half-precision network is searched as a float32 copy, and one whose logits hardly vary over noise (deep networks
    before training) as a float64 copy, so that rounding hides nothing.
    """
    if input_dtype(model).itemsize < 4:
        model = copy.deepcopy(model).float()
    failures: dict[torch.Size, NetworkError] = {}
    for batch in batches:
        if batch.shape in failures:
            break
        try:
            seen = _finely_traced(model, batch)
            return find_head(seen) if name is None else prove_head(model, seen, name)
        except NetworkError as failure:
            failures[batch.shape] = failure
    raise next(iter(failures.values()))


def find_head(seen: Trace) -> DiscoveredHead:
    """The last linear layer of a pass whose input, times its weight, plus its bias, equals the logits.

    The proof is numerical, so it needs no knowledge of architectures and cannot be fooled by names: a
    layer called ``head`` whose output is averaged with another's is not a head.
    """
    classes = seen.logits.shape[1]
    if problem := uninformative(seen.logits):
        return DiscoveredHead(None, classes, reason=problem)
    for call in reversed(seen.calls):
        off = _deviation(call, seen.logits)
        if off is not None and off <= allowed(seen.logits):
            return DiscoveredHead(call.path, classes, off)
    return DiscoveredHead(None, classes, reason=explain(seen))


def prove_head(model: nn.Module, seen: Trace, name: str) -> DiscoveredHead:
    """The same proof for the layer that the user named; failing it is an error that says by how much."""
    target = named_module(model, name)
    if problem := uninformative(seen.logits):
        raise ModelError(f"head={name!r} cannot be proved: {problem}")
    paths = {path for path, module in model.named_modules(remove_duplicate=False) if module is target}
    off = next((_deviation(call, seen.logits) for call in seen.calls if call.path in paths), None)
    if off is None:
        raise ModelError(
            f"head={name!r} does not produce the logits: it does not map one feature vector per image to "
            f"{seen.logits.shape[1]} values"
        )
    if off > allowed(seen.logits):
        raise ModelError(
            f"head={name!r} does not produce the logits: features · Wᵀ + b deviates from them by "
            f"{off:.2g} times their spread"
        )
    return DiscoveredHead(name, seen.logits.shape[1], off)


def named_module(model: nn.Module, name: str) -> nn.Module:
    """The module at a dotted path; an unknown path suggests the nearest linear layers."""
    modules: dict[str, nn.Module] = dict(model.named_modules(remove_duplicate=False))
    if name not in modules:
        known = [path for path, module in modules.items() if linear_weight(module) is not None]
        raise UnknownNameError("module", name, known, "head= takes a path as in model.named_modules()")
    return modules[name]


def read_head(model: nn.Module, path: str) -> Head:
    """The present weight and bias of the layer at ``path``, copied to the CPU."""
    module = model.get_submodule(path)
    weight, bias = linear_weight(module), linear_bias(module)
    if weight is None:
        raise ModelError(f"the head {path!r} was replaced after it was found; make a new Classifier")
    return Head(weight.flatten(1).cpu().clone(), None if bias is None else bias.cpu().clone())


def _finely_traced(model: nn.Module, batch: Tensor) -> Trace:
    seen = trace(model, batch)
    # a pass that proves nothing in float32 may in float64, which MPS lacks and not every network digests
    if seen.logits.dtype is torch.float32 and uninformative(seen.logits) and batch.device.type != "mps":
        with suppress(NetworkError):
            return trace(copy.deepcopy(model).double(), batch)
    return seen


def _deviation(call: LinearCall, logits: Tensor) -> float | None:
    """How far the layer is from producing the logits; ``None`` if its shapes rule it out."""
    if call.features is None or len(call.weight) != logits.shape[1]:
        return None
    rebuilt = call.features.cpu().double() @ call.weight.cpu().double().T
    if call.bias is not None:
        rebuilt = rebuilt + call.bias.cpu().double()
    return deviation(rebuilt, logits)
