"""Nearest neighbours by tiled matrix products, on any device, in bounded memory."""

import torch
from torch import Tensor

from oodscope.detectors.math.numbers import precise, product

QUERIES = 1024
BANK = 16384
"""A tile of similarities holds QUERIES x BANK float32 values, 64 MiB."""
GROUP = 16
"""Similarities that stand for the best one among them in the first round of a top-k."""


def unit(vectors: Tensor) -> Tensor:
    """Rows of length one; a zero row stays zero instead of becoming NaN."""
    return torch.nn.functional.normalize(vectors, dim=1)


def radial(vectors: Tensor, beta: float) -> Tensor:
    r"""Rows :math:`h/\lVert h\rVert^\beta`: their directions, at lengths drawn towards one; a zero row stays zero."""
    if beta == 0:
        return vectors
    lengths = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors / torch.where(lengths > 0, lengths, torch.ones_like(lengths)) ** beta


def nearest(queries: Tensor, bank: Tensor, k: int) -> Tensor:
    r"""Rows of the ``k`` nearest bank vectors for each query, nearest first.

    The order of distances is the order of :math:`q\cdot b - \lVert b\rVert^2/2`, so one product per tile and a
    running top-k suffice.
    """
    lengths = bank.square().sum(dim=1) / -2
    return torch.cat([_best(part, bank, lengths, k)[1] for part in _parts(queries)])


def top_products(queries: Tensor, bank: Tensor, k: int) -> Tensor:
    """The ``k`` largest inner products of each query with the bank, largest first."""
    return torch.cat([_best(part, bank, None, k)[0] for part in _parts(queries)])


def kth_distances(queries: Tensor, bank: Tensor, ks: list[int]) -> Tensor:
    """Euclidean distance to the k-th nearest of the bank, one row per query, one column per ``k``.

    The neighbours are found by inner products; the distances are then taken from the vectors themselves,
    because :math:`2-2\\cos` loses half the digits where vectors almost coincide.
    """
    found = nearest(queries, bank, max(ks))
    columns = [torch.linalg.vector_norm(precise(queries - bank[found[:, k - 1]]), dim=1) for k in ks]
    return torch.stack(columns, dim=1)


def largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` largest of each row, largest first, and their columns: ``topk`` in two rounds, with less to sort.

    Groups are ranked by their maxima; whatever is among the k largest lies in one of the k best groups. A group
    holds every so-many-th column, so that all maxima are taken along memory.
    """
    groups = values.shape[1] // GROUP
    if groups < 2 * k:
        top, where = values.topk(k, dim=1)
        return top, where
    even = groups * GROUP
    maxima = values[:, :even].reshape(-1, GROUP, groups).amax(dim=1)
    best = maxima.topk(k, dim=1, sorted=False).indices
    members = torch.arange(0, even, groups, device=values.device).unsqueeze(1)
    rest = torch.arange(even, values.shape[1], device=values.device).expand(values.shape[0], -1)
    columns = torch.cat([(best.unsqueeze(1) + members).flatten(1), rest], dim=1)
    top, where = values.gather(1, columns).topk(k, dim=1)
    return top, columns.gather(1, where)


def _parts(queries: Tensor) -> tuple[Tensor, ...]:
    """Queries a tile at a time; all at once in a graph, whose number of queries is open."""
    return (queries,) if torch.compiler.is_exporting() else torch.split(queries, QUERIES)


def _best(queries: Tensor, bank: Tensor, shift: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
    best = queries.new_empty(queries.shape[0], 0)
    rows = torch.empty(queries.shape[0], 0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(bank), BANK):
        tile = bank[start : start + BANK]
        similar = product(queries, tile.T)
        if shift is not None:
            similar += shift[start : start + BANK]
        top, where = largest(similar, min(k, len(tile)))
        best, rows = torch.cat([best, top], dim=1), torch.cat([rows, where + start], dim=1)
        if best.shape[1] > k:
            best, kept = best.topk(k, dim=1)
            rows = rows.gather(1, kept)
    return best, rows
