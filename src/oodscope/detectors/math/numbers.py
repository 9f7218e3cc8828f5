"""Precision, host access and small reductions that several detectors share."""

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


def on_host(values: Tensor) -> bool:
    """Whether code may branch on these values, or hand their memory to NumPy: it then saves work where it can.

    Not on an accelerator, which would have to stop and answer; not where a gradient is recorded, which NumPy would
    lose; not where a fixed graph is drawn from the code, for all values alike. There, detectors go the one way that
    suits every value: float64 from the start.
    """
    return values.device.type == "cpu" and not values.requires_grad and not torch.compiler.is_exporting()


def winners(logits: Tensor) -> Tensor:
    """The column of each row's largest entry; of equal ones the first."""
    if not on_host(logits):
        return logits.argmax(dim=1)
    # NumPy searches long rows with vector instructions, ten times faster than torch
    return torch.from_numpy(logits.numpy().argmax(axis=1))


def product(rows: Tensor, columns: Tensor) -> Tensor:
    """The matrix product.

    On the CPU by NumPy: torch multiplies with MKL, which is slower on processors that Intel did not make.
    """
    if not (on_host(rows) and on_host(columns)):
        return rows @ columns
    return torch.from_numpy(rows.numpy() @ columns.numpy())


def precise(values: Tensor) -> Tensor:
    """float64, or float32 on Apple's GPUs, which have no more.

    Softmax in float32 saturates at 1 and makes ties; covariances in float32 lose the small directions.
    """
    return values.to(torch.float32 if values.device.type == "mps" else torch.float64)
