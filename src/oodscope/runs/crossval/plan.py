"""CrossValidationPlan: how often to draw, train and judge, as a configuration."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from oodscope.base.config import StrictModel
from oodscope.base.errors import DetectorError
from oodscope.data.folds.sets import FoldPlan
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.registry import requested_detector

PAPER_DETECTORS = ("ebo", "fdbd", "gen", "klm", "knn", "mds", "nnguide", "relation")
"""The eight of the paper. Its parameters (GEN: gamma .1, M 100; KNN: 50; NNGuide: k 100, 1 %; Relation: pow 1) are
our defaults."""

PRESETS: dict[str, dict[str, Any]] = {
    "dcv-paper": {
        "folds": 5,
        "repetitions": 10,
        "hold_outs": 100,
        "detectors": PAPER_DETECTORS,
        "pre_activation": ("knn", "mds", "relation"),
        "outlier_exposure": True,
        "test": "wilcoxon",
    }
}
"""Values of a plan by the name of a preset. ``dcv-paper``: the paper's eight detectors, 10 cross-validations of 5 folds
and 100 hold-outs. Its detectors of distance and density read features before the ReLU; those of the head cannot. Every
detector is also scored on the features after it, and both tables are shown."""

Form = Literal["features", "pre_activation"]
"""What a detector takes for the features: the input of the head, or what stands before the last ReLU."""


class FoldDetector(NamedTuple):
    """A detector and the form of the features that it reads."""

    detector: Detector
    reads: Form = "features"

    @property
    def id(self) -> str:
        """Its name in tables, such as ``mds(pre_activation)``."""
        if self.reads == "features":
            return self.detector.id
        name, bracket, parameters = self.detector.id.partition("(")
        return f"{name}({parameters.removesuffix(')')}, {self.reads})" if bracket else f"{name}({self.reads})"


def forms_of(detectors: Sequence[str]) -> dict[Form, list[str]]:
    """The detectors of each form of the features that a study has: one of each name.

    ``pre_activation`` holds the detectors that read it, and of the others those that have only one form.
    """
    before = {_plain(name): name for name in detectors if name.endswith("pre_activation)")}
    after = [name for name in detectors if name not in before.values()]
    if not before:
        return {"features": after}
    return {"pre_activation": [before.get(name, name) for name in after], "features": after}


def _plain(name: str) -> str:
    return name.replace(", pre_activation)", ")").removesuffix("(pre_activation)")


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
    pre_activation : names of those that are scored a second time on the features before the last ReLU, as the paper
        does; only two-layer heads on frozen embeddings have them.
    preset : a name of ``PRESETS``, whose values stand wherever no other is given.
    outlier_exposure : whether every model is fine-tuned on the OOD training classes and judged again.
    val_share : share of the ID training images, of each class, that is held out: it stops the training, fits
        detectors that want held-out images and gives the threshold of ``accuracy_at_90_id_kept``.
    duplicates : what to do with equal images that could be trained on and tested: ``error`` stops, ``drop`` leaves out
        all but the first (an ID image before an OOD image) and notes how many.
    stratified : deal every ID class evenly over the folds; without it (plain k-fold) images are dealt regardless of
        class.
    disjoint_truth : one half of the images of every class makes the folds, the other half the truth, so that a
        cross-validation and what it is compared with share no image. Hold-outs with an odd number are then drawn from
        the half of the truth, those with an even number from that of the folds, as their equals in cost.
    strict : a stratum of the hierarchy that misses the test of a fold stops the study instead of being noted.
    test : how detectors are compared over cells: ``wilcoxon``, paired signed ranks, which the paper's numbers are, or
        ``mannwhitney``, which its text names. Changing it trains nothing.
    auto_parametric : Student's paired t in its place where the differences pass for normal.
    seed : of all draws.
    """

    preset: Literal["dcv-paper"] | None = None

    folds: int = Field(default=5, ge=2)
    repetitions: int = Field(default=10, ge=0)
    hold_outs: int = Field(default=100, ge=0)
    variance_design: tuple[int, int, int] | None = None
    detectors: tuple[str | dict[str, dict[str, Any]], ...] = Field(default=PAPER_DETECTORS, min_length=1)
    pre_activation: tuple[str, ...] = ()
    outlier_exposure: bool = True
    val_share: float = Field(default=0.2, gt=0, lt=1)
    duplicates: Literal["error", "drop"] = "error"
    stratified: bool = True
    disjoint_truth: bool = False
    strict: bool = False
    test: Literal["wilcoxon", "mannwhitney"] = "wilcoxon"
    auto_parametric: bool = False
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, given: Any) -> Any:
        """What a preset says, under what is given."""
        named = given.get("preset") if isinstance(given, dict) else None
        return PRESETS.get(named, {}) | given if isinstance(named, str) else given

    @property
    def identity(self) -> dict[str, Any]:
        """Everything but the detectors that decides the numbers of draws; how they are compared does not."""
        return self.model_dump(
            mode="json", exclude={"preset", "detectors", "pre_activation", "test", "auto_parametric"}
        )

    def fold_plan(self, level: str | None, deepest: str | None = None) -> FoldPlan:
        """How a pair is folded, whose OOD classes are dealt within the strata of ``level`` if it names one."""
        return FoldPlan(
            folds=self.folds,
            seed=self.seed,
            val_share=self.val_share,
            stratified=self.stratified,
            level=level,
            deepest=deepest,
            duplicates=self.duplicates,
            strict=self.strict,
        )

    def make_detectors(self) -> list[FoldDetector]:
        """The detectors, not fitted, in every form that is asked for; no two may have one name in tables."""
        made = self._named_detectors()
        known = {detector.name for detector in made}
        for name in self.pre_activation:
            if name not in known:
                raise DetectorError(f"pre_activation names {name!r}, which is not among the detectors")
        before = [detector for detector in made if detector.name in self.pre_activation]
        for detector in before:
            if Needs.HEAD in detector.needs or Needs.FEATURES not in detector.needs:
                what = "the head, which does not read them" if Needs.HEAD in detector.needs else "no features"
                raise DetectorError(f"{detector.id}: cannot read features before the ReLU: it reads {what}")
        forms: list[FoldDetector] = [FoldDetector(each) for each in made]
        return forms + [FoldDetector(each, "pre_activation") for each in before]

    def _named_detectors(self) -> list[Detector]:
        made: list[Detector] = []
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
