"""Evaluate detectors for a classifier on a benchmark of images."""

from collections.abc import Callable, Iterable

from torch import nn

from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import OodscopeError
from oodscope.data.benchmark import Benchmark
from oodscope.execution.progress import SILENT, Progress
from oodscope.metrics.interval import Intervals, check_intervals
from oodscope.metrics.metric import Tuning
from oodscope.models.classifier.classifier import Classifier
from oodscope.protocols.registry import Asked, read_protocols
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.pipeline import ALL, AskedDetectors, check_tuning, evaluate_extraction
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.scoring import score_benchmark


def evaluate(
    classifier: Classifier | nn.Module,
    benchmark: Benchmark,
    detectors: AskedDetectors = ALL,
    protocols: Asked | Iterable[Asked] = ("standard",),
    *,
    tune: Tuning = "default",
    store: ActivationStore | None = None,
    batch_size: int = 256,
    seed: int = 0,
    intervals: Intervals = "full",
    recipe: str = "",
    skip_inapplicable: bool = False,
    score: Callable[..., ScoreTable] = score_benchmark,
    progress: Progress = SILENT,
) -> Result:
    """Judge detectors on a benchmark.

    Every image goes through the network once (plus the passes that a detector's probes declare), and what
    was extracted before is not extracted again.

    Parameters
    ----------
    classifier : a ``Classifier``, or any module, which then sees images through the benchmark's preprocessing.
    detectors : names, detector objects, or ``"all"``: all that apply, the others listed with the reason. A
        detector named explicitly that does not apply is an error.
    protocols : names (``"standard"``, ``"full_spectrum"``, ...), objects with options, or ``{name: {option: value}}``;
        see ``oodscope list protocols``.
    tune : ``"default"`` takes hyper-parameters as given; ``"ood_val"`` searches them on ``id_val`` and ``ood_val``;
        ``"id_only"`` searches them on ``id_val`` and outliers made from it by shuffling tiles. Rows say which,
        and the three are ranked apart.
    store : where activations are kept; by default in the cache.
    batch_size : images per forward pass; the numbers do not depend on it beyond rounding.
    seed : of the bootstrap.
    intervals : ``"full"``: analytic where they exist, else from 1,000 bootstrap replicates; ``"fast"``: 200 of them;
        ``"none"``: values alone, without ranks.
    recipe : how the model was trained, for the record.
    skip_inapplicable : leave out named detectors that do not apply, and record why, as ``"all"`` does.
    score : makes the table of scores, as ``score_benchmark`` does; for those who have divided that work.
    progress : receives how far the work has come; ``ConsoleProgress()`` of ``oodscope.execution.console`` shows bars.

    Examples
    --------
    >>> result = oods.evaluate(clf, bench, ["msp", "knn"], protocols=["standard", "full_spectrum"])
    >>> result.table("full_spectrum").facts["metric"]
    'auroc'
    """
    asked = read_protocols(protocols)
    check_tuning(tune)
    check_intervals(intervals)
    if not isinstance(classifier, Classifier):
        classifier = Classifier(classifier)
    if benchmark.transform is not None:
        classifier = classifier.with_default_transform(benchmark.transform)
    _check_classes(classifier, benchmark)
    extraction = FromNetwork(classifier, store, batch_size, progress)
    return evaluate_extraction(
        extraction,
        benchmark,
        detectors,
        asked,
        tune=tune,
        seed=seed,
        recipe=recipe,
        intervals=intervals,
        skip_inapplicable=skip_inapplicable,
        score=score,
        progress=progress,
    )


def _check_classes(classifier: Classifier, benchmark: Benchmark) -> None:
    if not classifier.embedding and classifier.num_classes != len(benchmark.class_names):
        raise OodscopeError(
            f"the classifier knows {classifier.num_classes} classes, benchmark {benchmark.name!r} has "
            f"{len(benchmark.class_names)}; they do not belong together. If it holds some of the classes only, "
            "name those of the classifier (--classes FILE, or benchmark.in_classes); if its output is an embedding, "
            "say so (--embedding, or Classifier(..., embedding=True))"
        )
