"""Is the head of any classifier found, and proved, without help?

    python benchmarks/heads_found.py            # or with the names of single rows

All classification networks of torchvision, 100 of timm drawn with seed 0, and our own small ones, built without
weights. Up to REAL parameters a network runs on four noise images and its head is proved by values; a larger one is
traced on the meta device, which shows the structure only.
"""

import random
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import timm
import torch
import torchvision
from torch import nn

from oodscope.base.errors import OodscopeError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.new_head import final_layer
from oodscope.models.zoo.zoo import MODELS, create_model

DRAWN, SEED, REAL = 100, 0, 60_000_000


def lively(model: nn.Module) -> nn.Module:
    """The same network with random numbers where a library starts its head with zeros, which prove nothing."""
    for module in model.modules():
        if isinstance(module, nn.Linear) and not module.weight.any():
            nn.init.normal_(module.weight)
    return model


def judge(spec: str, sides: tuple[int, ...]) -> str:
    """One row of the table."""
    started = time.perf_counter()
    skeleton = outline(spec)
    size = sum(parameter.numel() for parameter in skeleton.parameters())
    if size > REAL:
        path = attempt(sides, lambda side: final_layer(skeleton, torch.empty(2, 3, side, side, device="meta")))
        width = skeleton.get_submodule(path).weight[0].numel() if path else ""
        seen = "structure only" if path else "structure only: no linear layer's output is handed out as it is"
        found = f"{path or 'none'} | {width} | {seen}"
    else:
        torch.manual_seed(0)
        model = lively(create_model(spec, num_classes=1000).model)
        classifier = attempt(sides, lambda side: searched(model, side))
        head = classifier.head
        proof = classifier.head_reason if head is None else f"{classifier.head_deviation:.0e}"
        found = f"{classifier.head_path or 'none'} | {head.dim if head else ''} | {proof}"
    return f"| {spec} | {size / 1e6:.0f} | {found} | {time.perf_counter() - started:.1f} |"


def outline(spec: str) -> nn.Module:
    """The network without values; a few builders compute with tensors, and must be allowed to."""
    try:
        with torch.device("meta"):
            return create_model(spec, num_classes=1000).model
    except NotImplementedError:
        return create_model(spec, num_classes=1000).model.to("meta")


def searched(model: nn.Module, side: int) -> Classifier:
    classifier = Classifier(model, Preprocess(size=side), device="cpu")
    _ = classifier.num_classes
    return classifier


def attempt(sides: tuple[int, ...], look: Callable[[int], Any]) -> Any:
    """The first image size that the network digests."""
    for side in sides[:-1]:
        try:
            return look(side)
        except OodscopeError:
            continue
    return look(sides[-1])


def timm_sides(name: str) -> tuple[int, ...]:
    config = timm.get_pretrained_cfg(name)
    side = config.input_size[-1] if config else 224
    return (side,) if config and config.fixed_input_size else (min(side, 128), side)


def main() -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    drawn = sorted(random.Random(SEED).sample(timm.list_models(), DRAWN))
    every = [(name, (MODELS[name].input_size,)) for name in MODELS]
    published = torchvision.models.list_models(module=torchvision.models)
    every += [(f"torchvision:{name}", (64, 224, 299)) for name in published]
    every += [(f"timm:{name}", timm_sides(name)) for name in drawn]
    print("| architecture | million parameters | head | features | deviation, or why there is none | seconds |")
    print("|---|---|---|---|---|---|")
    for spec, sides in every:
        if len(sys.argv) == 1 or spec in sys.argv[1:]:
            print(judge(spec, sides), flush=True)
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, timm {timm.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
