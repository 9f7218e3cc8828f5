"""Publish: the activations of a network on a benchmark, so that anybody can run a detector on them."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from oodscope.activations.activations import Activations
from oodscope.activations.store.published import write_published
from oodscope.activations.store.store import ActivationStore
from oodscope.data.benchmark import Benchmark
from oodscope.execution.progress import SILENT, Progress
from oodscope.leaderboard.records.folder import table_lists
from oodscope.leaderboard.records.keeping import PinnedLists, write_lists
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.evaluation.run import Result


def pin_lists(board: Path | str, run: Path | str) -> Path:
    """Write the lists of a run's benchmark into the board; entries with other images are refused from then on."""
    result = Result.load(run)
    record = result.record
    pinned = PinnedLists(name=record.benchmark, version=record.benchmark_version, sets=table_lists(result.scores))
    return write_lists(Path(board), pinned)


PUBLISHED = ("id_train", "id_val", "id_test", "near", "far", "csid", "ood_val")


def publish_activations(
    classifier: Classifier,
    benchmark: Benchmark,
    folder: Path | str,
    *,
    store: ActivationStore | None = None,
    batch_size: int = 256,
    progress: Progress = SILENT,
) -> Path:
    """Write logits, features and labels of every set that a detector learns from, is tuned on or is judged on."""
    classifier = classifier.with_default_transform(benchmark.transform)
    kept = store or ActivationStore()

    def sets() -> Iterator[tuple[str, str, pd.DataFrame, Activations]]:
        for role, images in benchmark.members():
            if role in PUBLISHED:
                listed = {
                    "sample_id": images.sample_ids(),
                    "label": benchmark.id_labels(role, images),
                    "own_class": images.labels,
                }
                found = kept.extract(classifier, images, batch_size=batch_size, progress=progress)
                yield images.name, role, pd.DataFrame(listed), found

    about = {
        "benchmark": benchmark.name,
        "benchmark_version": benchmark.version,
        "model": classifier.name,
        "weights_hash": classifier.fingerprint,
        "precision": classifier.precision,
    }
    return write_published(folder, sets(), classifier.head, about)
