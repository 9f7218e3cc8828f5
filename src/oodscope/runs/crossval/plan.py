"""CrossValidationPlan: how often to draw, train and judge, as a configuration."""

from typing import Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import DetectorError
from oodscope.data.folds.sets import FoldPlan
from oodscope.detectors.base import Detector
from oodscope.detectors.registry import requested_detector

PAPER_DETECTORS = ("ebo", "fdbd", "gen", "klm", "knn", "mds", "nnguide", "relation")
"""The eight of the paper. Its parameters (GEN: gamma .1, M 100; KNN: 50; NNGuide: k 100, 1 %; Relation: pow 1) are
our defaults."""


class CrossValidationPlan(StrictModel):
    """Cross-validation (DCV-ROOD, arXiv 2509.05778): what is drawn, and what is judged on each draw.

    A *fold* keeps 1/K of the images of every ID class, and 1/K of the OOD **classes**, for the test. The rest of ID
    trains the classifier; the rest of the OOD classes are its outliers where it is fine-tuned with Outlier Exposure.

    Parameters
    ----------
    folds : K, of both sides.
    repetitions : whole cross-validations, each with folds of its own. Ten in the paper.
    hold_outs : single draws of 1/K, each independent of the others; their mean is the *benchmark truth* that
        cross-validation is compared with. A hundred in the paper, 0 for none.
    variance_design : ``(a, b, c)`` adds ``a * b * c`` hold-outs that cross ``a`` draws of ID images, ``b`` draws of OOD
        classes and ``c`` training seeds, so that each one's share of the variance can be estimated.
    detectors : names, or ``{name: {parameter: value}}``.
    outlier_exposure : whether every model is fine-tuned on the OOD training classes and judged again.
    val_share : share of the ID training images, of each class, that is held out: it stops the training, fits
        detectors that want held-out images and gives the threshold of ``accuracy_at_90_id_kept``.
    duplicates : what to do with equal images that could be trained on and tested: ``error`` stops, ``drop`` leaves out
        all but the first (an ID image before an OOD image) and notes how many.
    strict : a stratum of the hierarchy that misses the test of a fold stops the study instead of being noted.
    seed : of all draws.
    """

    folds: int = Field(default=5, ge=2)
    repetitions: int = Field(default=10, ge=0)
    hold_outs: int = Field(default=100, ge=0)
    variance_design: tuple[int, int, int] | None = None
    detectors: tuple[str | dict[str, dict[str, Any]], ...] = Field(default=PAPER_DETECTORS, min_length=1)
    outlier_exposure: bool = True
    val_share: float = Field(default=0.2, gt=0, lt=1)
    duplicates: Literal["error", "drop"] = "error"
    strict: bool = False
    seed: int = Field(default=0, ge=0)

    def fold_plan(self, level: str | None) -> FoldPlan:
        """How a pair is folded, whose OOD classes are dealt within the strata of ``level`` if it names one."""
        return FoldPlan(
            folds=self.folds,
            seed=self.seed,
            val_share=self.val_share,
            level=level,
            duplicates=self.duplicates,
            strict=self.strict,
        )

    def make_detectors(self) -> list[Detector]:
        """The detectors, not fitted; no two may have one name in tables."""
        made = []
        for entry in self.detectors:
            named = {entry: dict[str, Any]()} if isinstance(entry, str) else entry
            made += [requested_detector(name, **params) for name, params in named.items()]
        ids = [detector.id for detector in made]
        for name in ids:
            if ids.count(name) > 1:
                raise DetectorError(f"{name}: asked for twice with the same parameters")
        for detector in made:
            if detector.probes:
                raise DetectorError(
                    f"{detector.id}: needs more passes through the network than the plain one; cross-validation judges "
                    "detectors of logits and features"
                )
        return made
