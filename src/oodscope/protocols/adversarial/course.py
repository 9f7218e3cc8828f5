"""Course: what was found against one detector, variation by variation."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from oodscope.generation.search.found import Found
from oodscope.generation.variations.base import Variation
from oodscope.metrics.ranking.minrank import outlier_ranks
from oodscope.metrics.scores import FloatArray
from oodscope.protocols.adversarial.attacked import Attacked
from oodscope.protocols.adversarial.frame import as_pictures
from oodscope.protocols.adversarial.plan import Plan
from oodscope.protocols.adversarial.reliability import Diagnosis, diagnose
from oodscope.protocols.adversarial.transfer import found_images
from oodscope.results.attack import FoundImages, SearchedPair

SHOWN, EXAMPLES = 10, 5
"""Images that are kept of each search: the worst ones, and those of the first chains, to compare detectors by."""


@dataclass(frozen=True)
class Course:
    """One detector, its scores of the source images, and one search per variation."""

    attacked: Attacked
    clean: FloatArray
    found: Mapping[str, Found]
    diagnoses: Mapping[str, Diagnosis]

    def scores(self, variation: str) -> FloatArray:
        """The worst of each chain."""
        return np.asarray(self.found[variation].scores, dtype=np.float64)

    def pair(self, name: str, variation: Variation, sources: Tensor) -> SearchedPair:
        """What a page shows of one variation: pictures, parameters, flags."""
        found, first = self.found[name], np.arange(min(EXAMPLES, len(sources)))
        return SearchedPair(
            detector=self.attacked.name,
            variation=name,
            settings={**found.description, "chains": len(found), "notes": list(found.notes)},
            parameters=variation.parameters,
            found=_natural(variation, found),
            worst=self._images(name, variation, sources, np.argsort(self.scores(name), kind="stable")[:SHOWN]),
            flags=self.diagnoses[name].flags,
            costs={"seconds": found.seconds, "evaluations": float(found.evaluations)},
            examples=self._images(name, variation, sources, first) if variation.conditional else None,
        )

    def _images(self, name: str, variation: Variation, sources: Tensor, chains: NDArray[np.int64]) -> FoundImages:
        own, scores = sources[chains], self.scores(name)[chains]
        (pixels,) = found_images(variation.to("cpu"), self.found[name].points[chains], own)
        return FoundImages(
            chains=chains,
            scores=scores,
            ranks=outlier_ranks(self.attacked.id_test, scores).below,
            images=as_pictures(pixels),
            sources=as_pictures(own) if variation.conditional else None,
        )


def judged(found: Found, white: Found | None, attacked: Attacked, plan: Plan, variation: Variation) -> Diagnosis:
    """Whether one search can be trusted."""
    return diagnose(found, plan.sampler_for(variation), attacked.id_test, white)


def _natural(variation: Variation, found: Found) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    if not variation.parameters:
        return np.zeros((len(found), 0), dtype=np.float32)
    values: np.ndarray[tuple[int, int], np.dtype[np.float32]] = variation.natural(found.points).float().numpy()
    return values
