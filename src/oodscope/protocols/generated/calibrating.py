"""How far a network's confidence can be believed on shifted images: calibration errors, set by set."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from oodscope.base.errors import DataError
from oodscope.data import Benchmark, ImageSet, Role
from oodscope.metrics import calibration
from oodscope.models import Classifier
from oodscope.models.ensemble import Ensemble
from oodscope.protocols.generated.opinion import Extract
from oodscope.results import Measurement, Result
from oodscope.results.generated import NETWORKS, PROTOCOL, RELIABILITY, WORST, with_calibration

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
    shared = _shared(result)
    rows, bins = [], {}
    for role, images in benchmark.members():
        if role in JUDGED:
            labels = benchmark.id_labels(role, images)
            probabilities = softmax(extract(classifier, images).logits.cpu().numpy().astype(np.float64), axis=1)
            rows += list(_rows(shared, role, images, probabilities, labels))
            found = calibration.reliability(probabilities.max(axis=1), probabilities.argmax(axis=1) == labels, BINS)
            bins[images.name] = {
                key: getattr(found, key).tolist() for key in ("count", "confidence", "accuracy")
            }
    real = [row for row in rows if row.metric == "ece15" and row.group == "csid" and row.set not in generated]
    if real:
        worst = max(real, key=lambda row: row.value)
        rows.append(Measurement(**shared, set=WORST, group="csid", metric="ece15", value=worst.value, n_id=worst.n_id))
    return with_calibration(result, rows, **{RELIABILITY: bins, NETWORKS: _fingerprints(classifier)})


def _rows(
    shared: dict[str, Any],
    role: Role,
    images: ImageSet,
    probabilities: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> Iterator[Measurement]:
    confidence, correct = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    values = {
        "ece15": calibration.expected_calibration_error(confidence, correct, BINS),
        "adaptive_ece15": calibration.adaptive_calibration_error(confidence, correct, BINS),
        "classwise_ece15": calibration.classwise_calibration_error(probabilities, labels, BINS),
        "confidence": float(confidence.mean()),
        "accuracy": float(correct.mean()),
    }
    group = "id" if role == "id_test" else "csid"
    for metric, value in values.items():
        yield Measurement(**shared, set=images.name, group=group, metric=metric, value=value, n_id=len(images))


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
        "recipe": result.scores.metadata.get("recipe", ""),
        "protocol": PROTOCOL,
        "seed": record.seed,
    }
