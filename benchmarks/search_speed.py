"""How near does a search come to the bare speed of the network it attacks?

    python benchmarks/search_speed.py [--device cuda] [--batches 1000 5000] [--seconds 2] [--weights FILE.safetensors]

ResNet-18 with a 3x3 stem at 32 px, random weights unless given. Measured in one process, after compiling: the bare
compiled bf16 forward pass and the uncompiled one on a batch that lies ready; forward and KNN (50,000 x 512 bank)
without a search; Metropolis-Hastings steps (variation, preprocessing, network, detector, acceptance, running minimum)
for affine, color, both and a generator, with a logit detector and with KNN. On CUDA every timed step loop runs under
``set_sync_debug_mode("error")``: a step that asks the device for anything stops the script. The last entry is a whole
search, whose best states are scored again in float32. Prints one JSON object.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torchvision.models import resnet18

import oodscope as oods
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.methods.knn import KNN
from oodscope.generation.samplers.registry import create_sampler
from oodscope.generation.search.energy import Standardised
from oodscope.generation.search.fast import Compiled, FastPipeline, Trunk, quick_products
from oodscope.generation.search.search import search
from oodscope.generation.search.target import Noise, Target, Visits
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.registry import create_variation
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator

SHAPE = (3, 32, 32)
WIDTH = 512


def network(weights: str | None) -> nn.Module:
    torch.manual_seed(0)
    model = resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    if weights:
        model.load_state_dict(load_file(weights))
    return model.eval()


def knn(rows: int, device: torch.device) -> KNN:
    """A bank of made-up features: what it costs does not depend on what it holds."""
    features = torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(0)).relu()
    return KNN(k=min(50, rows)).to(device).fit(oods.Activations(features=features))


def generator() -> GanVariation:
    """The generator that ``oodscope generate gan`` trains, before its training: its speed is the same."""
    torch.manual_seed(0)
    return GanVariation(StyleGenerator(GeneratorShape()))


class Meter:
    """Calls per second of a function, in rounds between two looks at the clock."""

    def __init__(self, device: torch.device, seconds: float) -> None:
        self.device, self.seconds = device, seconds

    def __call__(self, function: Callable[[], Any]) -> float:
        for _ in range(3):
            function()
        self.wait()
        if self.device.type == "cuda":
            torch.cuda.set_sync_debug_mode("error")
        try:
            once = self.round(function, 2)
            once = self.round(function, max(2, int(self.seconds / once)))
        finally:
            if self.device.type == "cuda":
                torch.cuda.set_sync_debug_mode("default")
        return 1 / once

    def round(self, function: Callable[[], Any], calls: int) -> float:
        """Seconds per call."""
        started = time.perf_counter()
        for _ in range(calls):
            function()
        self.wait()
        return (time.perf_counter() - started) / calls

    def wait(self) -> None:
        if self.device.type == "cuda":
            mode = torch.cuda.get_sync_debug_mode()
            torch.cuda.set_sync_debug_mode("default")
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode(mode)


def stepper(scorer: Scorer, variation: Variation, images: Tensor) -> tuple[Callable[[], None], FastPipeline]:
    """A function that makes one Metropolis-Hastings step of all chains, as ``search`` does."""
    device, domain, chains = scorer.device, variation.domain, len(images)
    pipeline, sampler = FastPipeline(scorer, variation, chains), create_sampler("mh")
    visits = Visits(chains, domain.dimension, [10**9], device)
    energy_of = Standardised(0.0, 1.0).on(device)
    noise = Noise(0, 0, device)
    target = Target(pipeline, images if variation.conditional else None, energy_of, domain, noise, visits)
    if variation.identity is None:
        start = domain.draw(chains, noise.generator)
    else:
        start = torch.tensor(variation.identity, device=device).repeat(chains, 1)
    state = sampler.begin(target, start)
    visits.begin()
    numbers = iter(range(10**9))
    return lambda: sampler.move(target, state, next(numbers)), pipeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--bank", type=int, default=50_000)
    parser.add_argument("--weights", help="safetensors of this network")
    options = parser.parse_args()
    device, began = torch.device(options.device), time.perf_counter()
    meter = Meter(device, options.seconds)
    classifier = oods.Classifier(
        network(options.weights),
        oods.Preprocess(size=32, mean=(0.49, 0.48, 0.45), std=(0.25, 0.24, 0.26)),
        device=options.device,
    )
    scorers = {
        "ebo": Scorer(classifier, oods.create_detector("ebo")),
        "knn": Scorer(classifier, knn(options.bank, device)),
    }
    report: dict[str, Any] = {"device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu", "rows": []}

    def add(batch: int, what: str, calls: float, of: float | None = None, **more: Any) -> None:
        row = {"batch": batch, "what": what, "evaluations_per_s": round(calls * batch), **more}
        report["rows"].append(row if of is None else {**row, "share_of_bare": round(calls / of, 4)})

    with torch.no_grad():
        for batch in options.batches:
            largest = batch == max(options.batches)
            images = torch.rand(batch, *SHAPE, generator=torch.Generator().manual_seed(1)).to(device)
            prepared = scorers["ebo"].pixels(images)
            trunk = Trunk(classifier).halve()
            compiled = Compiled(trunk.__call__, "network")
            bare = meter(lambda: compiled(prepared))  # noqa: B023  # called at once
            add(batch, "forward, compiled", bare, note=compiled.note)
            add(batch, "forward, eager", meter(lambda: trunk(prepared)))  # noqa: B023
            detector, head = scorers["knn"].detector, trunk.head

            def forward_knn() -> None:
                features = compiled(prepared)  # noqa: B023  # called at once
                with quick_products(device):
                    detector.score_batch(oods.Activations.of_batch({"features": features}, head))  # noqa: B023

            both = meter(forward_knn)
            add(batch, "forward + knn, no search", both)
            for name in ("affine", "color", "affine+color", "gan") if largest else ("affine",):
                made = generator() if name == "gan" else create_variation(name, image_shape=SHAPE)
                variation = made.to(device)
                for scorer, bound in (("ebo", bare), ("knn", both)):
                    step, pipeline = stepper(scorers[scorer], variation, images)
                    add(batch, f"search {name}, {scorer}", meter(step), bound, notes=pipeline.notes)
        budget = 50 if device.type == "cuda" else 5
        scorer, variation = scorers["ebo"], create_variation("affine", image_shape=SHAPE)
        found = search(
            scorer,
            variation,
            create_sampler("mh"),
            budget,
            images,
            block=max(options.batches),
            fast=True,
            energy=Standardised.of(scorer.score(images[:1000])),
        )
    report["float32 against bf16"] = {
        "spread of clean scores": float(found.clean.std()) if found.clean is not None else None,
        "mean difference": float(found.precision_gap.mean()),
        "largest difference": float(found.precision_gap.abs().max()),
        "chains whose best was not below clean in float32": int((found.improved_at == 0).sum()),
        "seconds of the whole search": found.seconds,
        "budget": budget,
    }
    report["seconds"] = round(time.perf_counter() - began, 1)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
