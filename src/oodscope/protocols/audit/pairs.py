"""Pairs of images that are the same picture: exact ones by their pixels, near ones by candidates that hold up."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oodscope.data.imageset import ImageSet
from oodscope.data.similarity.perceptual import Resemblance, resemblance, thumbnails
from oodscope.data.similarity.signatures import Signatures
from oodscope.protocols.audit.verdicts import verdict_of
from oodscope.results.audit import ImagePair, ImageRef

ALIKE = Resemblance(whole=0.9, detail=0.6)
"""Pictures that resemble each other at least so much are taken for one. Copies of photographs compressed at quality
50, resized, brightened by a fifth or cropped by a twentieth do in 97 of 100 cases; different ones with close hashes
seldom do, unless they show like things in like poses before a plain ground."""

FoundBy = Literal["hash", "embedding"]


@dataclass(frozen=True)
class Member:
    """A set of the benchmark with its role and signatures."""

    role: str
    images: ImageSet
    signatures: Signatures
    names: Sequence[str]

    def ref(self, row: int) -> ImageRef:
        """One of its images, as findings name it."""
        label = int(self.images.labels[row])
        known = self.images.class_names[label] if label >= 0 else ""
        return ImageRef(self.images.name, self.role, row, self.names[row], known)


def exact_pairs(members: Sequence[Member]) -> Iterator[ImagePair]:
    """Every image with the first equal one of each set; so a picture that occurs n times makes n - 1 pairs inside."""
    holders: dict[bytes, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, member in enumerate(members):
        for row, digest in enumerate(member.signatures.digests):
            holders[digest][number].append(row)
    for held in holders.values():
        for one, rows in held.items():
            first = members[one]
            for two in (number for number in held if number >= one):
                second = members[two]
                verdict = verdict_of(first.role, second.role, exact=True)
                for row in held[two][1:] if one == two else held[two]:
                    yield ImagePair(verdict, "exact", "pixels", first.ref(rows[0]), second.ref(row), 1.0)


def near_pairs(
    first: Member, second: Member, candidates: Mapping[FoundBy, Iterable[tuple[int, int]]]
) -> Iterator[ImagePair]:
    """The candidates that are alike when looked at; of each image of ``second``, the best of each way to find it."""
    small = _Thumbnails()
    taken: set[int] = set()
    verdict = verdict_of(first.role, second.role, exact=False)
    for found_by, pairs in candidates.items():
        best: dict[int, tuple[float, int]] = {}
        for i, j in pairs:
            if j not in taken and first.signatures.digests[i] != second.signatures.digests[j]:
                alike = resemblance(small.of(first.images, i), small.of(second.images, j))
                if is_alike(alike):
                    best[j] = max(best.get(j, (0.0, -1)), (alike.whole, i))
        taken |= best.keys()
        for j, (whole, i) in sorted(best.items()):
            yield ImagePair(verdict, "near", found_by, first.ref(i), second.ref(j), whole)


def is_alike(found: Resemblance) -> bool:
    """Whether two pictures are taken for one."""
    return found.whole >= ALIKE.whole and found.detail >= ALIKE.detail


class _Thumbnails:
    """Reads each picture once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], NDArray[np.uint8]] = {}

    def of(self, images: ImageSet, row: int) -> NDArray[np.uint8]:
        key = (images.name, row)
        if key not in self._known:
            (image,) = images.images([row])
            self._known[key] = thumbnails(image)
        return self._known[key]
