"""Images that occur twice: fatal between validation and test, counted everywhere else."""

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

from oodscope.base.errors import DataError
from oodscope.data.benchmark import Benchmark

AT_ONCE = 4
"""Sets whose files are hashed at the same time."""

_TUNED_ON = {"id_val": ("id_test", "csid"), "ood_val": ("near", "far")}


@dataclass(frozen=True)
class Duplicates:
    """How many images each pair of sets shares, byte for byte; a pair of one set counts repeats inside it."""

    shared: dict[tuple[str, str], int]

    def notes(self) -> list[str]:
        """One sentence per pair, for the record of a run."""
        return [
            f"{count} image{'s' * (count > 1)} of {first} occur{'s' * (count == 1)} "
            + ("more than once" if first == second else f"in {second} too")
            for (first, second), count in sorted(self.shared.items())
        ]


def find_duplicates(benchmark: Benchmark) -> Duplicates:
    """Compare every set of a benchmark with every other by content digest.

    An image in both validation and test of one side (``id_val`` and ``id_test``/``csid``, ``ood_val`` and
    ``near``/``far``) stops the run: whatever was tuned on it would be judged on it. Duplicates elsewhere
    are facts of life (CIFAR has some) and are reported.
    """
    roles = {images.name: role for role, images in benchmark.members()}
    members = [images for _, images in benchmark.members()]
    # while one set waits for a disk or for processes that hash, another goes on
    with ThreadPoolExecutor(AT_ONCE) as pool:
        digests = dict(zip([images.name for images in members], pool.map(lambda images: images.digests(), members)))
    # counted by C; few are left to be looked at one by one
    occurring = Counter(chain.from_iterable(digests.values()))
    repeated = {digest for digest, count in occurring.items() if count > 1}
    holders: dict[bytes, list[str]] = defaultdict(list)
    for name, each in digests.items():
        for digest in filter(repeated.__contains__, each):
            holders[digest].append(name)
    shared: Counter[tuple[str, str]] = Counter()
    for names in holders.values():
        distinct = list(dict.fromkeys(names))
        shared.update((name, name) for name in distinct if names.count(name) > 1)
        shared.update((a, b) for i, a in enumerate(distinct) for b in distinct[i + 1 :])
    for (first, second), count in shared.items():
        for tuned, judged in ((first, second), (second, first)):
            if roles[judged] in _TUNED_ON.get(roles[tuned], ()):
                raise DataError(
                    f"benchmark {benchmark.name!r}: {count} image{'s' * (count > 1)} of {judged!r} (test) also "
                    f"in {tuned!r} (validation); remove them from one of the two"
                )
    return Duplicates(dict(shared))
