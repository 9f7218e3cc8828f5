r"""Fréchet distance between two sets of features, each seen as a Gaussian: the FID, over any features.

.. math:: d^2 = \lVert \mu_a - \mu_b \rVert^2
          + \mathrm{tr}\Bigl(\Sigma_a + \Sigma_b - 2\,\bigl(\Sigma_a^{1/2} \Sigma_b \Sigma_a^{1/2}\bigr)^{1/2}\Bigr)

(Heusel et al., NeurIPS 2017). It is a squared length: a mere shift of the mean by d gives :math:`d^2`. What it says
depends on the network that made the features, so a value means something beside other values of the same network
only; it is FID as published only with the Inception network of the FID. Two finite samples of one distribution do not
have distance 0 but about :math:`D / n` times their variance, so compare sets of equal size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray


@dataclass(frozen=True, eq=False)
class Gaussian:
    """What the distance needs of a set of features.

    The fields are those that a pass over chunks gathers (``Activations.moments()``), so that features need never lie
    in memory at once.

    Parameters
    ----------
    mean : ``[D]``.
    scatter : ``[D, D]``, the sum of the outer products of the centred features.
    n : how many images.
    """

    mean: FloatArray
    scatter: FloatArray
    n: int

    @classmethod
    def of(cls, features: ArrayLike, name: str = "features") -> Gaussian:
        """Of features ``[N, D]``, at least two of them; ``name`` is what an error calls them."""
        rows = np.asarray(features, dtype=np.float64)
        if rows.ndim != 2 or len(rows) < 2 or rows.shape[1] == 0:
            raise DataError(f"{name} must be [images, dimensions] with 2 images or more; their shape is {rows.shape}")
        if not np.isfinite(rows).all():
            first = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise DataError(f"{name} must be finite to have a mean; row {first} is not")
        mean = rows.mean(axis=0)
        centred = rows - mean
        return cls(mean, centred.T @ centred, len(rows))

    @property
    def covariance(self) -> FloatArray:
        """``[D, D]``, unbiased: divided by n - 1."""
        return self.scatter / (self.n - 1)

    @cached_property
    def root(self) -> FloatArray:
        r"""A matrix A with :math:`A A^\top = \Sigma`; eigenvalues that rounding took below 0 are 0."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def frechet_distance(a: Gaussian, b: Gaussian) -> float:
    r"""The squared Fréchet distance of two Gaussians, 0 or more.

    With :math:`\Sigma_a = A A^\top` and :math:`\Sigma_b = B B^\top`, the trace of the matrix root is the sum of the
    singular values of :math:`A^\top B`. No root of a product is taken, so nothing turns complex or is regularised
    where there are fewer images than dimensions.
    """
    if a.mean.shape != b.mean.shape:
        raise DataError(f"features of one network compare; these have {a.mean.size} and {b.mean.size} dimensions")
    shift = a.mean - b.mean
    spread = np.trace(a.covariance) + np.trace(b.covariance)
    common = np.linalg.svd(a.root.T @ b.root, compute_uv=False).sum()
    return max(0.0, float(shift @ shift + spread - 2.0 * common))
