"""Eigendecompositions of covariance matrices, in float64 on the CPU."""

import scipy.linalg
import torch
from torch import Tensor


def eigenbasis(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, largest first, and the matching orthonormal columns.

    By LAPACK through scipy: torch's own routine is a hundred times slower at these sizes when it runs
    with several threads. Divide and conquer (``evd``) is the fastest of its drivers where all vectors are wanted.
    """
    values, vectors = scipy.linalg.eigh(symmetric.double().cpu().numpy(), driver="evd")
    return torch.from_numpy(values[::-1].copy()), torch.from_numpy(vectors[:, ::-1].copy())


def whitening(covariance: Tensor) -> Tensor:
    r"""A matrix :math:`A` with :math:`A A^\top = \Sigma^+`: in its coordinates Mahalanobis is Euclidean.

    Directions without variance, as after a dead unit, are left out: that is what the pseudo-inverse does.
    """
    values, vectors = eigenbasis(covariance)
    floor = values.max().clamp(min=0) * len(values) * torch.finfo(torch.float64).eps
    kept = values > floor
    return vectors[:, kept] / values[kept].sqrt()
