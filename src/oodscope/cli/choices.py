"""Values that options take: enumerations, which complete and name their choices, and names of the catalogue."""

from collections.abc import Callable
from enum import StrEnum

from oodscope.base.catalog import catalog, plugins


class Tune(StrEnum):
    """On which data hyper-parameters are searched."""

    DEFAULT = "default"
    ID_ONLY = "id_only"
    OOD_VAL = "ood_val"


class Intervals(StrEnum):
    """How much work goes into intervals."""

    FULL = "full"
    FAST = "fast"
    NONE = "none"


class Backbone(StrEnum):
    """What is trained in each fold of a cross-validation."""

    FROZEN = "frozen"
    FULL = "full"
    FINETUNE = "finetune"


class CrossvalPreset(StrEnum):
    """Plans of a cross-validation by name."""

    DCV_PAPER = "dcv-paper"


class CellTest(StrEnum):
    """How detectors are compared over the cells of a cross-validation."""

    WILCOXON = "wilcoxon"
    MANNWHITNEY = "mannwhitney"


class Guarantee(StrEnum):
    """What a threshold promises."""

    CONFORMAL = "conformal"
    PAC = "pac"


class Energy(StrEnum):
    """On what scale an attack weighs scores."""

    CANONICAL = "canonical"
    STANDARDISED = "standardised"
    RELEASED = "released"
    RANK_PROBIT = "rank_probit"


class GeneratePreset(StrEnum):
    """Settings of a generated set by name."""

    PAPER = "paper"


class Pairing(StrEnum):
    """Which real image a generated one is kept close to."""

    CLASS = "class"
    NEAREST = "nearest"


class AttackPreset(StrEnum):
    """Settings of an attack by name."""

    QUICK = "quick"
    THOROUGH = "thorough"
    PAPER = "paper"


class Sources(StrEnum):
    """Which outliers the chains of an attack start from."""

    STRATIFIED = "stratified"
    FIRST = "first"


class Interpolation(StrEnum):
    """How affine variations read between pixels."""

    BILINEAR = "bilinear"
    NEAREST = "nearest"


class Boundary(StrEnum):
    """What happens to a step that leaves the box."""

    REFLECT = "reflect"
    CLAMP = "clamp"


class NearMethod(StrEnum):
    """How near-OOD images are made."""

    GAN = "gan"
    LATENT = "latent"
    RECOMBINATION = "recombination"


class NearNetwork(StrEnum):
    """Which generator is trained for near-OOD images."""

    BIGGAN = "biggan"
    DCGAN = "dcgan"


class Track(StrEnum):
    """Tracks of the leaderboard."""

    POST_HOC = "post-hoc"
    TRAINING = "training"
    OUTLIER_DATA = "outlier-data"
    VISION_LANGUAGE = "vision-language"
    TRANSDUCTIVE = "transductive"


TRACK_SUMMARIES = {
    Track.POST_HOC.value: "a trained network as it is; the method changes the score only",
    Track.TRAINING.value: "the network is trained by the method, on ID images alone",
    Track.OUTLIER_DATA.value: "the training uses outliers too",
    Track.VISION_LANGUAGE.value: "the network classifies by words, such as CLIP",
    Track.TRANSDUCTIVE.value: "the score of an image depends on the other test images",
}
"""Each track of the leaderboard in words."""


def complete(*sections: str, also: tuple[str, ...] = ()) -> Callable[[str], list[str]]:
    """Completion by the names of sections of the catalogue, after the last comma of a list."""

    def names(incomplete: str) -> list[str]:
        before, comma, begun = incomplete.rpartition(",")
        known = [*also, *(name for section in sections for name in (*catalog(section), *plugins(section)))]
        return [f"{before}{comma}{name}" for name in known if name.startswith(begun)]

    return names
