"""Anatomy: what a network provides beyond its logits."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from oodscope.models.classifier.ensemble import MEMBER_LOGITS
from oodscope.models.classifier.network import evaluating, run_network
from oodscope.models.zoo.zero_shot import NEGATIVE_COSINES

if TYPE_CHECKING:
    from oodscope.models.classifier.classifier import Classifier


def find_stages(model: nn.Module, batch: Tensor) -> tuple[str, ...]:
    """The modules that produce the last feature map ``[N, C, H, W]`` at each resolution, in order.

    For a ResNet these are its four layers, for a VGG the last activation before each pooling. A network without
    maps (a transformer on tokens) has none; maps of one pixel are vectors and do not count.
    """
    made: list[tuple[str, tuple[int, int]]] = []

    def note(path: str, output: Any) -> None:
        if isinstance(output, Tensor) and output.ndim == 4 and len(output) == len(batch):
            made.append((path, (output.shape[2], output.shape[3])))

    with ExitStack() as stack, evaluating(model), torch.no_grad():
        for path, module in model.named_modules():
            handle = module.register_forward_hook(lambda _, __, output, path=path: note(path, output))
            stack.callback(handle.remove)
        run_network(model, batch)
    runs = Counter(path for path, _ in made)
    last: dict[tuple[int, int], str] = {}
    for path, size in made:
        # an activation that several places share runs several times: its name would not say which map is meant
        if min(size) > 1 and runs[path] == 1:
            last.pop(size, None)
            last[size] = path
    return tuple(last.values())


@contextmanager
def watched_maps(model: nn.Module, paths: Sequence[str], look: Callable[[Tensor], Tensor]) -> Iterator[list[Tensor]]:
    """A list that holds, after each pass, what ``look`` says of the map of each stage, in their order."""
    seen: dict[str, Tensor] = {}
    shown: list[Tensor] = []

    def keep(path: str, output: Tensor) -> None:
        # looked at once: later layers may work on the same memory
        seen[path] = look(output)
        if len(seen) == len(paths):
            shown[:] = [seen.pop(path) for path in paths]

    with ExitStack() as stack:
        for path in paths:
            hook = model.get_submodule(path).register_forward_hook(lambda _, __, output, path=path: keep(path, output))
            stack.callback(hook.remove)
        yield shown


@contextmanager
def altered_map(model: nn.Module, path: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Inside the block, the rest of the network reads ``change(map)`` instead of the map of one stage."""
    handle = model.get_submodule(path).register_forward_hook(lambda _, __, output: change(output))
    try:
        yield
    finally:
        handle.remove()


@dataclass(frozen=True)
class Anatomy:
    """Determined on noise images; it says in advance which detectors a network allows.

    Parameters
    ----------
    stages : modules that end a resolution, see ``find_stages``.
    members : how many networks vote; 0 unless it is an ensemble.
    negatives : how many negative labels it compares with; 0 unless it classifies by words.
    outputs : names of what it returns beside its logits.
    signed_features : whether features may be negative, as after anything but a ReLU.
    log_probabilities : whether its logits are log-probabilities, see ``normalised``.
    """

    stages: tuple[str, ...]
    members: int
    negatives: int
    signed_features: bool
    outputs: tuple[str, ...] = ()
    log_probabilities: bool = False


def normalised(logits: Tensor) -> bool:
    """Whether the probabilities of every row ``[N, C]`` already add up to 1: log-sum-exp 0, to float16's rounding."""
    return len(logits) > 0 and bool((logits.double().logsumexp(dim=1).abs() < 1e-2).all())


def examine(classifier: "Classifier", images: Tensor) -> Anatomy:
    """What ``images`` show of the classifier's network, in three passes."""
    stages = find_stages(classifier.model, images)
    with captured(classifier.model, MEMBER_LOGITS) as seen, captured(classifier.model, NEGATIVE_COSINES) as negative:
        answer = classifier.forward(images)
    returned = output_names(classifier.model, images)
    return Anatomy(
        stages=stages,
        members=seen[-1].shape[1] if seen else 0,
        negatives=negative[-1].shape[1] if negative else 0,
        signed_features=answer.features is not None and bool((answer.features < 0).any()),
        outputs=returned,
        log_probabilities=normalised(answer.logits),
    )


def output_names(model: nn.Module, images: Tensor) -> tuple[str, ...]:
    """What a network returns beside its logits, if it returns a dictionary."""
    names: list[str] = []
    handle = model.register_forward_hook(
        lambda _, __, output: names.extend(map(str, output)) if isinstance(output, dict) else None
    )
    try:
        with evaluating(model), torch.no_grad():
            run_network(model, images)
    finally:
        handle.remove()
    return tuple(name for name in names if name != "logits")


@contextmanager
def captured(model: nn.Module, key: str) -> Iterator[list[Tensor]]:
    """A list that receives what each pass inside the block returns under ``key`` beside its logits."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Any) -> None:
        if isinstance(output, dict) and key in output:
            seen.append(output[key])

    handle = model.register_forward_hook(keep)
    try:
        yield seen
    finally:
        handle.remove()
