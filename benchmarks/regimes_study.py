"""Train the networks of the human-centric study's Figures 4 to 7 on CIFAR-100, and measure rejection on each.

    OODSCOPE_DATA=path/to/packs python benchmarks/regimes_study.py --output FOLDER [--minutes 9.5] [--names a,b]

Six architectures trained plainly, ResNet-18 under l2-adversarial training of growing radius and seven other regimes.
Called again, it goes on where it stopped, also in the middle of a training; a network whose rows are there is not made
again, and one that fails is reported and left out. ``FOLDER/runs/NAME-SEED`` holds the scores of every image, saved as
soon as a network is scored; ``FOLDER/rows/NAME-SEED.csv`` holds accuracy, DER, FRR and FAR at 95 and 99 % of nine
detectors on every set, with thresholds from correct validation images and from correct training images. Intervals for
other images are left to whoever opens the runs: a GPU would wait for them. The page comes from ``regimes_page.py``.
"""

import argparse
import os
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import oodscope as oods
from oodscope.base.files import write_text
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import evaluating
from oodscope.protocols.human_centric.protocol import HumanCentric
from oodscope.training.loop.streams import Stream
from oodscope.training.network import NetworkRecord
from oodscope.training.perturbation import Attack, Ball
from oodscope.training.recipe import Recipe
from oodscope.training.registry import create_recipe
from oodscope.training.train import Trained, train_seeds
from shifted_cifar import open_shifted
from training_table import TimeUpError, Watch

DETECTORS = ("msp", "mds", "klm", "ebo", "react", "gradnorm", "knn", "vim", "dice")
THREE, ONE = (0, 1, 2), (0,)
PLAIN = "plain"
RADII = (0.015, 0.03, 0.06, 0.125, 0.25, 0.5, 0.75, 1.0)
"""Of the l2 sweep: the study's radii at 224 px are about seven times these."""
CROP = {"pad": 4, "flip": True}


@dataclass(frozen=True)
class Row:
    """The networks of one architecture and one regime.

    Parameters
    ----------
    figure : the figures of the paper that it belongs to.
    after : the row whose networks it goes on from; ``teachers`` the one whose networks teach it.
    share : of the epochs of a whole training.
    """

    name: str
    recipe: str = "cross_entropy"
    settings: dict[str, Any] = field(default_factory=dict)
    network: str = "resnet18_32"
    seeds: tuple[int, ...] = ONE
    figure: str = "6"
    after: str | None = None
    teachers: str | None = None
    share: float = 1.0


def _rows() -> Iterable[Row]:
    """From what most verdicts need to what one figure needs, and there from cheap to dear."""
    yield Row(PLAIN, seeds=THREE, figure="4, 5, 6, 7")
    yield Row("distilled", "distill", seeds=THREE, figure="6, 7", after=PLAIN, teachers=PLAIN, share=0.4)
    yield Row("ant", "ant", seeds=THREE, after=PLAIN, share=0.4)
    yield from (adversarial(radius) for radius in (0.125, 0.75))
    yield Row("autoaugment", settings={"augment": [CROP, {"kind": "autoaugment"}]}, seeds=THREE)
    yield Row("vgg16_32", network="vgg16_32", figure="4")
    for form in ("gaussian", "speckle"):
        yield Row(form, "noise", {"augment": [CROP, {"kind": "noise", "form": form}]}, seeds=THREE)
    yield Row("style", settings={"augment": [CROP, {"kind": "style", "share": 0.5}]}, seeds=THREE)
    yield Row("augmix", settings={"augment": [CROP, {"kind": "augmix"}]}, seeds=THREE)
    yield from (adversarial(radius) for radius in RADII if radius not in (0.125, 0.75))
    for network in ("wrn_16_4", "resnet34_32", "vit_tiny_32", "densenet_40_24"):
        settings = {"learning_rate": 0.03, "warmup_epochs": 5} if network == "vit_tiny_32" else {}
        yield Row(network, network=network, settings=settings, figure="4")


def adversarial(radius: float) -> Row:
    """Three seeds where the study's conclusions are compared, one elsewhere."""
    seeds = THREE if radius in (0.125, 0.75) else ONE
    return Row(f"l2-{radius:g}", "l2_adversarial", {"epsilon": radius}, seeds=seeds, figure="5", share=0.4)


ROWS = {row.name: row for row in _rows()}
REGIMES = ("l2-0.125", "augmix", "autoaugment", "gaussian", "speckle", "style", "ant", "distilled")
"""Eight regimes of ResNet-18, three seeds each."""
ARCHITECTURES = (PLAIN, "vgg16_32", "resnet34_32", "wrn_16_4", "densenet_40_24", "vit_tiny_32")


class Study:
    """The networks, from their trainings to their rows."""

    def __init__(self, options: argparse.Namespace, watch: Watch, sets: Callable[..., oods.Benchmark]) -> None:
        self.options, self.watch = options, watch
        self.bench = sets(Path(os.environ.get("OODSCOPE_DATA", ".")), "cifar100")
        if options.images:
            self.bench = shortened(self.bench, options.images)

    def path(self, row: Row, seed: int) -> Path:
        return self.options.output / "rows" / f"{row.name}-{seed}.csv"

    def training(self, row: Row, seed: int) -> Path:
        return Path(self.options.trainings) / f"{row.name}-{seed}"

    def recipe(self, row: Row) -> Recipe:
        settings = {"precision": self.options.precision, **row.settings}
        if row.teachers is not None:
            settings["teachers"] = [str(self.training(ROWS[row.teachers], seed)) for seed in ROWS[row.teachers].seeds]
        return create_recipe(row.recipe, **settings, epochs=max(1, round(row.share * self.options.epochs)))

    def networks(self, row: Row, seeds: Sequence[int]) -> list[Trained]:
        """The trained networks of a row, from where their trainings stopped."""
        classes = len(self.bench.class_names)

        def build() -> nn.Module:
            return oods.create_model(self.options.network or row.network, num_classes=classes)[0]

        starts: list[Any] = [build] * len(seeds)
        if row.after is not None:
            starts = [each.model for each in self.networks(ROWS[row.after], seeds)]
        if row.teachers is not None:
            self.networks(ROWS[row.teachers], ROWS[row.teachers].seeds)
        trained = train_seeds(
            starts,
            self.recipe(row),
            seeds,
            self.bench.id_train,
            self.bench.transform,
            folders=[self.training(row, seed) for seed in seeds],
            device=self.options.device,
            progress=self.watch,
        )
        if row.recipe == "cross_entropy":  # opened by name where it teaches
            for seed in seeds:
                network = NetworkRecord(
                    architecture=self.options.network or row.network, num_classes=classes, stages=()
                )
                network.write(self.training(row, seed))
        return trained

    def make(self, row: Row, seeds: Sequence[int]) -> None:
        begun = time.monotonic()
        trained = self.networks(row, seeds)
        print(f"{row.name} {list(seeds)}: {time.monotonic() - begun:.0f} s to train", flush=True)
        for seed, each in zip(seeds, trained):
            begun = time.monotonic()
            classifier = Classifier(each.model, self.bench.transform, device=self.options.device, name=row.name)
            result = oods.evaluate(
                classifier, self.bench, DETECTORS, protocols=[HumanCentric()], intervals="none", progress=self.watch
            )
            result.save(self.options.output / "runs" / f"{row.name}-{seed}")
            rows = kept_rows(result, row, seed)
            if row.recipe == "l2_adversarial":
                robust = self.robust_accuracy(each.model, float(row.settings["epsilon"]))
                attacked = {"detector": "", "metric": "robust_accuracy", "set": "id_test", "group": "id"}
                facts = {"value": robust, "name": row.name, "network": row.network, "seed": seed}
                rows = pd.concat([rows, pd.DataFrame([attacked | facts])])
            write_text(self.path(row, seed), rows.to_csv(index=False))
            print(f"{row.name} {seed}: {time.monotonic() - begun:.0f} s to measure", flush=True)

    def robust_accuracy(self, model: nn.Module, radius: float) -> float:
        """Of test images attacked at the radius of the training, by 20 steps of 2.5/20 of it."""
        stream = Stream(self.bench.id_test, self.bench.transform, torch.device(self.options.device))
        attack, right = Attack(Ball("l2", radius), 20, 2.5 * radius / 20, keep="best"), 0
        for batch in stream.walk(1000):
            labels = batch.labels

            def objective(images: torch.Tensor, labels: torch.Tensor = labels) -> torch.Tensor:
                return cross_entropy(model(images), labels, reduction="none")

            with evaluating(model):
                moved = attack(model, objective, batch.images, batch.scale, torch.Generator())
                right += int((model(moved).argmax(dim=1) == labels).sum())
        return right / len(stream)


def kept_rows(result: oods.Result, row: Row, seed: int) -> pd.DataFrame:
    """Accuracy, and DER, FRR and FAR at both sources of thresholds."""
    frame = result.measurements.to_dataframe()
    rates = frame["metric"].str.match(r"(der|frr|far)(95|99)_(val|train)_correct$|accuracy$|augrc$")
    columns = ["detector", "metric", "set", "group", "value", "low", "high", "rejected_correct"]
    return frame[rates][columns].assign(name=row.name, network=row.network, seed=seed)


def shortened(bench: oods.Benchmark, count: int) -> oods.Benchmark:
    """A part of every set, for a try."""

    def few(images: oods.ImageSet) -> oods.ImageSet:
        return images.take(range(min(count, len(images))), images.name)

    single = {role: few(getattr(bench, role)) for role in ("id_train", "id_val", "id_test")}
    many = {role: tuple(map(few, getattr(bench, role))) for role in ("near", "far", "csid")}
    return replace(bench, **single, **many)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--trainings", type=Path, help="folder of trainings under way; by default in the output folder")
    parser.add_argument("--names", help="rows, separated by commas; by default all, in their order")
    parser.add_argument("--seeds", help="by default those of the row")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--precision", default="bf16-mixed")
    parser.add_argument("--network", help="another network in the place of every row's, for a try")
    parser.add_argument("--images", type=int, help="images of each set, for a try")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    options.trainings = options.trainings or options.output / "trainings"
    return options


def main(arguments: Sequence[str] | None = None, sets: Callable[..., oods.Benchmark] = open_shifted) -> list[str]:
    """Work until the rows or the minutes are over; the networks that are not yet run."""
    options = parse(arguments)
    names = options.names.split(",") if options.names else list(ROWS)
    if unknown := [name for name in names if name not in ROWS]:
        raise SystemExit(f"unknown row {unknown[0]!r}; known: {', '.join(ROWS)}")
    study, stopped, missing = Study(options, Watch(options.minutes), sets), False, []
    for row in (ROWS[name] for name in names):
        seeds = [int(seed) for seed in options.seeds.split(",")] if options.seeds else list(row.seeds)
        todo = [seed for seed in seeds if not study.path(row, seed).exists()]
        if todo and not stopped:
            try:
                study.make(row, todo)
            except TimeUpError:
                stopped = True
            except Exception:  # one row's fault must not cost the others their time
                print(f"{row.name} {todo}: failed", flush=True)
                traceback.print_exc()
        missing += [f"{row.name} {seed}" for seed in todo if not study.path(row, seed).exists()]
    if stopped:
        print("the minutes are over; call again to go on")
    print(f"not yet run: {', '.join(missing) or 'nothing'}")
    return missing


if __name__ == "__main__":
    main()
