"""How long judging a generated set will take, from a few images, before it starts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.document.wording import duration
from oodscope.execution.pace import pace
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.generated.checking import GeneratedChecks, checked_sets
from oodscope.runs.generated.judging import fitting_batch
from oodscope.runs.generated.opinion import MOST, looked_at

LOOKED = 32
"""Images that a network is timed on."""


@dataclass(frozen=True)
class Estimate:
    """What judging asks for, and how long its passes through networks take.

    Parameters
    ----------
    networks : name, images and seconds of each; what is in the store already is not known here.
    """

    networks: tuple[tuple[str, int, float], ...]

    @property
    def seconds(self) -> float:
        return sum(seconds for _, _, seconds in self.networks)

    def __str__(self) -> str:
        passes, (slowest, _, most) = sum(count for _, count, _ in self.networks), max(self.networks, key=itemgetter(2))
        return (
            f"about {duration(self.seconds)} for {passes:,} passes of an image through one of {len(self.networks)} "
            f"networks ({slowest}: {duration(most)})"
        )


def estimate(tested: Sequence[Classifier], benchmark: Benchmark, checks: GeneratedChecks) -> Estimate:
    """Time a batch of every network, and multiply by the images that it is shown.

    Parameters
    ----------
    tested : the networks that ``evaluate`` is called with; their detectors may read every set.
    """
    known = [images for _, images in checked_sets(benchmark).values()]
    every, checked = sum(len(images) for _, images in benchmark.members()), sum(map(len, known))
    asked = [*((each, every) for each in tested), *((each, checked) for each in (*checks.judges, *checks.makers))]
    if benchmark.id_train is not None:
        looked = [] if checks.features is None else known
        count = min(MOST, len(benchmark.id_train)) + sum(looked_at(images, known) for images in looked)
        asked.append((checks.features or checks.judges[0], count))
    counts = Counter[str]()
    for network, count in asked:
        counts[network.fingerprint] += count
    once = {network.fingerprint: network for network, _ in asked}
    return Estimate(
        tuple(
            (network.name, counts[key], counts[key] * _per_image(network, benchmark, known[0]))
            for key, network in once.items()
        )
    )


def _per_image(network: Classifier, benchmark: Benchmark, images: ImageSet) -> float:
    prepared = network.with_default_transform(benchmark.transform)
    rows = np.arange(min(LOOKED, len(images), fitting_batch(prepared, LOOKED)))
    pictures = images.images(rows)
    return pace(lambda: prepared.forward(prepared.prepare(pictures)).logits.cpu()) / len(rows)
