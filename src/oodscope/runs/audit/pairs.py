"""Pairs of images that are the same picture: exact ones by their pixels, near ones by candidates that hold up."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.data.imageset import ImageSet
from oodscope.data.similarity.perceptual import Resemblance, close_pairs, resemblance, thumbnails
from oodscope.data.similarity.signatures import Signatures
from oodscope.runs.audit.classes import verdict_of
from oodscope.runs.audit.run import ImagePair, ImageRef

RADIUS = 12
"""Bits that two views of one picture may differ in. Copies compressed at quality 50, resized, brightened by a fifth or
cropped by a twentieth stay within 9 bits in 99 of 100 cases; two different photographs do so once in 100,000 pairs."""

NEIGHBOURS = 3
"""How many of the nearest features are looked at."""

QUANTILE = 0.9
"""Features count as near if they are nearer than those of this share of ID test images to their nearest neighbour."""

_CROWDED = 10
"""With more candidates than this per image, pictures look too much alike for a hash to single out copies."""

Rows = NDArray[np.int64]


def by_hash(first: Signatures, second: Signatures) -> list[tuple[int, int]] | None:
    """Rows whose whole picture is close to a view of the other; ``None`` if too many are.

    Inside one set (``first is second``) only pairs ``i < j``. Pictures that are equal, or too plain, are left out.
    """
    found: set[tuple[int, int]] = set()
    limit = _CROWDED * (len(first) + len(second))
    for turned, (whole, views) in enumerate(((first, second), (second, first))):
        if turned and first is second:
            break
        count = views.hashes.shape[1]
        for rows, columns in close_pairs(whole.hashes[:, 0], views.hashes.reshape(-1, views.hashes.shape[2]), RADIUS):
            pairs = zip(rows.tolist(), (columns // count).tolist())
            found.update((j, i) if turned else (i, j) for i, j in pairs)
            if len(found) > limit + len(first):
                return None
    inside = first is second
    ordered = {(min(pair), max(pair)) for pair in found if pair[0] != pair[1]} if inside else found
    return sorted(
        (i, j) for i, j in ordered if first.digests[i] != second.digests[j] and not first.flat[i] and not second.flat[j]
    )


def by_features(first: Tensor, second: Tensor, least: float) -> list[tuple[int, int]]:
    """Rows whose unit features have a cosine of at least ``least`` and are among each other's nearest.

    Inside one set (``first is second``) only pairs ``i < j``.
    """
    inside = first is second
    cosines, rows = nearest(second, first, NEIGHBOURS, inside)
    columns = torch.arange(len(second), device=rows.device)[:, None].expand_as(rows)
    chosen = cosines >= least
    pairs = zip(rows[chosen].tolist(), columns[chosen].tolist())
    return sorted({(min(pair), max(pair)) for pair in pairs} if inside else set(pairs))


def least_cosine(features: Mapping[str, Tensor], id_test: str) -> float:
    """The cosine above which features are near, from the distances inside the ID test set, where copies are rare."""
    own = features[id_test]
    cosines, _ = nearest(own, own, 1, True)
    return float(cosines.double().quantile(QUANTILE))


def nearest(queries: Tensor, bank: Tensor, k: int, inside: bool, block: int = 2048) -> tuple[Tensor, Tensor]:
    """Cosine and row of the ``k`` nearest of ``bank`` for each query; ``inside`` leaves out the query itself."""
    cosines, rows = [], []
    for start in range(0, len(queries), block):
        product = queries[start : start + block] @ bank.T
        if inside:
            own = torch.arange(len(product), device=product.device)
            product[own, start + own] = -2.0
        best = product.topk(min(k, len(bank)), dim=1)
        cosines.append(best.values)
        rows.append(best.indices)
    return torch.cat(cosines), torch.cat(rows)


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
