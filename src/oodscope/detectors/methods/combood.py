"""COMBOOD: distance to a neighbour and distance to a Gaussian, added in units of their spread."""

import math

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import gather_moments
from oodscope.base.paper import Paper
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.combination import Combination, OfMembers, needs_of
from oodscope.detectors.math.bank import Neighbours, picked_rows, remembered
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.principal import eigenbasis
from oodscope.detectors.methods.knn import KNN

SAMPLED = 10_000
"""Training images that exponents and spreads are taken from, a seeded draw where there are more."""
LOWEST, HIGHEST = -5.0, 5.0
"""Between these an exponent is sought."""
GOLDEN = (math.sqrt(5) - 1) / 2


class CombOOD(Combination):
    r"""KNN's distance and a Mahalanobis distance of features made normal, each standardised on training images.

    .. math:: s(x) = \frac{d_{\mathrm{knn}}(x)-m_1}{\sigma_1} + \frac{d_{\mathrm{maha}}(x)-m_2}{\sigma_2}, \qquad
              d_{\mathrm{maha}}(x) = \sqrt{t^\top(\Sigma+I)^{-1}t}

    :math:`t` is the feature after a Yeo-Johnson power transform of each entry (exponents by maximum likelihood) and
    standardising; :math:`\Sigma` its covariance over the training images, whatever their class. The paper knows a
    second form with extreme values of the network's activations in the place of the features, which is not here.

    Its published values on the ImageNet boards are disputed: a repetition gives 13 to 22 points less (OpenOOD issue
    307).

    Parameters
    ----------
    k : which neighbour, as in KNN; the paper's is 50.
    bank_fraction : share of the training images that are remembered; ``None`` is all of them up to 128,000.
    seed : which images a fraction below one picks, and from which 10,000 exponents and spreads are taken.
    """

    name = "combood"
    paper = Paper(
        "COMBOOD: A Semiparametric Approach for Detecting Out-of-distribution Data for Image Classification",
        "Rajasekaran et al.",
        "SDM 2024, arXiv 2602.07042",
    )
    needs = OfMembers(lambda members: needs_of(members) | Needs.FEATURES | Needs.TRAIN)

    def __init__(self, k: Neighbours = "auto", bank_fraction: float | None = None, seed: int = 0) -> None:
        self.k = k
        self.bank_fraction = bank_fraction
        self.seed = seed

    def _new_members(self) -> list[Detector]:
        return [KNN(self.k, self.bank_fraction, self.seed)]

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        chosen = picked_rows(self.name, train, min(1.0, SAMPLED / len(train)), self.seed)
        sample = precise(remembered(train, "features", chosen, self.device, lambda rows: rows))
        self.exponents_ = _exponents(sample)

        def bent() -> list[tuple[Tensor, None]]:
            chunks = train.chunks(device=self.device, only=("features",))
            return [(yeo_johnson(precise(chunk.features), self.exponents_), None) for chunk in chunks]

        moments = gather_moments(bent(), 1)
        spread = moments.covariance.diagonal().clamp(min=0).sqrt()
        constant = spread <= 1e-9 * (moments.mean.abs() + 1)
        scale = torch.where(constant, 1.0, spread)
        self.centre_ = precise(moments.mean.to(self.device))
        self.scale_ = precise(scale.to(self.device))
        values, axes = eigenbasis(moments.covariance / scale / scale[:, None])
        self.whiten_ = precise((axes / (values.clamp(min=0) + 1).sqrt()).to(self.device))
        members = [each.to(self.device).fit(train, val) for each in self._new_members()]
        self._keep(members)
        drawn = train.take(chosen.numpy().nonzero()[0])
        distances = drawn.per_row(self._distances, device=self.device, only=("features",))
        spreads, self.means_ = torch.std_mean(distances, dim=0, correction=0)
        self.spreads_ = torch.where(spreads > 0, spreads, torch.ones_like(spreads))

    def _distances(self, batch: Activations) -> Tensor:
        """Both distances, ``[N, 2]``."""
        (knn,) = self._fitted_members()
        bent = (yeo_johnson(precise(batch.features), self.exponents_) - self.centre_) / self.scale_
        return torch.stack([knn.score_batch(batch), torch.linalg.vector_norm(bent @ self.whiten_, dim=1)], dim=1)

    def _score(self, batch: Activations) -> Tensor:
        return ((self._distances(batch) - self.means_) / self.spreads_).sum(dim=1)


def yeo_johnson(values: Tensor, exponents: Tensor) -> Tensor:
    r"""The power transform of each column: like :math:`((v+1)^\lambda-1)/\lambda` above 0, mirrored below.

    As :math:`(e^{\lambda\ell}-1)/\lambda` with :math:`\ell=\log(1+|v|)`, which loses no digits where
    :math:`\lambda` is small; below 0 with :math:`2-\lambda` and the other sign.
    """
    logs, sign = values.abs().log1p(), torch.where(values < 0, -1.0, 1.0).to(values)
    power = torch.where(values < 0, 2 - exponents, exponents)
    flat = power.abs() < 1e-12
    return sign * torch.where(flat, logs, torch.expm1(power * logs) / torch.where(flat, 1.0, power))


def _likelihood(values: Tensor, exponents: Tensor) -> Tensor:
    """Mean log-likelihood of each column as a normal distribution after the transform."""
    slopes = (values.sign() * values.abs().log1p()).mean(dim=0)
    variance = yeo_johnson(values, exponents).var(dim=0, correction=0).clamp(min=torch.finfo(values.dtype).tiny)
    return (exponents - 1) * slopes - variance.log() / 2


def _exponents(values: Tensor) -> Tensor:
    """Of each column, the exponent of the largest likelihood: the best whole number, then a golden-section search."""
    trials = torch.arange(LOWEST, HIGHEST + 1, dtype=values.dtype, device=values.device)
    table = torch.stack([_likelihood(values, each.expand(values.shape[1])) for each in trials])
    best = trials[table.argmax(dim=0)]
    low, high = (best - 1).clamp(min=LOWEST), (best + 1).clamp(max=HIGHEST)
    for _ in range(40):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        rising = _likelihood(values, left) < _likelihood(values, right)
        low, high = torch.where(rising, left, low), torch.where(rising, high, right)
    # a column that never changes has no likelihood; it is left as it is
    return torch.where(values.amax(dim=0) > values.amin(dim=0), (low + high) / 2, torch.ones_like(low))
