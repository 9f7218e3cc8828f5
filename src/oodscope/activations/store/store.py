"""ActivationStore: every image goes through a network once, ever, whoever asks."""

import os
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from oodscope.activations.activations import Activations
from oodscope.activations.columns import HeadLogits
from oodscope.activations.extract import Ask, feed_of, run_networks
from oodscope.activations.feeding import Feed
from oodscope.activations.probes.probe import Probe, SetProbe
from oodscope.activations.store.shards import DamagedError, ShardedColumn, column_folder
from oodscope.base.errors import ActivationError
from oodscope.base.files import cache_root
from oodscope.base.hashing import fingerprint
from oodscope.base.place import LocalPlace, Place, is_url, open_place
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.classifier import Classifier

Rows = NDArray[np.int64]
Storage = Literal["float32", "float16"]
LogitsFrom = Literal["stored", "from_head"]

VARIABLE = "OODSCOPE_ACTIVATIONS"
"""Of the environment: where activations are kept, a folder or a URL, if not in the cache."""

SCHEMA = 2
"""Raised whenever what a stored column means changes."""

BLOCK = 1024
"""Images per unit of work: batches never cross it, so that numbers are a function of address and block."""

SHARD = 16
"""Blocks that are published as one file: what a kill can cost, at most."""

PATIENCE = 20.0
"""Seconds of work after which a part of a shard is published, where the network is slow."""

AT_ONCE = 64 * 2**20
"""Bytes of a column up to which it is verified when it is opened: a fraction of a second, and damage heals."""

MOST_STORED = 4096
"""Classes up to which logits may be stored; beyond, they come from the head."""


def store_root() -> Path | str:
    """``$OODSCOPE_ACTIVATIONS``, else ``activations`` in the cache."""
    named = os.environ.get(VARIABLE)
    return named if named and is_url(named) else Path(named or cache_root() / "activations")


class ActivationStore:
    """Activations in published files, addressed by content.

    The address is a hash of weights, module structure and head, preprocessing, images, precision, storage and schema;
    probe columns add their own key, and those of a detector's own network have that network in the place of the
    classifier's. A renamed file or a retrained network can therefore never be served another's
    numbers. A subset of a set is stored under its parent's address, so folds share rows. There are no locks: a file is
    published whole, the first writer wins, and readers write nothing, so that a store may lie where they cannot.

    Parameters
    ----------
    root : folder, or the URL of an object store (``s3://bucket/folder``); by default ``$OODSCOPE_ACTIVATIONS``, else
        ``activations`` in the cache.
    storage : ``"float16"`` takes half the space; what does not fit its range is refused.
    logits : ``"from_head"`` computes them from the features when they are read, where the head is proved. Always so
        above 4,096 classes.

    Examples
    --------
    >>> store = oods.ActivationStore(folder)
    >>> first = store.extract(clf, bench.id_test)
    >>> store.forwarded, len(store.extract(clf, bench.id_test)), store.forwarded
    (80, 80, 80)
    """

    def __init__(
        self, root: Path | str | None = None, *, storage: Storage = "float32", logits: LogitsFrom = "stored"
    ) -> None:
        self.root = store_root() if root is None else root if is_url(str(root)) else Path(root)
        self.storage, self.logits = storage, logits
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
        (found,) = self.extract_many([classifier], images, probes=[probes], batch_size=batch_size, progress=progress)
        return found

    def missing(self, classifier: Classifier, images: ImageSet) -> int:
        """How many images of a set would have to pass through a network: what is not here yet."""
        return sum(len(ask.rows) for ask in self._open(classifier, images, ()).asks)

    def extract_many(
        self,
        classifiers: Sequence[Classifier],
        images: ImageSet,
        *,
        probes: Sequence[Sequence[Probe]] | None = None,
        batch_size: int = 256,
        progress: Progress = SILENT,
    ) -> list[Activations]:
        """The activations of a set under several networks: those with one preprocessing share each decoded batch.

        Parameters
        ----------
        probes : whose columns are wanted of each network; none by default.
        """
        wanted = probes or [()] * len(classifiers)
        wide = list(dict.fromkeys(probe for each in wanted for probe in each if isinstance(probe, SetProbe)))
        if wide:
            narrow = [[probe for probe in each if probe not in wide] for each in wanted]
            plain = self.extract_many(classifiers, images, probes=narrow, batch_size=batch_size, progress=progress)
            for probe in wide:
                places = [place for place, each in enumerate(wanted) if probe in each]
                own = [classifiers[place] for place in places]
                made = self.extract_many(own, probe.made_of(images), batch_size=batch_size, progress=progress)
                for place, found in zip(places, made):
                    column = _of_made(probe, found, classifiers[place].embedding)
                    plain[place] = plain[place].with_columns({probe.column: column})
            return plain
        for _ in range(2):
            works = [self._open(*each) for each in zip(classifiers, [images] * len(wanted), wanted, strict=True)]
            for group in _alike(works):
                with _Publisher() as publisher:
                    self._fill(group, images, batch_size, progress, publisher)
            for stored in (each for work in works for each in work.columns.values()):
                stored.refresh()
            if all(work.sound() for work in works):
                return [work.gathered(images) for work in works]
        reasons = [reason for work in works for column in work.columns.values() for reason in column.refused]
        raise ActivationError(f"{'; '.join(reasons) or self.root}: damaged, and cannot be replaced; delete it")

    def extract_sets(
        self,
        classifier: Classifier,
        asked: Sequence[tuple[ImageSet, Sequence[Probe]]],
        *,
        batch_size: int = 256,
        progress: Progress = SILENT,
    ) -> list[Activations]:
        """The activations of several sets, each with probes of its own, without a pause between two of them.

        Images of the next set are decoded, and shards of the last one published, while the network works on this one.
        """
        sources = [images.source.key for images, _ in asked]
        plain = [(images, [each for each in probes if not isinstance(each, SetProbe)]) for images, probes in asked]
        # parts of one set may share rows, which the first part then leaves nothing to do
        if len(set(sources)) == len(sources) > 1:
            works = [(images, self._open(classifier, images, probes)) for images, probes in plain]
            lacking = [(images, work) for images, work in works if work.asks]
            if len(lacking) > 1:
                self._fill_sets(lacking, batch_size, progress)
        return [
            self.extract(classifier, images, probes=probes, batch_size=batch_size, progress=progress)
            for images, probes in asked
        ]

    def _fill_sets(self, lacking: Sequence[tuple[ImageSet, "_Work"]], batch_size: int, progress: Progress) -> None:
        """Compute what one network lacks of several sets, each stream begun while the one before ends."""
        feeds: list[Feed] = []
        for images, work in reversed(lacking):
            parent = ImageSet(images.name, images.source)
            following = feeds[-1] if feeds else None
            feeds.append(feed_of(work.classifier, parent, work.asks, batch_size, following))
        try:
            with _Publisher() as publisher:
                for (images, work), stream in zip(lacking, reversed(feeds)):
                    self._fill([work], images, batch_size, progress, publisher, stream)
        finally:
            for stream in feeds:
                stream.close()

    def _place(self, classifier: Classifier) -> Place:
        """The store, or a folder that dies with this object where nothing could ever be found again."""
        if not classifier.uncached_reason:
            return open_place(self.root)
        self._scratch = self._scratch or TemporaryDirectory(prefix="oodscope-")
        return LocalPlace(self._scratch.name)

    def _open(self, classifier: Classifier, images: ImageSet, probes: Sequence[Probe]) -> "_Work":
        network = [classifier.precision, self.storage, classifier.fingerprint, classifier.transform_key]
        address = fingerprint([SCHEMA, *network, images.source.key])
        derived = classifier.head is not None and (self.logits == "from_head" or classifier.num_classes > MOST_STORED)
        names = {} if derived else {"logits": "logits"}
        if classifier.has_features:
            names["features"] = "features"
        names.update({probe.column: f"probe-{probe.key[:24]}" for probe in probes})
        # what another network says is found again under any classifier
        own = {probe.column: key for probe in probes if (key := probe.address(classifier)) is not None}
        homes = {name: fingerprint([SCHEMA, self.storage, *key, images.source.key]) for name, key in own.items()}
        place = self._place(classifier)
        columns = {}
        for name, file in names.items():
            home = homes.get(name, address)
            columns[name] = ShardedColumn(place, column_folder(home, file), f"{home}/{file}", len(images.source))
        return _Work(classifier, columns, np.unique(images.rows), probes, self.storage)

    def _fill(
        self,
        works: Sequence["_Work"],
        images: ImageSet,
        batch_size: int,
        progress: Progress,
        publisher: "_Publisher",
        stream: Feed | None = None,
    ) -> None:
        """Compute what some networks lack, all of them the same rows, and publish it shard by shard."""
        asks = [work.asks for work in works]
        if not asks[0]:
            return
        for work in works:
            work.begin()
        parent = ImageSet(images.name, images.source)
        total = sum(len(ask.rows) for ask in asks[0])
        streams = run_networks([work.classifier for work in works], parent, asks, batch_size, stream)
        with progress.stage(f"extract {images.name}", total) as advance, closing(streams) as blocks:
            for place, computed in enumerate(blocks):
                for work, ask, columns in zip(works, (each[place] for each in asks), computed):
                    work.gather(ask, columns)
                    self.forwarded += len(ask.rows) * ask.forwards
                    following = asks[0][place + 1].rows[0] if place + 1 < len(asks[0]) else None
                    work.publish(publisher, following)
                advance(len(asks[0][place].rows))


def _of_made(probe: SetProbe, made: Activations, embedding: bool) -> torch.Tensor:
    if embedding:  # what such a network puts out are its features
        return probe.of_made(made.logits, made.logits)
    return probe.of_made(made.logits, made.features if "features" in made else None)


_Pieces = list[tuple[Rows, NDArray[Any]]]
"""Rows of a column and their values, block by block."""


@dataclass
class _Work:
    """One network's columns of a set, what they lack, and what was computed since the last publication."""

    classifier: Classifier
    columns: dict[str, ShardedColumn]
    wanted: Rows
    probes: Sequence[Probe]
    storage: Storage
    _ready: dict[str, _Pieces] = field(default_factory=dict)
    _since: float = field(default_factory=perf_counter)

    def __post_init__(self) -> None:
        self.lacking = {name: column.missing(self.wanted) for name, column in self.columns.items()}
        every = np.unique(np.concatenate(list(self.lacking.values())))
        blocks = np.split(every, np.flatnonzero(np.diff(every // BLOCK)) + 1) if len(every) else []
        self.asks = [self._ask(block) for block in blocks]

    def _ask(self, block: Rows) -> Ask:
        short = {name for name, rows in self.lacking.items() if np.isin(block, rows).any()}
        return Ask(block, bool(short & {"logits", "features"}), [each for each in self.probes if each.column in short])

    def begin(self) -> None:
        """Count the seconds of the first shard from here."""
        self._since = perf_counter()

    def gather(self, ask: Ask, columns: dict[str, NDArray[np.float32]]) -> None:
        """Take what was computed of one block, as far as it is lacking."""
        for name, values in columns.items():
            if name in self.columns:
                new = np.isin(ask.rows, self.lacking[name])
                if new.any():
                    rows, values = (ask.rows, values) if new.all() else (ask.rows[new], values[new])
                    self._ready.setdefault(name, []).append((rows, self._stored(name, values)))

    def _stored(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if self.storage == "float32" or values.dtype.kind != "f":
            return values
        with np.errstate(over="ignore"):
            short = values.astype(np.float16)
        if np.isinf(short[np.isfinite(values)]).any():
            most = np.abs(values[np.isfinite(values)]).max()
            raise ActivationError(f"{name} reach {most:.3g}, more than float16 can hold; use storage='float32'")
        return short

    def publish(self, publisher: "_Publisher", following: int | None) -> None:
        """Publish what was computed, if its shard ends here or took long."""
        last = next((int(rows[-1]) for pieces in self._ready.values() for rows, _ in reversed(pieces)), 0)
        seconds, size = perf_counter() - self._since, BLOCK * SHARD
        if following is not None and following // size == last // size and seconds < PATIENCE:
            return
        about = {
            "network": self.classifier.name,
            "device": _device_name(self.classifier.device),
            "torch": torch.__version__,
            "seconds": seconds,
        }
        publisher.submit([(self.columns[name], pieces) for name, pieces in self._ready.items()], about, size)
        self._ready, self._since = {}, perf_counter()

    def sound(self) -> bool:
        """Whether all that is wanted is there, and what is verified at once is whole."""
        for column in self.columns.values():
            if len(column.missing(self.wanted)):
                return False
            try:
                if column.nbytes <= AT_ONCE:
                    column.verify()
            except DamagedError:
                return False
        return True

    def gathered(self, images: ImageSet) -> Activations:
        whole = len(images) == len(images.source) and bool((np.diff(images.rows) == 1).all())
        values: dict[str, Any] = {
            name: column if whole else column[images.rows] for name, column in self.columns.items()
        }
        head, features = self.classifier.head, values.pop("features", None)
        logits = values.pop("logits") if "logits" in values else HeadLogits(features, head)  # type: ignore[arg-type]
        found = Activations(logits=logits, features=features, labels=images.labels, head=head, columns=values)
        devices = {shard.about.get("device") for column in self.columns.values() for shard in column.shards}
        found.made_on = frozenset(filter(None, devices))
        return found


class _Publisher:
    """One thread that joins, packs and publishes while the network works; at most two shards wait for it."""

    def __enter__(self) -> "_Publisher":
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        return self

    def submit(self, shard: Sequence[tuple[ShardedColumn, _Pieces]], about: dict[str, Any], size: int) -> None:
        """Publish the columns of one shard, each from the pieces that were computed of it."""
        self._waiting.append(self._pool.submit(self._publish, shard, about, size))
        while len(self._waiting) > 2:
            self._waiting.popleft().result()

    def _publish(self, shard: Sequence[tuple[ShardedColumn, _Pieces]], about: dict[str, Any], size: int) -> None:
        for column, pieces in shard:
            rows, values = (np.concatenate(parts) for parts in zip(*pieces))
            column.publish(rows, values, about, size)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._pool.shutdown(wait=True)
        for future in self._waiting:
            if kind is None:
                future.result()


def _alike(works: Iterable[_Work]) -> list[list[_Work]]:
    """Networks that read the same rows through the same preprocessing, together."""
    groups: dict[str, list[_Work]] = {}
    for work in works:
        rows = [ask.rows for ask in work.asks]
        key = fingerprint(work.classifier.transform_key, str(work.classifier.device), *rows)
        groups.setdefault(key, []).append(work)
    return list(groups.values())


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
