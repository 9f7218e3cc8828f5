"""The networks of the tables of trained methods, in the order in which they are trained.

First cross-entropy, in bf16 and for comparison in TF32; then the methods whose published rows are compared, three seeds
each; then the other methods, one seed each and no verdict; then CIFAR-100.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

THREE, ONE = (0, 1, 2), (0,)
CROP = {"pad": 4, "flip": True}
PIXMIX = {"kind": "pixmix", "severity": 3, "beta": 3}
TF32 = "CE-tf32"
"""Not a row of the table: cross-entropy again, in the precision that bf16 is compared with."""


@dataclass(frozen=True)
class Line:
    """One method on one ID set.

    Parameters
    ----------
    known : the ID set.
    recipe, settings : how it is trained.
    seeds : one network for each, fixed in advance.
    published : training and score of the row of the board; ``None`` where there is none to compare with.
    score : our name of that score.
    after : the method whose networks it goes on from.
    share : of the epochs of a whole training that it takes.
    """

    known: str
    method: str
    recipe: str
    seeds: tuple[int, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    published: tuple[str, str] | None = None
    score: str = "msp"
    after: str | None = None
    share: float = 1.0

    @property
    def compared(self) -> bool:
        """Whether it gets a verdict: a published row and three seeds."""
        return self.published is not None and len(self.seeds) == len(THREE)

    @property
    def exposed(self) -> bool:
        """Whether it learns from outliers."""
        return self.recipe in ("outlier_exposure", "mixoe", "mcd", "udg")

    def names(self) -> list[str]:
        """Its networks."""
        return [f"{self.method} {seed}" for seed in self.seeds]


def _plain(known: str) -> dict[str, Line]:
    """The methods that both sets have."""
    square, alpha = (16, 20.0) if known == "cifar10" else (8, 10.0)
    cutout = {"augment": [CROP, {"kind": "cutout", "size": square}]}
    lines = [
        Line(known, "CE", "cross_entropy", THREE, published=("CrossEntropy", "MSP")),
        Line(known, "LogitNorm", "logitnorm", THREE, published=("LogitNorm", "MSP")),
        Line(known, "T2FNorm", "t2fnorm", THREE, published=("T2FNorm", "T2FNorm")),
        Line(known, "Cutout", "cross_entropy", THREE, cutout, ("Cutout", "MSP")),
        Line(known, "RegMixup", "regmixup", THREE, {"alpha": alpha}, ("RegMixup", "MSP")),
        Line(known, "RotPred", "rotpred", THREE, published=("RotPred", "RotPred"), score="rotpred"),
    ]
    return {line.method: line for line in lines}


def _lines() -> Iterator[Line]:
    small = _plain("cifar10")
    randaugment = {"augment": [{"kind": "randaugment", "count": 1, "magnitude": 14}, CROP]}
    augmix = {"augment": [CROP, {"kind": "augmix", "severity": 3}]}
    yield small["CE"]
    yield Line("cifar10", TF32, "cross_entropy", THREE, {"precision": "tf32"})
    yield from (small[name] for name in ("LogitNorm", "T2FNorm", "Cutout"))
    yield Line("cifar10", "RandAugment", "cross_entropy", THREE, randaugment, ("RandAugment", "MSP"))
    yield Line(
        "cifar10", "ConfBranch", "conf_branch", THREE, published=("ConfBranch", "ConfBranch"), score="conf_branch"
    )
    yield Line("cifar10", "ARPL", "arpl", THREE, published=("ARPL", "ARPL"))
    yield small["RegMixup"]
    yield Line("cifar10", "AugMix", "cross_entropy", THREE, augmix, ("AugMix", "MSP"))
    yield small["RotPred"]
    yield Line("cifar10", "PixMix", "cross_entropy", ONE, {"augment": [CROP, PIXMIX]}, ("PixMix", "MSP"))
    yield Line("cifar10", "Mixup", "mixup", ONE)
    yield Line("cifar10", "CutMix", "cutmix", ONE)
    yield Line("cifar10", "AugMix-JSD", "augmix_jsd", ONE)
    yield Line("cifar10", "OE", "outlier_exposure", ONE, {"learning_rate": 0.1}, ("OE", "MSP"))
    yield Line("cifar10", "MixOE", "mixoe", ONE, published=("MixOE", "MSP"), after="CE", share=0.1)
    yield from _others()
    large = _plain("cifar100")
    yield large["CE"]
    for name in ("LogitNorm", "T2FNorm", "RotPred", "Cutout", "RegMixup"):
        line = large[name]
        yield Line("cifar100", name, line.recipe, ONE, line.settings, line.published, line.score)


def _others() -> Iterator[Line]:
    """The rest of OpenOOD's trainings, one seed each; of those whose released loss is defective, it and ours.

    VOS's released form is cross-entropy with the energy, which the rows of CE hold. CSI is two stages. Those that take
    longest come last.
    """

    def line(method: str, recipe: str, score: str, **more: Any) -> Line:
        return Line("cifar10", method, recipe, **{"seeds": ONE, "score": score, **more})

    steps = {"level": "kind"}
    cut_off = {"augment": [{"kind": "resized_crop", "flip": False}, {"kind": "jitter", "normalised": True}]}
    yield line("G-ODIN", "godin", "godin", published=("G-ODIN", "G-ODIN"))
    yield line("VOS", "vos", "ebo", published=("VOS", "EBO"))
    yield line("CIDER", "cider", "knn", published=("CIDER", "KNN"))
    yield line("NPOS", "npos", "knn", published=("NPOS", "KNN"))
    yield line("MOS", "mos", "mos", settings=steps, after="CE", share=0.26, published=("MOS", "MOS"))
    yield line("MOS-released", "mos", "mos", settings={**steps, "parity": True}, after="CE", share=0.26)
    yield line("NPOS-released", "npos", "knn", settings={"parity": True})
    yield line("PALM", "palm", "mahalanobis_pp", published=("PALM", "MDS"))
    yield line("ReweightOOD", "reweightood", "mahalanobis_pp", published=("ReweightOOD", "MDS"))
    yield line("ISH", "ish", "scale", settings={"batch_size": 128}, after="CE", share=0.1)
    yield line("ASCOOD", "ascood", "adascale_a", published=("ASCOOD", "AdaSCALE-A"))
    yield line("CSI-first", "csi", "msp")
    yield line("CSI", "csi_heads", "msp", after="CSI-first", published=("CSI", "MSP"))
    released = {"parity": True, "warmup_epochs": 0, **cut_off}
    yield line("CSI-first-released", "csi", "msp", settings=released)
    yield line("CSI-released", "csi_heads", "msp", settings=cut_off, after="CSI-first-released")
    yield line("MCD", "mcd", "mcd", settings={"keep": "last"}, published=("MCD", "MCD"))
    yield line("MCD-released", "mcd", "mcd", settings={"keep": "last", "parity": True})
    yield line("UDG", "udg", "msp", published=("UDG", "MSP"))


LINES = tuple(_lines())


def lines_of(known: str) -> dict[str, Line]:
    """The lines of one table, by method."""
    return {line.method: line for line in LINES if line.known == known}


RELEASED = {"VOS": "CE", "MOS": "MOS-released", "NPOS": "NPOS-released", "CSI": "CSI-released", "MCD": "MCD-released"}
"""Methods whose released loss is defective, and the networks of that form; of VOS it is cross-entropy alone."""

FINDINGS = {
    "cifar10": [
        ("training for OOD detection", "LogitNorm", 1),
        ("training for OOD detection", "T2FNorm", 1),
        ("training for OOD detection", "RotPred", 1),
        ("training for OOD detection", "ConfBranch", 1),
        ("training for OOD detection", "ARPL", -1),
        ("augmentation", "Cutout", 1),
        ("augmentation", "RandAugment", 1),
        ("augmentation", "AugMix", 1),
        ("augmentation", "RegMixup", -1),
        ("augmentation", "PixMix", 1),
    ],
    "cifar100": [
        ("training for OOD detection", "LogitNorm", -1),
        ("training for OOD detection", "T2FNorm", -1),
        ("training for OOD detection", "RotPred", -1),
        ("augmentation", "Cutout", -1),
        ("augmentation", "RegMixup", 1),
    ],
}
"""What the paper's table says of the near AUROC of a method against cross-entropy with MSP: above (1) or below (-1)."""

SPECTRUM = [("AugMix", 1), ("PixMix", 1), ("RegMixup", 1)]
"""What the paper says of augmentations against cross-entropy under full-spectrum evaluation with MSP, of ImageNet-1K
(near AUROC 60.79 for cross-entropy; 63.14, 62.51 and 61.32): it has no full-spectrum rows of CIFAR."""
