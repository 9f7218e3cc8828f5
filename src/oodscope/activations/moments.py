"""Class means and scatter of features, gathered in one pass."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

T = TypeVar("T")

REDUCED = 16_384
"""Rows that are reduced by themselves, in float64; what comes of them is added in their order. They are a shard of the
store, so that a sum is the same whoever reduced which part of it, and when."""

CACHED = 1 << 20
"""Bytes that a block of rows takes: larger ones go to memory and back at every step."""

PUBLISHED = 1 << 33
"""Multiplications from which on moments of a stored set are published beside it: a fifth of a second of one core. Where
an accelerator computes them, it is faster than reading what was published."""

STRIPS = 8
"""Of the product of features with themselves, which is symmetric: so many save an accelerator seven sixteenths of the
work."""


@dataclass(frozen=True)
class Moments:
    r"""Sufficient statistics of features :math:`h_i` with labels :math:`y_i`, in float64 on the CPU.

    Parameters
    ----------
    counts : ``[C]``, images of each class; images with the label -1 count in the totals only.
    means : ``[C, D]``, class means :math:`\mu_c`; zero for a class without images.
    mean : ``[D]``, of all images.
    scatter : ``[D, D]``, :math:`\sum_i (h_i-\mu)(h_i-\mu)^\top` over all images.
    total : number of images.
    """

    counts: Tensor
    means: Tensor
    mean: Tensor
    scatter: Tensor
    total: int
    _derived: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def covariance(self) -> Tensor:
        """Of all images around the common mean, divided by N."""
        return self.scatter / self.total

    @cached_property
    def within(self) -> Tensor:
        r"""Tied class covariance :math:`\frac1N\sum_c\sum_{i\in c}(h_i-\mu_c)(h_i-\mu_c)^\top`.

        Total scatter minus the scatter of the class means: nothing but this pass is needed.
        """
        offsets = (self.means - self.mean)[self.counts > 0]
        weights = self.counts[self.counts > 0].unsqueeze(1)
        return (self.scatter - offsets.T @ (weights * offsets)) / self.total

    def second_about(self, origin: Tensor) -> Tensor:
        r"""Second moment around any point :math:`o`: :math:`\frac1N\sum_i (h_i-o)(h_i-o)^\top`."""
        shift = self.mean - origin.to(self.mean)
        return self.covariance + torch.outer(shift, shift)

    def packed(self) -> NDArray[np.float64]:
        """All numbers in one vector, which ``unpack_moments`` reads."""
        total = torch.tensor([self.total], dtype=torch.float64)
        parts = (self.counts, self.means, self.mean, self.scatter, total)
        return np.asarray(torch.cat([part.double().flatten() for part in parts]).numpy())

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` computes from these moments, kept under ``key`` for the next caller.

        Decompositions cost more than the pass itself, and several detectors want the same one.
        """
        if key not in self._derived:
            self._derived[key] = make()
        value: T = self._derived[key]
        return value


def unpack_moments(packed: NDArray[np.float64], classes: int, width: int) -> Moments:
    """Moments of so many classes and features from the vector that ``Moments.packed`` made."""
    sizes = [classes, classes * width, width, width * width, 1]
    counts, means, mean, scatter, total = torch.split(torch.from_numpy(np.array(packed)), sizes)
    return Moments(counts, means.view(classes, width), mean, scatter.view(width, width), int(total))


def join_moments(parts: Sequence[Moments]) -> Moments:
    r"""The moments of several parts of one set, added in their order; a single part stays as it is.

    .. math:: \mu = \mu_a + \frac{n_b}{n}(\mu_b - \mu_a), \qquad
        S = S_a + S_b + \frac{n_a n_b}{n} (\mu_b - \mu_a)(\mu_b - \mu_a)^\top

    (Chan, Golub & LeVeque 1983), which keeps the digits that sums around zero would lose.
    """
    return reduce(_joined, parts)


def _joined(a: Moments, b: Moments) -> Moments:
    total, counts = a.total + b.total, a.counts + b.counts
    shift = b.mean - a.mean
    share = (b.counts / counts.clamp(min=1)).unsqueeze(1)
    return Moments(
        counts,
        a.means + share * (b.means - a.means),
        a.mean + shift * (b.total / total),
        a.scatter + b.scatter + torch.outer(shift, shift) * (a.total * b.total / total),
        total,
    )


def gather_moments(
    chunks: Iterable[tuple[Tensor, Tensor | None]], classes: int, *, normalised: bool = False
) -> Moments:
    """One pass over ``(features, labels)`` chunks, of ``normalised`` features if asked for.

    Sums are taken around the first chunk's mean: around zero, features with a large common offset would
    cancel away the digits that the covariance needs.
    """
    anchor: Tensor | None = None
    for features, labels in _in_blocks(chunks):
        precise = features.double() if features.device.type != "mps" else features.cpu().double()
        if normalised:
            # in float64: around a tight cloud of directions, float32 would leave too few digits
            precise = normalize(precise, dim=1)
        owners = torch.full((len(precise),), -1) if labels is None else labels
        owners = owners.to(precise.device)
        if anchor is None:
            anchor = precise.mean(dim=0)
            sums = torch.zeros(classes + 1, precise.shape[1], dtype=torch.float64, device=precise.device)
            products = torch.zeros(precise.shape[1], precise.shape[1], dtype=torch.float64, device=precise.device)
            counts = torch.zeros(classes + 1, dtype=torch.float64, device=precise.device)
        # where float64 made a copy it may be overwritten; memory that is touched first costs more than the arithmetic
        centred = precise.sub_(anchor) if precise is not features else precise - anchor
        # row 0 gathers the images without a class
        sums.index_add_(0, owners + 1, centred)
        counts.index_add_(0, owners + 1, torch.ones_like(owners, dtype=torch.float64))
        _add_upper(products, centred)
    assert anchor is not None, "activations are never empty"
    sums, counts, products, anchor = (part.cpu() for part in (sums, counts, products, anchor))
    total = int(counts.sum())
    offset = sums.sum(dim=0) / total
    labelled = counts[1:]
    means = torch.where(
        labelled.unsqueeze(1) > 0, sums[1:] / labelled.clamp(min=1).unsqueeze(1) + anchor, torch.zeros(())
    )
    scatter = products.triu() + products.triu(1).T - total * torch.outer(offset, offset)
    return Moments(labelled, means, offset + anchor, scatter, total)


def _in_blocks(chunks: Iterable[tuple[Tensor, Tensor | None]]) -> Iterator[tuple[Tensor, Tensor | None]]:
    """The same rows on a processor, so many at a time that what is made of them stays in its cache."""
    for features, labels in chunks:
        rows = block_rows(features)
        for start in range(0, len(features), rows):
            own = slice(start, start + rows)
            yield features[own], None if labels is None else labels[own]


def block_rows(values: Tensor) -> int:
    """Rows that fill the cache of a processor in float64; all of them elsewhere, where small pieces cost more."""
    if values.device.type != "cpu":
        return max(1, len(values))
    return max(256, CACHED // max(1, 8 * values[0].numel())) if len(values) else 1


def _add_upper(products: Tensor, rows: Tensor) -> None:
    """Add the upper half of ``rows.T @ rows``; some of the lower half comes along."""
    if rows.device.type == "cpu":
        from scipy.linalg.blas import dsyrk  # late: who only imports this should not wait for it

        # the routine for a matrix times itself, which adds in place; Fortran's lower half is the upper one here
        dsyrk(1.0, rows.contiguous().numpy().T, beta=1.0, c=products.numpy().T, overwrite_c=1, lower=1)
        return
    width = -(-len(products) // STRIPS)
    for start in range(0, len(products), width):
        strip = slice(start, start + width)
        products[strip, start:].addmm_(rows[:, strip].T, rows[:, start:])
