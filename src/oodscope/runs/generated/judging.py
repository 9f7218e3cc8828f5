"""``judge_generated``: detectors on generated sets beside real ones, and whether those sets deserve belief."""

from collections.abc import Sequence

from oodscope.activations.activations import Activations
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import DataError
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.calibrating import calibrate
from oodscope.runs.generated.checking import GeneratedChecks, check_sets
from oodscope.runs.generated.run import GeneratedStudy


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

    def extract(classifier: Classifier, images: ImageSet) -> Activations:
        prepared = classifier.with_default_transform(benchmark.transform)
        return kept.extract(prepared, images, batch_size=batch_size, progress=progress)

    for classifier, result in runs:
        if (result.record.benchmark, result.record.benchmark_version) != (benchmark.name, benchmark.version):
            raise DataError(f"the result of {classifier.name} is of another benchmark than {benchmark.name!r}")
    sanity, samples = check_sets(benchmark, checks, extract, seed)
    generated = tuple(checks.generated)
    results = [calibrate(result, classifier, benchmark, generated, extract) for classifier, result in runs]
    return GeneratedStudy(tuple(results), sanity, samples)
