"""How far a network's confidence can be believed on shifted images: calibration errors, set by set."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from oodscope.base.errors import DataError
from oodscope.data.benchmark import Benchmark, Role
from oodscope.metrics.calibration.calibration import Reliability, equal_mass_reliability, reliability
from oodscope.metrics.calibration.classwise import classwise_calibration_error, classwise_interval
from oodscope.metrics.interval import wilson_interval
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.results.measurement import Measurement
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.opinion import Extract
from oodscope.runs.generated.run import NETWORKS, PROTOCOL, RELIABILITY, WORST, with_calibration

BINS = 15
JUDGED: tuple[Role, ...] = ("id_test", "csid")


def calibrate(
    result: Result, classifier: Classifier, benchmark: Benchmark, generated: tuple[str, ...], extract: Extract
) -> Result:
    """The result of a network with rows of its calibration on ``id_test`` and on every csid set.

    The largest error over the csid sets that were not generated is a row too: what the paper sets beside the error on a
    generated set is the worst of the corruptions.
    """
    if result.record.model_fingerprint != classifier.fingerprint:
        raise DataError(f"the result of {result.record.model} is not one of the network {classifier.name}")
    shared, rows, bins = _shared(result), list[Measurement](), dict[str, Any]()
    for role, images in benchmark.members():
        if role in JUDGED:
            (known,) = extract([classifier], images)
            probabilities = softmax(known.logits.cpu().numpy().astype(np.float64), axis=1)
            labels = benchmark.id_labels(role, images)
            equal = reliability(probabilities.max(axis=1), probabilities.argmax(axis=1) == labels, BINS)
            rows += _rows(
                shared | {"set": images.name, "group": role.removesuffix("_test")}, equal, probabilities, labels
            )
            bins[images.name] = _plain(equal)
    real = [row for row in rows if row.metric == "ece15" and row.group == "csid" and row.set not in generated]
    if real:
        worst = max(real, key=lambda row: row.value)
        rows.append(Measurement(**shared, set=WORST, group="csid", metric="ece15", value=worst.value, n_id=worst.n_id))
    return with_calibration(result, rows, **{RELIABILITY: bins, NETWORKS: _fingerprints(classifier)})


def _rows(
    shared: dict[str, Any], equal: Reliability, probabilities: NDArray[np.float64], labels: NDArray[np.int64]
) -> Iterator[Measurement]:
    seed, confidence = shared["seed"], probabilities.max(axis=1)
    correct = probabilities.argmax(axis=1) == labels
    mass = equal_mass_reliability(confidence, correct, BINS)
    right = int(correct.sum())
    found = {
        "ece15": (equal.error, equal.interval(seed=seed)),
        "adaptive_ece15": (mass.error, mass.interval(seed=seed)),
        "classwise_ece15": (
            classwise_calibration_error(probabilities, labels, BINS),
            classwise_interval(probabilities, labels, BINS, seed=seed),
        ),
        "accuracy": (right / len(labels), wilson_interval(right, len(labels))),
    }
    for metric, (value, interval) in found.items():
        yield Measurement(
            **shared,
            metric=metric,
            value=value,
            low=interval.low,
            high=interval.high,
            interval=interval.method,
            level=interval.level,
            n_id=len(labels),
        )


def _plain(bins: Reliability) -> dict[str, list[float]]:
    """What a diagram shows, as JSON; an empty bin has neither confidence nor accuracy, and holds 0."""
    return {name: np.nan_to_num(getattr(bins, name)).tolist() for name in ("count", "confidence", "accuracy")}


def _fingerprints(classifier: Classifier) -> list[str]:
    """Of a network and, if it is an ensemble, of each member as a network of its own."""
    members = classifier.model.members if isinstance(classifier.model, Ensemble) else ()
    alone = [Classifier(each, classifier.transform, device=classifier.device) for each in members]
    return [classifier.fingerprint, *(each.fingerprint for each in alone)]


def _shared(result: Result) -> dict[str, Any]:
    record = result.record
    return {
        "run": record.id,
        "benchmark": record.benchmark,
        "benchmark_version": record.benchmark_version,
        "model": record.model,
        "recipe": result.scores.context.recipe,
        "protocol": PROTOCOL,
        "seed": record.seed,
    }
