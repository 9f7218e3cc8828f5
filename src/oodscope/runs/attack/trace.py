"""AttackTrace: what an attack reached against one detector, variation by variation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.generation.samplers.base import Sampler
from oodscope.generation.search.result import SearchResult
from oodscope.generation.variations.base import Variation
from oodscope.metrics.ranking.minrank import OutlierRanks, outlier_ranks
from oodscope.metrics.scores import FloatArray
from oodscope.runs.attack.attacked import Attacked, as_pictures, found_images
from oodscope.runs.attack.convergence import Convergence, convergence
from oodscope.runs.attack.run import FoundImages, SearchedPair

ACCEPTANCE = (0.05, 0.95)
"""Outside of these shares of accepted moves a chain hardly moves, or hardly cares where it is."""

NOTICEABLE = 0.01
"""A difference of AUROC that matters, however small its noise is."""


@dataclass(frozen=True)
class Diagnosis:
    """How one search went.

    Parameters
    ----------
    acceptance : mean share of accepted moves; None for a sampler that accepts nothing by chance, and for several.
    last_gain : median over chains of the share of the budget at which the lowest score was found.
    white_box_gain : AUROC that a gradient search of the same budget takes off the black box's on the same chains; None
        where none was asked for, or the score or the variation has no gradient.
    convergence : what the last doublings of the budget took, and what eight times the budget would; None where the
        budget is too small to say.
    flags : reasons to distrust it, in words.
    """

    acceptance: float | None
    last_gain: float
    white_box_gain: float | None
    convergence: Convergence | None
    flags: tuple[str, ...]


def diagnose(
    results: Sequence[SearchResult], samplers: Sequence[Sampler], id_test: FloatArray, white: SearchResult | None
) -> Diagnosis:
    """Judge the searches of one variation by their own traces and, where there is one, by a gradient search.

    Parameters
    ----------
    results : one for each search seed.
    samplers : the members of the portfolio.
    white : of the first seed, on its first chains.
    """
    first = results[0]
    last_gain = float(torch.as_tensor(first.improved_at).double().median()) / first.budgets[-1]
    flags = []
    ahead = convergence(results, id_test)
    if ahead is not None and (words := _still_falling(ahead, first.budgets[-1], _mean_auroc(results, id_test))):
        flags.append(words)
    acceptance = None
    # only a sampler of a law, which has a temperature, accepts by chance
    if len(samplers) == 1 and hasattr(samplers[0], "temperature"):
        acceptance = float(torch.as_tensor(first.acceptance).double().mean())
        if not ACCEPTANCE[0] <= acceptance <= ACCEPTANCE[1]:
            advice = "a smaller step" if acceptance < ACCEPTANCE[0] else "a larger step or a lower temperature"
            flags.append(f"{100 * acceptance:.1f} % of the moves were accepted; try {advice}")
    gain = None
    if white is not None:
        gain, noise = _gain(
            outlier_ranks(id_test, first.scores[: len(white.scores)]), outlier_ranks(id_test, white.scores)
        )
        if gain > max(noise, NOTICEABLE):
            flags.append(
                f"{white.budgets[-1]:,} evaluations with gradients bring the AUROC of the first {len(white.scores)} "
                f"chains {100 * gain:.1f} points lower than this search did"
            )
    return Diagnosis(acceptance, last_gain, gain, ahead, tuple(flags))


def _mean_auroc(results: Sequence[SearchResult], id_test: FloatArray) -> float:
    return float(np.mean([outlier_ranks(id_test, np.asarray(each.at_budget[-1])).auroc for each in results]))


def _still_falling(ahead: Convergence, budget: int, auroc: float) -> str | None:
    """Words where eight times the budget would take a point or more, and the noise does not explain it."""
    if auroc - ahead.eightfold_interval.high <= NOTICEABLE:
        return None
    low, high = (100 * end for end in (ahead.eightfold_interval.low, ahead.eightfold_interval.high))
    return (
        f"AUROC still falls by {100 * ahead.fall:.1f} points per doubling; {8 * budget:,} evaluations would bring it "
        f"to about {100 * ahead.eightfold:.1f} [{low:.1f}–{high:.1f}]"
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
    """One detector, its scores of the source images, and the searches of each variation.

    Parameters
    ----------
    searches : by variation, one result for each search seed; pictures and parameters are those of the first.
    """

    attacked: Attacked
    clean: FloatArray
    searches: Mapping[str, tuple[SearchResult, ...]]
    diagnoses: Mapping[str, Diagnosis]

    @property
    def results(self) -> dict[str, SearchResult]:
        """By variation, that of the first seed."""
        return {name: each[0] for name, each in self.searches.items()}

    def scores(self, variation: str, number: int = 0) -> FloatArray:
        """The worst of each chain, in the search with this seed."""
        return np.asarray(self.searches[variation][number].scores, dtype=np.float64)

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


def _natural(variation: Variation, result: SearchResult) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    if not variation.parameters:
        return np.zeros((len(result), 0), dtype=np.float32)
    values: np.ndarray[tuple[int, int], np.dtype[np.float32]] = variation.natural(result.points).float().numpy()
    return values
