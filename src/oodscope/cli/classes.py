"""Bring the classes of a benchmark and of a classifier together, by name."""

from pathlib import Path

from oodscope.cli.modelspec import PRETRAINED, ModelSpec
from oodscope.data.benchmark import Benchmark
from oodscope.data.images.labels import read_class_names
from oodscope.models.zoo.published import published_classes


def matched(benchmark: Benchmark, model: ModelSpec, classes: str | None) -> Benchmark:
    """The benchmark with labels in the classifier's classes, as far as their names are known.

    They are if ``classes`` names a file of them, or if published weights say what they were trained with and
    the benchmark speaks of the same classes. Otherwise the benchmark stays as it is, and the number of classes
    must agree.
    """
    if classes is not None:
        return benchmark.in_classes(read_class_names(Path(classes)))
    if model.files != [PRETRAINED]:
        return benchmark
    own = set(benchmark.class_names)
    known = max(published_classes(model.architecture), key=lambda names: len(own & set(names)), default=())
    # some shared names and one foreign is a mistake, which in_classes names
    return benchmark.in_classes(known) if own & set(known) else benchmark
