"""The sanity of generated sets: whose class they look like, how near training they lie, what networks disagree on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.data.benchmark import Benchmark
from oodscope.data.images.decoding import as_rgb
from oodscope.data.imageset import ImageSet
from oodscope.generation.distances.perceptual import Perceptual
from oodscope.generation.sets.ensemble import check_disjoint
from oodscope.metrics.generated.information import Window
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.generated.opinion import (
    Closeness,
    Extract,
    Opinion,
    ask,
    closeness,
    comparable,
    equal_count,
    perceived,
)
from oodscope.runs.generated.run import Samples
from oodscope.runs.generated.sanity import Counts, Sanity, SetCheck, information_edges

CHECKED = ("id_val", "id_test", "near", "far", "csid")
KNOWN = ("id_val", "id_test", "csid")

SHOWN = 30
"""Images of each generated set that pages and figures show."""


@dataclass(frozen=True)
class GeneratedChecks:
    """Who checks generated sets, and by what.

    Parameters
    ----------
    generated : names of the generated sets of the benchmark. OOD ones carry the class that each image came from
        as their label, where they have one.
    judges : an ensemble that had no part in making the images: its mean prediction fills the confusion matrices, its
        mutual information the histograms.
    makers : the ensemble whose mutual information shaped or filtered them. What is judged on these images and is one
        of the makers, is marked.
    window : of the makers' mutual information that near images were kept by.
    features : the network in whose features Fréchet distances are measured; the first judge unless given.
    perceptual : such as ``lpips`` or a ``FeatureDistance``; without it no images are compared at equal length.
    originals : the images that those of a csid set were made from, row by row, by the name of the set.
    """

    generated: Sequence[str]
    judges: Sequence[Classifier]
    makers: Sequence[Classifier] = ()
    window: Window | None = None
    features: Classifier | None = None
    perceptual: Perceptual | None = None
    originals: Mapping[str, ImageSet] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.judges) < 2:
            raise DataError(f"an ensemble of judges needs two networks or more, not {len(self.judges)}")
        check_disjoint(self.makers, self.judges)


def named(networks: Sequence[Classifier]) -> dict[str, str]:
    """Fingerprints by name; networks of one name get numbers."""
    names = [each.name for each in networks]
    return {
        (name if names.count(name) == 1 else f"{name} {names[: number + 1].count(name)}"): networks[number].fingerprint
        for number, name in enumerate(names)
    }


def checked_sets(benchmark: Benchmark) -> dict[str, tuple[str, ImageSet]]:
    """Role and images of every set that is checked, by its name."""
    return {images.name: (role, images) for role, images in benchmark.members() if role in CHECKED}


def check_sets(
    benchmark: Benchmark, checks: GeneratedChecks, extract: Extract, seed: int
) -> tuple[Sanity, dict[str, Samples]]:
    """What is found out about each test set of a benchmark, and a few images of the generated ones."""
    sets = checked_sets(benchmark)
    for name in (*checks.generated, *checks.originals):
        if name not in sets:
            raise UnknownNameError("set", name, sets)
    every = [images for _, images in sets.values()]
    network, train = checks.features or checks.judges[0], benchmark.id_train
    distances = {} if train is None else closeness(train, every, network, extract, seed)
    found, samples = [], {}
    for name, (role, images) in sets.items():
        known = role in KNOWN or name in checks.generated
        source = _source_classes(benchmark, images) if known else np.full(len(images), -1)
        extract([*checks.judges, *checks.makers], images)
        judged = ask(checks.judges, images, extract)
        found.append(_check(role, images, source, judged, checks, extract, distances.get(name), benchmark))
        if name in checks.generated or role == "id_test":
            samples[name] = _samples(images, source, judged, checks.originals.get(name))
    sanity = Sanity(
        generated=tuple(checks.generated),
        class_names=benchmark.class_names,
        judges=named(checks.judges),
        makers=named(checks.makers),
        window=None if checks.window is None else (checks.window.low, checks.window.high),
        features=network.name if distances else "",
        frechet_images=equal_count(comparable(every)) if distances else 0,
        perceptual="" if checks.perceptual is None else checks.perceptual.name,
        sets=tuple(found),
    )
    return sanity, samples


def _check(
    role: str,
    images: ImageSet,
    source: NDArray[np.int64],
    judged: Opinion,
    checks: GeneratedChecks,
    extract: Extract,
    distance: Closeness | None,
    benchmark: Benchmark,
) -> SetCheck:
    classes, original = len(benchmark.class_names), checks.originals.get(images.name)
    made = ask(checks.makers, images, extract).information if len(checks.makers) > 1 else None
    compared = None
    if original is not None and checks.perceptual is not None:
        compared = perceived(images, original, checks.perceptual, checks.judges[0].device)
    return SetCheck(
        name=images.name,
        role=role,
        n=len(images),
        confusion=_confusion(source, judged.prediction, classes),
        information=_counts(judged.information, len(checks.judges), classes),
        made_information=() if made is None else _counts(made, len(checks.makers), classes),
        kept=None if made is None or checks.window is None else int(checks.window.keeps(made).sum()),
        perceptual=compared,
        **_closeness(distance),
        **_by_image(role, images.name in checks.generated, source, judged, classes),
    )


def _closeness(distance: Closeness | None) -> dict[str, Any]:
    if distance is None:
        return {}
    kernel = (distance.kernel.value, distance.kernel.interval.low, distance.kernel.interval.high)
    return {"frechet": distance.frechet, "frechet_infinity": distance.frechet_infinity, "kernel": kernel}


def _by_image(role: str, generated: bool, source: NDArray[np.int64], judged: Opinion, classes: int) -> dict[str, Any]:
    """What hardness at equal ID-ness is computed from; of real outliers, what judges take them for."""
    if role not in ("near", "far"):
        return {}
    if not generated:
        return {"taken_for": tuple(np.bincount(judged.prediction, minlength=classes).tolist())}
    if (source < 0).any():
        return {}
    given = judged.probability[np.arange(len(source)), source]
    return {
        "source": tuple(source.tolist()),
        "judged": tuple(judged.prediction.tolist()),
        "p_source": tuple(round(float(each), 4) for each in given),
    }


def _source_classes(benchmark: Benchmark, images: ImageSet) -> NDArray[np.int64]:
    """The class of the benchmark that each image came from; -1 where there is none."""
    if set(images.class_names) <= set(benchmark.class_names):
        return images.in_classes(benchmark.class_names).labels
    return np.full(len(images), -1, dtype=np.int64)


def _confusion(source: NDArray[np.int64], judged: NDArray[np.int64], classes: int) -> tuple[Counts, ...]:
    known = source >= 0
    if not known.any():
        return ()
    table = np.bincount(source[known] * classes + judged[known], minlength=classes * classes)
    return tuple(tuple(row) for row in table.reshape(classes, classes).tolist())


def _counts(information: NDArray[np.float64], members: int, classes: int) -> Counts:
    edges = information_edges(members, classes)
    # rounding may lift total disagreement above its bound by a hair
    return tuple(np.histogram(np.clip(information, edges[0], edges[-1]), edges)[0].tolist())


def _samples(images: ImageSet, source: NDArray[np.int64], judged: Opinion, originals: ImageSet | None) -> Samples:
    rows = _spread(source)
    shown, before = (
        None if each is None else np.stack([as_rgb(picture) for picture in each.images(rows)])
        for each in (images, originals)
    )
    assert shown is not None
    return Samples(shown, source[rows], judged.prediction[rows], before)


def _spread(source: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows from all over a set, as many of each class as of the others, if it has them."""
    turn, anywhere = np.zeros(len(source), dtype=np.int64), np.random.default_rng(0).permutation(len(source))
    for each in np.unique(source):
        own = anywhere[source[anywhere] == each]
        turn[own] = np.arange(len(own))
    return np.sort(np.lexsort((anywhere, turn))[:SHOWN]).astype(np.int64)
