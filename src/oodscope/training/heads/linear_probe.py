"""LinearProbe: a head fitted to the features of a network that has none."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import minimize
from torch.nn.functional import cross_entropy

from oodscope.activations.activations import Activations
from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError
from oodscope.models.classifier.head import Head

HELD_OUT = 10
"""Every so-many-th training image chooses the penalty where there are no validation images."""


class FittedProbe(NamedTuple):
    """The head, the penalty that was chosen, and the loss of every penalty on held-out images."""

    head: Head
    penalty: float
    losses: dict[float, float]


class LinearProbe(StrictModel):
    r"""Multinomial logistic regression on fixed features.

    .. math:: \min_{W,b}\; \frac1n\sum_i -\log\mathrm{softmax}_{y_i}\Bigl(W\frac{h_i-\mu}{\sigma}+b\Bigr)
              + \frac{\lambda}{2}\lVert W\rVert^2

    :math:`\mu` is the mean feature and :math:`\sigma` one number, the root mean square of all centred features: so a
    penalty means the same for every network, and the shape of the feature space is left as it is. The problem is
    convex; L-BFGS finds its optimum from zero without any random draw, each step one pass over the features in
    chunks. Penalties are tried from large to small, each from the last one's optimum, and the one with the
    smallest cross-entropy on held-out images wins.

    Parameters
    ----------
    penalties : the values of :math:`\lambda` to choose from.
    steps : at most so many L-BFGS iterations per penalty.
    """

    penalties: tuple[float, ...] = Field(default=(1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6), min_length=1)
    steps: int = Field(default=1000, gt=0)

    def fit(
        self, train: Activations, val: Activations | None, num_classes: int, device: torch.device | str = "cpu"
    ) -> FittedProbe:
        """The best head for labelled features; every tenth of them stands in for ``val`` where there is none."""
        if min(self.penalties) <= 0:
            raise OodscopeError(f"probe: penalties must be above 0, not {min(self.penalties)}")
        if val is None:
            held = np.arange(len(train)) % HELD_OUT == HELD_OUT - 1
            if not held.any():
                raise OodscopeError(f"probe: needs id_val, or {HELD_OUT} training images or more")
            train, val = train.take(np.flatnonzero(~held)), train.take(np.flatnonzero(held))
        problem = _Problem(train, num_classes, torch.device(device))
        weights, heads, losses = problem.start(), {}, {}
        for penalty in sorted(set(self.penalties), reverse=True):
            weights = problem.solve(weights, penalty, self.steps)
            heads[penalty] = problem.head(weights)
            losses[penalty] = _loss(heads[penalty], val)
        best = min(losses, key=lambda penalty: losses[penalty])
        return FittedProbe(heads[best], best, losses)


class _Problem:
    """The regression in the coordinates in which it is solved: centred features of mean square one."""

    def __init__(self, train: Activations, num_classes: int, device: torch.device) -> None:
        self.train = train
        self.classes = num_classes
        self.device = device
        # on the CPU exact digits cost little; accelerators are many times slower in float64, or lack it
        self.dtype = torch.float64 if device.type == "cpu" else torch.float32
        mean = train.mean_feature(device)
        self.mean = mean.to(device, self.dtype)
        squares = sum(float((chunk.features - self.mean).square().sum()) for chunk in self._chunks())
        self.scale = (squares / (len(train) * len(mean))) ** 0.5 or 1.0

    def start(self) -> NDArray[np.float64]:
        """All zeros: every class alike."""
        return np.zeros(self.classes * (len(self.mean) + 1))

    def solve(self, start: NDArray[np.float64], penalty: float, steps: int) -> NDArray[np.float64]:
        """The optimum for one penalty."""
        # the gradient's largest entry decides, finer where a small penalty makes the valley flat; the default would
        # also stop at a small relative gain, far from the optimum
        options: Any = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 0.0, "maxcor": 20}
        options["gtol"] = min(1e-7, 1e-4 * penalty)
        if self.dtype is torch.float32:
            options |= {"gtol": 1e-5, "ftol": 1e-9}
        found = minimize(self._value, start, args=(penalty,), method="L-BFGS-B", jac=True, options=options)
        solution: NDArray[np.float64] = found.x
        return solution

    def head(self, weights: NDArray[np.float64]) -> Head:
        """The solution in the network's own features."""
        table = torch.from_numpy(weights.reshape(self.classes, -1).copy())
        weight = table[:, :-1] / self.scale
        return Head(weight, table[:, -1] - weight @ self.mean.cpu().double())

    def _value(self, weights: NDArray[np.float64], penalty: float) -> tuple[float, NDArray[np.float64]]:
        table = torch.from_numpy(weights.reshape(self.classes, -1)).to(self.device, self.dtype)
        weight, bias = table[:, :-1], table[:, -1]
        loss, slope = 0.0, torch.zeros(table.shape, dtype=torch.float64)
        for chunk in self._chunks():
            features = (chunk.features.to(self.dtype) - self.mean) / self.scale
            logits = features @ weight.T + bias
            loss += float(cross_entropy(logits, chunk.labels, reduction="sum")) / len(self.train)
            error = logits.softmax(dim=1)
            error[torch.arange(len(error), device=self.device), chunk.labels] -= 1
            slope += torch.cat([error.T @ features, error.sum(dim=0)[:, None]], dim=1).cpu().double() / len(self.train)
        kept = weight.cpu().double()
        slope[:, :-1] += penalty * kept
        return loss + penalty / 2 * float(kept.square().sum()), slope.numpy().ravel()

    def _chunks(self) -> Iterator[Activations]:
        return self.train.chunks(device=self.device, only=("features", "labels"))


def _loss(head: Head, val: Activations) -> float:
    """Mean cross-entropy of a head on labelled features."""
    parts = [cross_entropy(head.logits(chunk.features), chunk.labels, reduction="sum") for chunk in _both(val)]
    return float(torch.stack(parts).double().sum()) / len(val)


def _both(val: Activations) -> Iterator[Activations]:
    return val.chunks(only=("features", "labels"))
