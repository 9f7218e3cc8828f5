"""Candidates for near duplicates: by perceptual hash, and by the features of a classifier."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.data.similarity.perceptual import close_pairs
from oodscope.data.similarity.signatures import Signatures

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
