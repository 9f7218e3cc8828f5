"""From a classifier and in-distribution images to a scorer whose threshold keeps a promise."""

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import SetProbe
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import DataError
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.deploy.scorer import Scorer, check_applies
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.registry import requested_detector
from oodscope.execution.progress import SILENT, Progress
from oodscope.metrics.rejection.conformal import Kind, calibrate, check_enough
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.origin import ModelOrigin

_PACKAGES = ("oodscope", "torch", "torchvision", "timm", "numpy", "pillow", "safetensors")


def fit_scorer(
    classifier: Classifier,
    detector: str | Detector,
    calibration: ImageSet,
    train: ImageSet | None = None,
    *,
    target: float = 0.05,
    guarantee: Kind = "conformal",
    confidence: float = 0.95,
    origin: ModelOrigin | None = None,
    store: ActivationStore | None = None,
    batch_size: int = 256,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Scorer:
    """Fit a detector and draw its threshold through the scores of images that it was not fitted to.

    The promise bounds false alarms on in-distribution images like the calibration images, and says nothing about
    outliers or shifted images. It holds if neither network nor detector has learned from the calibration images. The
    detector has not: one that learns from held-out images gets a random half of them, and only the other half
    calibrates; images that also lie among the training images are refused. The network is your word.

    Parameters
    ----------
    calibration : held-out in-distribution images; labels are needed only by detectors that learn from held-out labels.
    train : in-distribution training images with labels, for detectors that learn from them.
    target, guarantee, confidence : see ``oodscope.metrics.rejection.conformal.calibrate``.
    origin : which architecture of the zoo the network is, so that the saved scorer can make it again.
    store : where the activations of training images are kept; by default in the cache.
    seed : of the halves.

    Examples
    --------
    >>> scorer = oods.fit_scorer(clf, "knn", bench.id_val, bench.id_train, target=0.1)
    >>> scorer.calibration.guarantee.kind
    'conformal'
    """
    if isinstance(detector, str):
        detector = requested_detector(detector)
    check_applies(detector, classifier)
    class_names = _class_names(classifier, train, calibration)
    _check_disjoint(train, calibration)
    learn, judge = _halves(detector, calibration, seed)
    try:
        check_enough(len(judge), target, guarantee, confidence)
    except DataError as error:
        if learn is None:
            raise
        raise DataError(f"{error}, for {detector.name} learns from the other {len(learn)}") from error
    store = store or ActivationStore()

    def extract(images: ImageSet | None) -> Activations | None:
        if images is None or not detector.learns:
            return None
        named = _relabelled(images, class_names)
        # what only held-out images are asked for is not worth passes over all training images
        wide = images is learn or learn is None
        probes = [probe for probe in detector.probes if wide or not isinstance(probe, SetProbe)]
        return store.extract(classifier, named, probes=probes, batch_size=batch_size, progress=progress)

    wants_train = Needs.TRAIN in detector.needs or learn is None
    detector.to(classifier.device).fit(extract(train if wants_train else None), extract(learn))
    scorer = Scorer(classifier, detector, class_names=class_names, origin=origin)
    scores = scorer.score(judge, batch_size=batch_size, progress=progress)
    scorer.calibration = calibrate(scores, target, guarantee, confidence)
    scorer.provenance = _provenance(train, learn, judge)
    return scorer


def _class_names(classifier: Classifier, train: ImageSet | None, calibration: ImageSet) -> tuple[str, ...]:
    """Those of the training images, else of the calibration images; numbers where neither has labels."""
    for images in (train, calibration):
        if images is not None and bool((images.labels != UNLABELLED).any()):
            if len(images.class_names) != classifier.num_classes:
                raise DataError(
                    f"set {images.name!r} has {len(images.class_names)} classes, the classifier knows "
                    f"{classifier.num_classes}; they do not belong together"
                )
            return images.class_names
    return tuple(str(number) for number in range(classifier.num_classes))


def _relabelled(images: ImageSet, class_names: tuple[str, ...]) -> ImageSet:
    """The same images with labels that index ``class_names``."""
    if images.class_names == class_names or bool((images.labels == UNLABELLED).all()):
        return images
    position = {name: number for number, name in enumerate(class_names)}
    if unknown := sorted(set(images.class_names) - set(position)):
        raise DataError(f"set {images.name!r} has the class {unknown[0]!r}, which the training images do not have")
    labels = np.array([position[name] for name in images.class_names])[images.labels]
    return ImageSet(images.name, images.source, labels, class_names, rows=images.rows)


def _check_disjoint(train: ImageSet | None, calibration: ImageSet) -> None:
    if train is None:
        return
    known = set(train.digests())
    count = sum(digest in known for digest in calibration.digests())
    if count:
        raise DataError(
            f"{count} of {len(calibration)} calibration images also lie among the training images; the promise needs "
            "images that nothing was fitted to"
        )


def _halves(detector: Detector, calibration: ImageSet, seed: int) -> tuple[ImageSet | None, ImageSet]:
    """What the detector may learn from held-out images, and what calibrates."""
    if Needs.HELD_OUT not in detector.needs:
        return None, calibration
    order = np.random.default_rng(seed).permutation(len(calibration))
    half = len(calibration) // 2
    if half < 1:
        raise DataError(f"{detector.name} learns from held-out images too; one calibration image cannot do both")
    return calibration.take(np.sort(order[:half]), "held out"), calibration.take(np.sort(order[half:]), "calibration")


def _provenance(train: ImageSet | None, learn: ImageSet | None, judge: ImageSet) -> dict[str, Any]:
    sets = {"train": train, "held_out": learn, "calibration": judge}
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "sets": {
            role: {"n": len(images), "fingerprint": images.fingerprint} for role, images in sets.items() if images
        },
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }
