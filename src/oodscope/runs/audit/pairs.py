"""Pairs of images that are the same picture: exact ones by their pixels, near ones by candidates that hold up."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.data.images.decoding import as_rgb
from oodscope.data.imageset import ImageSet
from oodscope.data.similarity.background import Background, background_of, is_native, shifted_distances
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

_NARROWER = (9, 6, 4)
"""Bits that are tried in turn where pictures look much alike."""

_CROWDED = 10
"""With more candidates than this per image, pictures look too much alike for a hash to single out copies."""

Rows = NDArray[np.int64]


def by_hash(first: Signatures, second: Signatures) -> list[tuple[int, int]] | None:
    """Rows whose whole picture is close to a view of the other; ``None`` if too many are.

    Where too many are within ``RADIUS`` bits, fewer bits are allowed. Inside one set (``first is second``) only pairs
    ``i < j``. Pictures that are equal, or too plain, are left out.
    """
    for radius in (RADIUS, *_NARROWER):
        if (found := _within(first, second, radius)) is not None:
            return found
    return None


def _within(first: Signatures, second: Signatures, radius: int) -> list[tuple[int, int]] | None:
    found: set[tuple[int, int]] = set()
    limit = _CROWDED * (len(first) + len(second))
    for turned, (whole, views) in enumerate(((first, second), (second, first))):
        if turned and first is second:
            break
        count = views.hashes.shape[1]
        for rows, columns in close_pairs(whole.hashes[:, 0], views.hashes.reshape(-1, views.hashes.shape[2]), radius):
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


SHIFTED = 0.97
"""What two pictures must correlate by at the best shift, where they do not in place."""

SURE = 1e-3
"""A distance below which pictures are the same whatever their sets look like."""

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
    """The candidates that are alike when looked at; of each image of ``second``, the best of each way to find it.

    They are ``near`` (the same picture) if they are far closer than the pictures of their own sets are to each other,
    and ``alike`` otherwise.
    """
    small = _Thumbnails()
    taken: set[int] = set()
    judge = _Judge(first, second, small)
    for found_by, pairs in candidates.items():
        best: dict[int, tuple[float, int]] = {}
        for i, j in pairs:
            if j not in taken and first.signatures.digests[i] != second.signatures.digests[j]:
                alike = resemblance(small.of(first.images, i), small.of(second.images, j))
                whole = alike.whole if is_alike(alike) else judge.aligned(i, j)
                if whole >= (ALIKE.whole if is_alike(alike) else SHIFTED):
                    best[j] = max(best.get(j, (0.0, -1)), (whole, i))
        taken |= best.keys()
        ordered = [(i, j, whole) for j, (whole, i) in sorted(best.items())]
        same = judge.same([(i, j) for i, j, _ in ordered], [whole for *_, whole in ordered]) if ordered else []
        for (i, j, whole), is_same in zip(ordered, same):
            verdict = verdict_of(first.role, second.role, exact=False) if is_same else "note"
            yield ImagePair(verdict, "near" if is_same else "alike", found_by, first.ref(i), second.ref(j), whole)


def is_alike(found: Resemblance) -> bool:
    """Whether two pictures are taken for one."""
    return found.whole >= ALIKE.whole and found.detail >= ALIKE.detail


class _Judge:
    """Decides whether two pictures that are alike are the same, by the background of their sets."""

    def __init__(self, first: Member, second: Member, small: "_Thumbnails") -> None:
        self._first, self._second, self._small = first, second, small

    @cached_property
    def _sides(self) -> tuple[tuple[Member, Background], ...]:
        sets = self._first.images, self._second.images
        one, two = (background_of(images, self._native) for images in sets)
        return (self._first, one), (self._second, two)

    @cached_property
    def _native(self) -> bool:
        return is_native(self._first.images, self._second.images)

    def _picture(self, images: ImageSet, row: int) -> NDArray[np.uint8]:
        return self._small.native(images, row) if self._native else self._small.of(images, row)[0]

    def aligned(self, i: int, j: int) -> float:
        """The correlation of two pictures at the best shift."""
        pair = self._picture(self._first.images, i), self._picture(self._second.images, j)
        return 1 - float(shifted_distances(pair[0][None], pair[1][None])[0, 0])

    def same(self, pairs: Sequence[tuple[int, int]], whole: Sequence[float]) -> list[bool]:
        """Which pairs are closer than chance makes any pair of pictures of these sets."""
        rows = list(zip(*pairs))
        small = [
            np.stack([self._picture(member.images, row) for row in own]) for (member, _), own in zip(self._sides, rows)
        ]
        aligned = [float(shifted_distances(*(side[None] for side in pair))[0, 0]) for pair in zip(*small)]
        distances = np.minimum(1 - np.asarray(whole), aligned)
        others = rows[::-1] if self._first is self._second else rows
        nearest = [
            background.nearest(own, pictures, other)
            for (_, background), own, pictures, other in zip(self._sides, rows, small, others)
        ]
        threshold = min(background.threshold(len(self._second.images)) for _, background in self._sides)
        close: list[bool] = (distances <= np.maximum(threshold * np.minimum(*nearest), SURE)).tolist()
        return close


class _Thumbnails:
    """Reads each picture once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], NDArray[np.uint8]] = {}
        self._native: dict[tuple[str, int], NDArray[np.uint8]] = {}

    def of(self, images: ImageSet, row: int) -> NDArray[np.uint8]:
        key = (images.name, row)
        if key not in self._known:
            (image,) = images.images([row])
            self._known[key] = thumbnails(image)
        return self._known[key]

    def native(self, images: ImageSet, row: int) -> NDArray[np.uint8]:
        """The picture itself in RGB; small ones only."""
        key = (images.name, row)
        if key not in self._native:
            (image,) = images.images([row])
            self._native[key] = as_rgb(image)
        return self._native[key]
