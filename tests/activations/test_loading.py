"""The loader: several threads or processes, in order, never far ahead; and on the second run nothing is decoded."""

import pickle
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from oodscope.activations import feeding, lanes
from oodscope.activations import gauge as gauges
from oodscope.activations.feeding import cut, feed
from oodscope.activations.store.store import ActivationStore
from oodscope.data.benchmark import Benchmark
from oodscope.data.images import encoded
from oodscope.data.images.arrays import JoinedSource
from oodscope.data.images.decoding import UnreadableImageError
from oodscope.data.images.files import FileSource
from oodscope.data.images.folders import open_folder
from oodscope.data.images.reframed import CroppedSource, PresizedSource
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.lookahead import ahead
from oodscope.execution.workers import session_workers, worker_session
from oodscope.models.classifier.classifier import Classifier
from oodscope.runs.evaluation.evaluate import evaluate
from tests.tiny import classifier, images, imageset, network


def write(folder, count, seed, side=8):
    pixels, labels = images(count, seed)
    for row, (image, label) in enumerate(zip(pixels, labels)):
        target = folder / f"class {label}" / f"{row:04}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).resize((side, side)).save(target)
    return folder


class TestAhead:
    @pytest.mark.parametrize("workers", [1, 2, 7])
    def test_order_is_kept_whoever_finishes_first(self, workers):
        def work(item):
            time.sleep(0.002 * (item % 3))
            return item * item

        assert list(ahead(range(40), work, workers=workers)) == [item * item for item in range(40)]

    @pytest.mark.parametrize(("depth", "workers"), [(1, 1), (1, 3), (4, 2)])
    def test_never_further_ahead_than_allowed(self, depth, workers):
        started, taken = [], 0
        worst = 0
        for _ in ahead(range(60), started.append, depth=depth, workers=workers):
            taken += 1
            time.sleep(0.001)
            worst = max(worst, len(started) - taken)
        assert 0 < worst < depth + workers
        assert taken == 60

    def test_an_error_comes_in_its_place(self):
        seen = []
        with pytest.raises(ZeroDivisionError):
            seen.extend(ahead([4, 2, 0, 1], lambda item: 4 // item, workers=2))
        assert seen == [1, 2]

    def test_who_stops_early_leaves_no_thread_and_no_work(self):
        before, started = set(threading.enumerate()), []

        def work(item):
            started.append(item)
            time.sleep(0.005)

        stream = ahead(range(1000), work, depth=100, workers=2)
        next(stream)
        stream.close()
        for thread in set(threading.enumerate()) - before:
            thread.join(timeout=5)
            assert not thread.is_alive()
        assert len(started) < 50  # of the hundred that were waiting for a thread


@pytest.mark.parametrize("batch_size", [1, 15, 16, 17, 64])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batches_do_not_depend_on_threads(tmp_path, monkeypatch, threads, batch_size):
    monkeypatch.setattr(feeding, "threads", lambda: threads)
    opened, clf = open_folder("x", write(tmp_path, 50, 0, side=11)), classifier()
    rows = np.arange(50)[::-1].copy()
    found = list(feed(clf, opened, cut(rows, batch_size)))
    expected = [clf.prepare(opened.images(rows[at : at + batch_size])) for at in range(0, 50, batch_size)]
    assert len(found) == len(expected)
    for ours, plain in zip(found, expected):
        assert torch.equal(ours, plain)
        assert ours.stride() == plain.stride()  # another layout in memory would change the last bits of a convolution


def test_activations_do_not_depend_on_threads(tmp_path, monkeypatch):
    opened = open_folder("x", write(tmp_path / "i", 60, 0))
    found = []
    for threads in (1, 4):
        monkeypatch.setattr(feeding, "threads", lambda threads=threads: threads)
        found.append(ActivationStore(tmp_path / str(threads)).extract(classifier(), opened, batch_size=20))
    assert found[0].logits.equal(found[1].logits)
    assert found[0].features.equal(found[1].features)


def test_a_transform_that_cannot_be_compared_runs_in_one_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(feeding, "threads", lambda: 4)
    used = set()

    def transform(picture):
        used.add(threading.get_ident())
        time.sleep(0.001)
        return torch.zeros(3, 8, 8)

    clf = Classifier(network(), transform, device="cpu")
    assert clf.uncached_reason
    used.clear()
    list(feed(clf, open_folder("x", write(tmp_path, 40, 0)), cut(np.arange(40), 10)))
    assert len(used) == 1


def test_memory_does_not_grow_with_the_set(tmp_path, monkeypatch):
    """Decoded images alive at once: no more than wait or are worked on, for 200 images as for 50."""
    monkeypatch.setattr(feeding, "threads", lambda: 3)
    source = type(open_folder("x", write(tmp_path / "first", 8, 0)).source)
    lock, alive, worst = threading.Lock(), 0, 0
    plain = source.picture

    def picture(self, index):
        nonlocal alive, worst
        with lock:
            alive += 1
            worst = max(worst, alive)
        return plain(self, index)

    monkeypatch.setattr(source, "picture", picture)
    peaks = []
    for count in (50, 200):
        opened = open_folder("x", write(tmp_path / str(count), count, 0))
        alive = worst = 0
        for batch in feed(classifier(), opened, cut(np.arange(count), 8)):
            time.sleep(0.002)
            with lock:
                alive -= len(batch)
        peaks.append(worst)
    # a batch being taken, and behind it at most the share of each of three threads twice
    assert max(peaks) <= 8 + 2 * 3 * 3
    assert peaks[1] <= peaks[0] + 3


def test_the_second_run_forwards_nothing_and_decodes_what_it_shows(tmp_path, monkeypatch):
    sets = {name: open_folder(name, write(tmp_path / name, 40, seed)) for seed, name in enumerate(("a", "b", "c"))}
    transform = Preprocess(size=8)

    def run():
        opened = {name: open_folder(name, tmp_path / name) for name in sets}
        bench = Benchmark("x", "1", opened["a"], id_train=opened["b"], far=(opened["c"],), transform=transform)
        return evaluate(network(), bench, ["msp", "mds"])

    first = run()
    assert first.record.forward_images == 120
    assert first.record.precision == "float32"
    decoded, decode = [], encoded.decode

    def counted(content, where):
        decoded.append(where())
        return decode(content, where)

    monkeypatch.setattr(encoded, "decode", counted)
    monkeypatch.setattr("oodscope.data.images.filedigests.hash_file", None)
    second = run()
    assert second.record.forward_images == 0
    assert sorted(Path(where).name for where in decoded) == sorted(Path(name).name for _, name in second.gallery.keys)
    assert second.scores.frame["mds"].equals(first.scores.frame["mds"])


@pytest.mark.slow
class TestProcesses:
    """Processes take over from threads in the middle of a set, and nobody can tell."""

    @pytest.fixture(autouse=True)
    def processes_always_pay(self, monkeypatch):
        monkeypatch.setattr(feeding, "START_SECONDS", 0.0)
        monkeypatch.setenv("OODSCOPE_WORKERS", "2")

    def run(self, folder, batch_size, rows, pause=0.0):
        """All batches, and who made the last of them."""
        clf, opened, seen = classifier(), open_folder("x", folder), []
        with worker_session():
            session_workers(start=True).submit(len).result(timeout=60)
            for batch in feed(clf, opened, cut(rows, batch_size)):
                seen.append(batch)
                time.sleep(pause)
        expected = [clf.prepare(opened.images(piece)) for piece in cut(rows, batch_size)]
        return seen, expected

    @pytest.mark.parametrize("batch_size", [3, 16])
    def test_batches_do_not_depend_on_processes(self, tmp_path, monkeypatch, batch_size):
        made = []
        monkeypatch.setattr(lanes.ProcessLane, "_fill", spied(lanes.ProcessLane._fill, made))
        rows = np.random.default_rng(0).permutation(300)
        seen, expected = self.run(write(tmp_path, 300, 0, side=11), batch_size, rows)
        assert made
        assert len(seen) == len(expected)
        for ours, plain in zip(seen, expected):
            assert torch.equal(ours, plain)
            assert ours.stride() == plain.stride()

    def test_a_damaged_file_is_named_as_threads_name_it(self, tmp_path):
        folder = write(tmp_path, 300, 0)
        broken = sorted(folder.rglob("*.png"))[250]
        broken.write_bytes(broken.read_bytes()[:60])
        with pytest.raises(UnreadableImageError) as plain:
            open_folder("x", folder).images([250])
        with pytest.raises(UnreadableImageError) as ours:
            self.run(folder, 16, np.arange(300))
        assert str(ours.value) == str(plain.value)

    def test_who_stops_early_gives_the_memory_back(self, tmp_path):
        opened, clf = open_folder("x", write(tmp_path, 300, 0)), classifier()
        with worker_session():
            pool = session_workers(start=True)
            pool.submit(len).result(timeout=60)
            for _ in range(40):
                stream = feed(clf, opened, cut(np.arange(300), 16))
                next(stream)
                stream.close()
            assert pool._free == [(0, pool.size)]

    @pytest.mark.parametrize("damaged", [False, True])
    def test_sets_are_extracted_without_a_pause(self, tmp_path, monkeypatch, damaged):
        """The second set is begun while the first is worked on; numbers are those of one set at a time."""
        opened = [open_folder(name, write(tmp_path / name, 120 + seed, seed)) for seed, name in enumerate("abc")]
        clf, begun = classifier(), []
        alone = [ActivationStore(tmp_path / "alone").extract(clf, images, batch_size=16) for images in opened]
        if damaged:
            broken = sorted((tmp_path / "b").rglob("*.png"))[100]
            broken.write_bytes(broken.read_bytes()[:60])
            opened[1] = open_folder("b", tmp_path / "b")
        start, take = lanes.ProcessLane.start, lanes.ProcessLane.take
        monkeypatch.setattr(
            lanes.ProcessLane, "start", lambda self, *a: begun.append(("start", self.images.name)) or start(self, *a)
        )
        monkeypatch.setattr(
            lanes.ProcessLane, "take", lambda self, *a: begun.append(("take", self.images.name)) or take(self, *a)
        )
        store = ActivationStore(tmp_path / "together")
        with worker_session():
            pool = session_workers(start=True)
            pool.submit(len).result(timeout=60)
            pool.gain = 2.0
            if damaged:
                with pytest.raises(UnreadableImageError, match=broken.name):
                    store.extract_sets(clf, [(images, ()) for images in opened], batch_size=16)
            else:
                found = store.extract_sets(clf, [(images, ()) for images in opened], batch_size=16)
            assert pool._free == [(0, pool.size)]
        if damaged:
            # what came before the damage is kept
            forwarded = store.forwarded
            store.extract(clf, opened[0], batch_size=16)
            assert store.forwarded == forwarded
            return
        assert store.forwarded == 120 + 121 + 122
        for one, other in zip(alone, found):
            assert one.logits.equal(other.logits)
            assert one.features.equal(other.features)
        for before, after in ("ab", "bc"):
            last = max(at for at, each in enumerate(begun) if each == ("take", before))
            assert begun.index(("start", after)) < last

    def test_a_source_of_ones_own_stays_in_this_process(self, tmp_path):
        class Own(FileSource):
            def picture(self, index):
                return super().picture(index).transpose(Image.Transpose.ROTATE_90)

        folder = write(tmp_path, 120, 0)
        plain = open_folder("x", folder)
        own = ImageSet("x", Own(plain.source.root, plain.source.paths))
        with worker_session():
            session_workers(start=True).submit(len).result(timeout=60)
            seen = torch.cat(list(feed(classifier(), own, cut(np.arange(120), 8))))
        assert torch.equal(seen, classifier().prepare(own.images(range(120))))
        assert not torch.equal(seen, classifier().prepare(plain.images(range(120))))


def spied(function, made):
    def wrapper(self, *arguments):
        made.append(self)
        return function(self, *arguments)

    return wrapper


@pytest.mark.parametrize("rows", [[0], [5, 0, 39, 40, 41, 7], [70, 69]])
def test_an_excerpt_shows_the_same_images(tmp_path, rows):
    files = [open_folder(name, write(tmp_path / name, 40, seed, side=9)).source for seed, name in enumerate("ab")]
    joined = PresizedSource(CroppedSource(JoinedSource(files), 7))
    excerpt = pickle.loads(pickle.dumps(joined.excerpt(np.array(rows))))
    for place, row in enumerate(rows):
        assert np.array_equal(excerpt.read(place), joined.read(row))
        assert excerpt.name(place) == joined.name(row)
    assert JoinedSource([files[0], imageset("c", 5, 0).source]).excerpt(np.array([39, 40])) is None


class SlowStart:
    """What processes have made: the first calls load decoders, later ones take as long as ``seconds`` says.

    Seconds are its own: a machine with other work would lengthen real ones.
    """

    def __init__(self, workers, seconds):
        self.workers, self.seconds, self.made = workers, seconds, lanes.Made()

    def answer(self):
        """Every process that works answers one call of ten images."""
        for _ in range(self.workers.limit):
            self.made.calls += 1
            self.made.images += 10
            self.made.seconds += 5.0 if self.made.calls <= self.workers.count else self.seconds(self.workers.limit)


@pytest.mark.parametrize(
    ("seconds", "threads", "limit", "gain"),
    [
        (lambda limit: 0.01, 800.0, 8, 10.0),  # twice as many make twice as much
        (lambda limit: 0.01 * limit, 500.0, 8, 2.0),  # one disk serves them in turn: no number is better
        (lambda limit: 0.01 if limit <= 4 else 0.04, 500.0, 4, 8.0),  # eight get into each other's way
        (lambda limit: 0.01, 16_000.0, 8, 0.5),  # threads are faster
    ],
)
def test_processes_are_measured_while_they_work(seconds, threads, limit, gain):
    workers = Mock(count=8, limit=3, gain=None)
    lane = SlowStart(workers, seconds)
    gauge, asked = gauges.Gauge(workers, lane, threads), 0
    while workers.gain is None:
        gauge()
        lane.answer()
        asked += 1
    assert workers.limit == limit
    assert workers.gain == pytest.approx(gain)
    assert gauge() == (gain <= 1)
    assert asked < 30


def test_a_measurement_that_was_cut_off_leaves_no_process_idle():
    workers = Mock(count=8, limit=8, gain=None)
    lane = SlowStart(workers, lambda limit: 0.01)
    gauge = gauges.Gauge(workers, lane, 1.0)
    while workers.limit == 8:
        gauge()
        lane.answer()
    gauges.Gauge(workers, lane, 1.0)()
    assert workers.limit == 8


def test_files_are_opened_once_to_hash_and_once_to_decode(tmp_path, monkeypatch):
    """The second look is served from memory; a third would be one too many, and what is known is not opened at all."""
    images = open_folder("a", write(tmp_path / "a", 12, 0))
    clf = Classifier(network(), Preprocess(size=8), device="cpu")
    opened = Counter()

    def watch(event, arguments):
        if event == "open" and str(arguments[0]).startswith(str(tmp_path / "a")) and str(arguments[0]).endswith("png"):
            opened[Path(arguments[0]).name] += 1

    watched = [watch]
    sys.addaudithook(lambda event, arguments: watched and watched[0](event, arguments))
    try:
        ActivationStore(tmp_path / "store").extract(clf, images)
        assert set(opened.values()) == {2} and len(opened) == 12
        ActivationStore(tmp_path / "store").extract(clf, open_folder("a", tmp_path / "a"))
        assert sum(opened.values()) == 24
    finally:
        watched.clear()
