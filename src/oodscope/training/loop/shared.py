"""One training shared by ranks: each takes its rows of the same batches, and all take the same step."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from oodscope.base.errors import OodscopeError, UsageError
from oodscope.execution.ranks import Ranks
from oodscope.training.loop.finished import Norm
from oodscope.training.loop.pixels import Cut, Pixels, Rows
from oodscope.training.recipe import Batch, Recipe


def check_shared(recipe: Recipe, smallest: int, ranks: Ranks) -> None:
    """One line that says why ranks cannot share this training.

    Parameters
    ----------
    smallest : training images in the smallest batch.
    """
    name = recipe.name or type(recipe).__name__
    if not recipe.by_rows():
        raise UsageError(
            f"{name}: its loss is no mean over images that stand for themselves, so {ranks.count} ranks cannot share a "
            "batch; train it in one process, several seeds side by side"
        )
    if smallest < ranks.count:
        raise UsageError(f"{name}: batches of {smallest} images cannot be shared by {ranks.count} ranks")


def own_part(batch: Batch, ranks: Ranks) -> tuple[Batch, float]:
    """The rows of a batch that this rank works on, and what their mean loss counts in the mean over ranks.

    Ranks average gradients with equal weights; a share of :math:`n_r` of :math:`N` images counts
    :math:`R\\,n_r/N`, so that the average over :math:`R` ranks is that over images. Of a balanced recipe the images'
    weights are counted in their place.
    """
    count = len(batch.labels)
    rows = ranks.share(count)
    views = batch.images.view(-1, count, *batch.images.shape[1:])
    part = batch._replace(images=views[:, rows].flatten(0, 1), labels=batch.labels[rows], rows=batch.rows[rows])
    if batch.weights is None:
        return part, ranks.count * (rows.stop - rows.start) / count
    part = part._replace(weights=batch.weights[rows])
    return part, ranks.count * float(batch.weights[rows].sum() / batch.weights.sum())


def total(numbers: Sequence[Tensor]) -> list[Tensor]:
    """The sum of each number over all ranks."""
    stacked = torch.stack([each.detach().double() for each in numbers])
    dist.all_reduce(stacked)
    return list(stacked.float())


def same_on_all(value: bool, what: str) -> None:
    """Refuse what ranks see differently, such as a folder that only some of them share."""
    values: list[bool] = [value] * dist.get_world_size()
    dist.all_gather_object(values, value)
    if len(set(values)) > 1:
        raise OodscopeError(f"{what} is there for some ranks only; choose a folder that all of them see")


class SharedPixels:
    """Pixels that ranks decode together: each its share of a batch, which all then have.

    All ranks need whole batches, because random variations are drawn for a batch at once; decoding costs far more than
    handing bytes on.

    Parameters
    ----------
    pixels : of the whole set.
    device : of the rank; bytes travel between devices of one kind.
    """

    def __init__(self, pixels: Pixels, ranks: Ranks, device: torch.device) -> None:
        self.pixels, self.ranks, self.device, self.whole = pixels, ranks, device, pixels.whole

    def batches(self, orders: Iterable[Rows], cut: Cut | None = None) -> Iterator[Tensor]:
        """Whole batches, in order."""
        every = list(orders)
        shares = [rows[self.ranks.share(len(rows))] for rows in every]
        for rows, own in zip(every, self.pixels.batches(shares, cut)):
            yield self._gathered(own.to(self.device), len(rows))

    def _gathered(self, own: Tensor, length: int) -> Tensor:
        shares = [self.ranks.share(length, number) for number in range(self.ranks.count)]
        counts = [rows.stop - rows.start for rows in shares]
        # ranks hand on tensors of one shape: the longest share's
        padded = own.new_zeros((max(counts), *own.shape[1:]))
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[:count] for part, count in zip(parts, counts)])


class _OverRanks(torch.autograd.Function):
    """A sum over ranks whose gradient is that of the sum of all ranks' losses."""

    @staticmethod
    def forward(context: Any, own: Tensor) -> Tensor:
        summed = own.clone()
        dist.all_reduce(summed)
        return summed

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        summed = gradient.clone()
        dist.all_reduce(summed)
        return summed


class SynchronisedNorms:
    r"""Batch normalisation over the images of all ranks, while a network is trained.

    Each rank adds its count, sum and sum of squares of every channel, in float64; mean and variance are those of the
    whole batch, and gradients flow through the sums, so that a step is that of one process. Torch has such a layer for
    GPUs only.

    Parameters
    ----------
    model : its layers get another ``forward`` until ``close``; weights, buffers and structure stay.
    """

    def __init__(self, model: nn.Module) -> None:
        self.norms = [each for each in model.modules() if isinstance(each, Norm)]
        for norm in self.norms:
            norm.forward = partial(synchronised, norm)  # type: ignore[method-assign]

    def close(self) -> None:
        """The layers as they were."""
        for norm in self.norms:
            norm.__dict__.pop("forward", None)
        self.norms = []


def synchronised(norm: Norm, images: Tensor) -> Tensor:
    """What a layer of batch normalisation gives, with the statistics of all ranks where it is training."""
    if not (norm.training or norm.running_mean is None):
        return type(norm).forward(norm, images)
    values = images.float()
    axes = [axis for axis in range(values.ndim) if axis != 1]
    exact = values.double()
    count = exact.new_tensor([float(values.numel() // values.shape[1])])
    sums: Tensor = _OverRanks.apply(torch.cat([count, exact.sum(axes), exact.square().sum(axes)]))
    every, (first, second) = sums[0], sums[1:].view(2, -1)
    mean = first / every
    variance = (second / every - mean.square()).clamp_min(0.0)
    if norm.training and norm.running_mean is not None:
        _remember(norm, mean.detach(), variance.detach() * (every / (every - 1)).detach())
    shape = [1, -1, *[1] * (values.ndim - 2)]
    scale = (variance + norm.eps).rsqrt().float().view(shape)
    scaled = (values - mean.float().view(shape)) * scale
    if norm.affine:
        scaled = scaled * norm.weight.view(shape) + norm.bias.view(shape)
    normalised: Tensor = scaled.to(images.dtype)
    return normalised


@torch.no_grad()
def _remember(norm: Norm, mean: Tensor, variance: Tensor) -> None:
    assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    share = 1.0 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), share)
    norm.running_var.lerp_(variance.to(norm.running_var.dtype), share)
