"""ActivationStore: every image goes through a network once, ever."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from oodscope.activations.activations import Activations
from oodscope.activations.extract import Ask, run_network
from oodscope.activations.probes.probe import Probe
from oodscope.activations.store.column import StoredColumn
from oodscope.base.files import cache_root, storage_errors
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.classifier import Classifier

SCHEMA = 1
"""Raised whenever what a stored column means changes."""

BLOCK = 1024
"""Images per unit of work: what a kill can cost, and a fixed grid so that a resumed run repeats whole units."""


class ActivationStore:
    """Activations on disk, addressed by content.

    The address is a hash of weights, module structure and head, preprocessing, images, precision and schema;
    probe columns add their own key. A renamed file or a retrained network can therefore never be served
    another's numbers. A subset of a set is stored under its parent's address, so folds share rows.

    Parameters
    ----------
    root : folder; by default ``activations`` in the cache.

    Examples
    --------
    >>> store = oods.ActivationStore(folder)
    >>> first = store.extract(clf, bench.id_test)
    >>> store.forwarded, len(store.extract(clf, bench.id_test)), store.forwarded
    (80, 80, 80)
    """

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = Path(root) if root is not None else cache_root() / "activations"
        self._scratch: TemporaryDirectory[str] | None = None
        self.forwarded = 0
        """Images that this object sent through a network, each plain pass and each forward of a probe counted."""

    def extract(
        self,
        classifier: Classifier,
        images: ImageSet,
        *,
        probes: Sequence[Probe] = (),
        batch_size: int = 256,
        progress: Progress = SILENT,
    ) -> Activations:
        """The activations of a set: read where they are known, computed and kept where they are not."""
        folder = self._root_for(classifier) / _address(classifier, images)
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / "lock").acquire()
        with lock:
            columns = self._open(folder, classifier, images, probes)
            self._fill(columns, classifier, images, probes, batch_size, progress)
        return _gather(columns, classifier, images)

    def _root_for(self, classifier: Classifier) -> Path:
        """The store, or a folder that dies with this object where nothing could ever be found again."""
        if not classifier.uncached_reason:
            return self.root
        self._scratch = self._scratch or TemporaryDirectory(prefix="oodscope-")
        return Path(self._scratch.name)

    def _open(
        self, folder: Path, classifier: Classifier, images: ImageSet, probes: Sequence[Probe]
    ) -> dict[str, StoredColumn]:
        names = {"logits": "logits"}
        if classifier.head is not None:
            names["features"] = "features"
        names.update({probe.column: f"probe-{probe.key[:24]}" for probe in probes})
        return {name: StoredColumn(folder / f"{file}.bin", len(images.source)) for name, file in names.items()}

    def _fill(
        self,
        columns: dict[str, StoredColumn],
        classifier: Classifier,
        images: ImageSet,
        probes: Sequence[Probe],
        batch_size: int,
        progress: Progress,
    ) -> None:
        wanted = np.unique(images.rows)
        lacking = {name: column.missing(wanted) for name, column in columns.items()}
        every = np.unique(np.concatenate(list(lacking.values())))
        if len(every) == 0:
            return
        parent = ImageSet(images.name, images.source)
        asks = [
            self._ask(block, lacking, probes) for block in np.split(every, np.flatnonzero(np.diff(every // BLOCK)) + 1)
        ]
        with (
            progress.stage(f"extract {images.name}", len(every)) as advance,
            closing(run_network(classifier, parent, asks, batch_size)) as blocks,
        ):
            for ask, computed in zip(asks, blocks):
                for name, values in computed.items():
                    columns[name].write(ask.rows, values)
                self.forwarded += len(ask.rows) * ask.forwards
                advance(len(ask.rows))

    def _ask(self, block: NDArray[np.int64], lacking: dict[str, NDArray[np.int64]], probes: Sequence[Probe]) -> Ask:
        short = {name for name, rows in lacking.items() if np.isin(block, rows).any()}
        return Ask(block, bool(short & {"logits", "features"}), [probe for probe in probes if probe.column in short])


def _address(classifier: Classifier, images: ImageSet) -> str:
    key = fingerprint(
        [SCHEMA, classifier.precision, classifier.fingerprint, classifier.transform_key, images.source.key]
    )
    return f"{key[:2]}/{key[2:40]}"


def _gather(columns: dict[str, StoredColumn], classifier: Classifier, images: ImageSet) -> Activations:
    whole = len(images) == len(images.source) and bool((np.diff(images.rows) == 1).all())
    values = {name: column.read() if whole else column.read()[images.rows] for name, column in columns.items()}
    return Activations(
        logits=values.pop("logits"),
        features=values.pop("features", None),
        labels=images.labels,
        head=classifier.head,
        columns=values,
    )
