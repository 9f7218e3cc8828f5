"""``judge_generated``: detectors on generated sets beside real ones, and whether those sets deserve belief."""

from collections.abc import Sequence

from oodscope.activations.activations import Activations
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import DataError
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Prefixed, Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.calibrating import calibrate
from oodscope.runs.generated.checking import GeneratedChecks, check_sets
from oodscope.runs.generated.run import GeneratedStudy

PIXELS = 32 * 128 * 128
"""Of a batch on a processor: larger maps leave its caches, and efficientnet-lite2 took three times as long."""


def fitting_batch(network: Classifier, most: int) -> int:
    """Images that a network is shown at once."""
    side = network.transform.size if isinstance(network.transform, Preprocess) else 0
    if network.device.type != "cpu" or not side:
        return most
    return max(1, min(most, PIXELS // side**2))


def judge_generated(
    runs: Sequence[tuple[Classifier, Result]],
    benchmark: Benchmark,
    checks: GeneratedChecks,
    *,
    store: ActivationStore | None = None,
    batch_size: int = 256,
    seed: int = 0,
    progress: Progress = SILENT,
) -> GeneratedStudy:
    """Judge generated sets: detectors and calibration on them, their sanity, and whether rankings on them hold.

    Near images should look like the training images and belong to none of its classes; shifted ones should look unlike
    them and keep their class (Mukhoti et al., "Raising the Bar on the Evaluation of Out-of-Distribution Detection",
    2022). ``write_generated`` makes a page of the study.

    Parameters
    ----------
    runs : every network with its result of ``evaluate`` on this benchmark, ``standard`` among its protocols.
    benchmark : generated near sets stand among ``near``, beside real ones; shifted sets among ``csid``, beside
        corruptions.
    checks : which sets were generated, who judges them, who had a part in making them.
    store : of activations; that of ``evaluate``, so that no image passes twice.
    seed : which images Fréchet distances are measured on.

    Examples
    --------
    >>> from oodscope.runs.generated.checking import GeneratedChecks
    >>> checks = GeneratedChecks(generated=[bench.near[0].name], judges=[clf, clf])
    >>> result = oods.evaluate(clf, bench, ["msp"])
    >>> oods.judge_generated([(clf, result)], bench, checks).networks == [clf.name]
    True
    """
    kept = store or ActivationStore()

    def extract(networks: Sequence[Classifier], images: ImageSet) -> list[Activations]:
        prepared = [each.with_default_transform(benchmark.transform) for each in networks]
        size = min(fitting_batch(each, batch_size) for each in prepared)
        shown = Prefixed(progress, networks[0].name if len(networks) == 1 else f"{len(networks)} networks")
        return kept.extract_many(prepared, images, batch_size=size, progress=shown)

    for classifier, result in runs:
        if (result.record.benchmark, result.record.benchmark_version) != (benchmark.name, benchmark.version):
            raise DataError(f"the result of {classifier.name} is of another benchmark than {benchmark.name!r}")
    sanity, samples = check_sets(benchmark, checks, extract, seed)
    generated = tuple(checks.generated)
    results = [calibrate(result, classifier, benchmark, generated, extract) for classifier, result in runs]
    return GeneratedStudy(tuple(results), sanity, samples)
