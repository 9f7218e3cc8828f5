"""How long judging a generated set will take, from a few images, before it starts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from oodscope.activations.store.store import ActivationStore
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.document.wording import duration
from oodscope.execution.pace import pace
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.generated.checking import GeneratedChecks, checked_sets
from oodscope.runs.generated.judging import fitting_batch
from oodscope.runs.generated.opinion import comparable, looked_at, reference

LOOKED = 32
"""Images that a network is timed on."""


@dataclass(frozen=True)
class Estimate:
    """What judging asks for, and how long its passes through networks take.

    Parameters
    ----------
    networks : name, images that are not in the store yet, and their seconds, of each.
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


def estimate(
    tested: Sequence[Classifier], benchmark: Benchmark, checks: GeneratedChecks, store: ActivationStore, seed: int = 0
) -> Estimate:
    """Time a batch of every network, and multiply by the images that it has not seen yet.

    Parameters
    ----------
    tested : the networks that ``evaluate`` is called with; their detectors may read every set.
    store, seed : those of ``judge_generated``.
    """
    known = [images for _, images in checked_sets(benchmark).values()]
    every = [images for _, images in benchmark.members()]
    asked = [*((each, every) for each in tested), *((each, known) for each in (*checks.judges, *checks.makers))]
    if benchmark.id_train is not None:
        compared = comparable(known)
        looked = [] if checks.features is None else [looked_at(images, compared, seed) for images in compared]
        looked.append(reference(benchmark.id_train, seed))
        asked.append((checks.features or checks.judges[0], looked))
    counts, once = Counter[str](), dict[str, Classifier]()
    for network, sets in asked:
        prepared = network.with_default_transform(benchmark.transform)
        counts[prepared.fingerprint] += sum(store.missing(prepared, images) for images in sets)
        once[prepared.fingerprint] = prepared
    return Estimate(
        tuple(
            (network.name, counts[key], counts[key] * _per_image(network, known[0]) if counts[key] else 0.0)
            for key, network in once.items()
        )
    )


def _per_image(network: Classifier, images: ImageSet) -> float:
    rows = np.arange(min(LOOKED, len(images), fitting_batch(network, LOOKED)))
    pictures = images.images(rows)
    return pace(lambda: network.forward(network.prepare(pictures)).logits.cpu()) / len(rows)
