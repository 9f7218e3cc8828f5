"""AttackTrace: what an attack reached against one detector, variation by variation."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.generation.samplers.base import Sampler
from oodscope.generation.search.result import SearchResult
from oodscope.generation.variations.base import Variation
from oodscope.metrics.ranking.minrank import OutlierRanks, outlier_ranks, source_interval
from oodscope.metrics.scores import FloatArray
from oodscope.runs.attack.attacked import Attacked, as_pictures, found_images
from oodscope.runs.attack.plan import Plan
from oodscope.runs.attack.run import FoundImages, SearchedPair

ACCEPTANCE = (0.05, 0.95)
"""Outside of these shares of accepted moves a chain hardly moves, or hardly cares where it is."""

LATE = 0.9
"""Half of the chains should have found their lowest score before this share of the budget is spent."""

NOTICEABLE = 0.005
"""A difference of AUROC that matters, however small its noise is."""


@dataclass(frozen=True)
class Diagnosis:
    """How one search went.

    Parameters
    ----------
    acceptance : mean share of accepted moves; None for a sampler that accepts nothing by chance.
    last_gain : median over chains of the share of the budget at which the lowest score was found.
    white_box_gain : AUROC that a short gradient search takes off the black box's on the same chains; None where the
        score or the variation has no gradient.
    flags : reasons to distrust it, in words.
    """

    acceptance: float | None
    last_gain: float
    white_box_gain: float | None
    flags: tuple[str, ...]


def diagnose(result: SearchResult, sampler: Sampler, id_test: FloatArray, white: SearchResult | None) -> Diagnosis:
    """Judge one search by its own traces and, where there is one, by a gradient search on its first chains."""
    budget = result.budgets[-1]
    last_gain = float(torch.as_tensor(result.improved_at).double().median()) / budget
    flags = []
    if last_gain > LATE:
        flags.append(
            f"chains still fall: half of them found their lowest score after {100 * last_gain:.0f} % of the budget"
        )
    if (drop := _late_drop(result, id_test)) is not None:
        flags.append(drop)
    acceptance = None
    # only a sampler of a law, which has a temperature, accepts by chance
    if hasattr(sampler, "temperature"):
        acceptance = float(torch.as_tensor(result.acceptance).double().mean())
        if not ACCEPTANCE[0] <= acceptance <= ACCEPTANCE[1]:
            advice = "a smaller step" if acceptance < ACCEPTANCE[0] else "a larger step or a lower temperature"
            flags.append(f"{100 * acceptance:.1f} % of the moves were accepted; try {advice}")
    gain = None
    if white is not None:
        gain, noise = _gain(
            outlier_ranks(id_test, result.scores[: len(white.scores)]), outlier_ranks(id_test, white.scores)
        )
        if gain > max(noise, NOTICEABLE):
            flags.append(
                f"{white.budgets[-1]} steps with gradients bring the AUROC of the first {len(white.scores)} chains "
                f"{100 * gain:.1f} points lower than this search did"
            )
    return Diagnosis(acceptance, last_gain, gain, tuple(flags))


def _late_drop(result: SearchResult, id_test: FloatArray) -> str | None:
    """Whether the AUROC fell over the last half of the budget by more than half the width of its interval."""
    earlier = [row for row, budget in enumerate(result.budgets) if 2 * budget <= result.budgets[-1]]
    if not earlier:
        return None
    before, after = (outlier_ranks(id_test, np.asarray(result.at_budget[row])) for row in (earlier[-1], -1))
    interval = source_interval(after)
    drop = before.auroc - after.auroc
    if drop <= max((interval.high - interval.low) / 2, NOTICEABLE):
        return None
    return (
        f"AUROC still fell by {100 * drop:.1f} points between {result.budgets[earlier[-1]]:,} and "
        f"{result.budgets[-1]:,} evaluations, more than its interval reaches"
    )


def _gain(black: OutlierRanks, white: OutlierRanks) -> tuple[float, float]:
    """Mean paired difference of the ranks as shares of n_id, and 1.96 standard errors of it."""
    difference = (black.mid - white.mid) / black.n_id
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    return float(difference.mean()), 1.96 * spread / np.sqrt(len(difference))


SHOWN, EXAMPLES = 10, 5
"""Images that are kept of each search: the worst ones, and those of the first chains, to compare detectors by."""


@dataclass(frozen=True)
class AttackTrace:
    """One detector, its scores of the source images, and one search per variation."""

    attacked: Attacked
    clean: FloatArray
    results: Mapping[str, SearchResult]
    diagnoses: Mapping[str, Diagnosis]

    def scores(self, variation: str) -> FloatArray:
        """The worst of each chain."""
        return np.asarray(self.results[variation].scores, dtype=np.float64)

    def pair(self, name: str, variation: Variation, sources: Tensor) -> SearchedPair:
        """What a page shows of one variation: pictures, parameters, flags."""
        result, first = self.results[name], np.arange(min(EXAMPLES, len(sources)))
        return SearchedPair(
            detector=self.attacked.name,
            variation=name,
            settings={**result.description, "chains": len(result), "notes": list(result.notes)},
            parameters=variation.parameters,
            found=_natural(variation, result),
            worst=self._images(name, variation, sources, np.argsort(self.scores(name), kind="stable")[:SHOWN]),
            flags=self.diagnoses[name].flags,
            costs={"seconds": result.seconds, "evaluations": float(result.evaluations)},
            examples=self._images(name, variation, sources, first) if variation.conditional else None,
        )

    def _images(self, name: str, variation: Variation, sources: Tensor, chains: NDArray[np.int64]) -> FoundImages:
        own, scores = sources[chains], self.scores(name)[chains]
        (pixels,) = found_images(variation.to("cpu"), self.results[name].points[chains], own)
        return FoundImages(
            chains=chains,
            scores=scores,
            ranks=outlier_ranks(self.attacked.id_test, scores).below,
            images=as_pictures(pixels),
            sources=as_pictures(own) if variation.conditional else None,
        )


def judged(
    result: SearchResult, white: SearchResult | None, attacked: Attacked, plan: Plan, variation: Variation
) -> Diagnosis:
    """Whether one search can be trusted."""
    return diagnose(result, plan.sampler_for(variation), attacked.id_test, white)


def _natural(variation: Variation, result: SearchResult) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    if not variation.parameters:
        return np.zeros((len(result), 0), dtype=np.float32)
    values: np.ndarray[tuple[int, int], np.dtype[np.float32]] = variation.natural(result.points).float().numpy()
    return values
