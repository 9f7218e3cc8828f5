"""The verdict of a study of many models: which detector errs least, and whether that holds for other networks."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from scipy.stats import t as student

from oodscope.document.wording import percent
from oodscope.metrics.catalog import METRICS

FEWEST = 7
"""Networks below which an order of detectors says nothing of other networks."""


def models_verdict(values: np.ndarray, detectors: Sequence[str], metric: str) -> str:
    """A sentence from the values ``[model, detector]`` of a metric of which less is better.

    Whether the first is better than the second for other networks is a paired t-test over the models; below seven the
    answer is "cannot say".
    """
    means, models = values.mean(axis=0), len(values)
    order = np.argsort(means, kind="stable")
    first = int(order[0])
    least = int((values.argmin(axis=1) == first).sum())
    said = (
        f"{detectors[first]} has the lowest {METRICS[metric].label}: {percent(float(means[first]))} on average, the "
        f"lowest in {least} of {models} model{'s' * (models > 1)}"
    )
    if len(order) == 1:
        return (
            f"{detectors[first]} is the only detector: {METRICS[metric].label} {percent(float(means[0]))} on average."
        )
    second = int(order[1])
    if models < FEWEST:
        return f"{said}. Whether it is lower than {detectors[second]}'s for other networks: cannot say with {models}."
    apart = values[:, second] - values[:, first]
    reach = float(student.ppf(0.975, models - 1) * apart.std(ddof=1) / sqrt(models))
    low, high = 100 * (float(apart.mean()) - reach), 100 * (float(apart.mean()) + reach)
    sure = "lower than" if low > 0 else "not shown to be lower than"
    return (
        f"{said}. For other networks like these it is {sure} that of {detectors[second]} "
        f"(difference {low:.2f} to {high:.2f} points, 95 %)."
    )
