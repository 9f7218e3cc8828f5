"""Score grids whose candidates come out of one computation, side by side."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from oodscope.activations.activations import Activations


def column_by_column(
    judged: Sequence[Activations], scores: Callable[[Activations], Tensor], device: torch.device
) -> Iterator[list[Tensor]]:
    """What ``score_grid`` owes, from a function that gives each chunk one column of scores per candidate."""
    tables = [part.per_row(scores, device=device) for part in judged]
    for position in range(tables[0].shape[1]):
        yield [table[:, position] for table in tables]
