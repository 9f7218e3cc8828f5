"""Evaluation via generation on CIFAR-10 against SVHN: which detector is left with what, under which variation.

    OODSCOPE_DATA=path/to/packs python benchmarks/evg_study.py --cifar10-train cifar10_train.npz \\
        --generator svhn_gan.safetensors --density autoencoder.safetensors --density flow.safetensors \\
        --work scratch --output results --device cuda

The network is a ResNet-18 trained on CIFAR-10. Outliers are SVHN digits: images 0-4,999 of the pack trained the
generator, 5,000-9,999 are attacked. ID validation and test are OpenOOD's split of the CIFAR-10 test images (1,000 and
9,000). Stages, in this order unless --stage names others:

    affine, color, affine+color, gan   all detectors, 1,000 chains of 2,000 evaluations
    large                              four detectors, the single ones of these, 5,000 chains, the first 1,000 as above
    linf                               four detectors, l-inf ball of radius .01, zeroth order at equal evaluations
    long                               one detector, l-inf, the paper's 20,000 steps (40,000 evaluations), 500 chains

Every search is kept in --work and never repeated; --stop-after ends the searching and writes what is there. A detector
that fails is reported and left out.
"""

import argparse
import csv
import os
import shutil
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import oodscope as oods
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.saving import load_detector
from oodscope.execution.console import ConsoleProgress
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.registry import create_variation
from oodscope.models.density.saved import read_density_record
from oodscope.models.generators.saved import load_generator
from oodscope.report.page.attack import write_attack
from oodscope.runs.attack.attacked import Attacked, PixelView, aim
from oodscope.runs.attack.plan import Plan
from oodscope.runs.attack.run import Attack
from oodscope.runs.attack.table import attack_table
from oodscope.runs.evaluation.scoring import fit_scorers
from openood_cifar import ARTIFACTS, TRANSFORM, open_classifier, pack

DETECTORS = ("msp", "mls", "ebo", "gen", "klm", "knn", "mds", "vim", "fdbd", "react", "ash", "nnguide")
FEW = ("msp", "knn", "vim", "mds")
VARIED = ("affine", "color", "affine+color", "gan")
STAGES = (*VARIED, "large", "linf", "long")
TRAINED_THE_GAN = 5000


@dataclass(frozen=True)
class Part:
    """An attack of its own: who, with what, how hard."""

    name: str
    detectors: tuple[str, ...]
    variations: tuple[str, ...]
    plan: Plan


@dataclass
class Study:
    """Everything that the searches share, and what became of them."""

    scorers: dict[str, TensorScorer]
    benchmark: oods.Benchmark
    outliers: oods.ImageSet
    variations: dict[str, Variation]
    deadline: float
    done: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    timings: list[tuple[str, str, str, int, int, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.view = PixelView(self.scorers)
        self.pool = self.view.first(self.outliers, min(5000, len(self.outliers)))

    def search(self, part: Part, detector: str, variation: str) -> None:
        """One search, timed; a failure is kept and told."""
        if (part.name, detector) in self.failed or time.time() > self.deadline:
            return
        began = time.perf_counter()
        try:
            attacked = self.aim(part.plan, detector)
            found = part.plan.search(attacked, variation, self.variations[variation], self.pool)
            searched = time.perf_counter() - began
            part.plan.white_box(attacked, variation, self.variations[variation], self.pool)
        except Exception as error:
            self.failed[part.name, detector] = f"{variation}: {type(error).__name__}: {str(error)[:200]}"
            traceback.print_exc()
            print(f"FAILED {part.name}, {detector}: {self.failed[part.name, detector]}", flush=True)
            return
        self.done.setdefault(part.name, set()).add((detector, variation))
        total = time.perf_counter() - began
        row = (part.name, detector, variation, len(found), part.plan.budget, searched, total)
        self.timings.append(row)
        speed = found.evaluations / found.seconds
        clean = "" if found.clean is None else f", median clean {float(found.clean.median()):.4g}"
        print(
            f"{part.name:>5} {detector:>12} {variation:<13} {len(found):>5} x {part.plan.budget:<6} {searched:7.1f} s "
            f"(+ {total - searched:.1f} white box), {speed:,.0f}/s, "
            f"median found {float(found.scores.median()):.4g}{clean}",
            flush=True,
        )

    def aim(self, plan: Plan, detector: str) -> Attacked:
        bench = self.benchmark
        assert bench.id_val is not None
        file = plan.file_of(detector)
        return aim(detector, self.scorers[detector], self.view, bench.id_val, bench.id_test, file)

    def complete(self, part: Part) -> tuple[list[str], list[str]]:
        """Detectors and variations of which every pair was searched."""
        done = self.done.get(part.name, set())
        sound = [each for each in part.detectors if (part.name, each) not in self.failed]
        counts = {name: sum((each, name) in done for each in sound) for name in part.variations}
        variations = [name for name in part.variations if counts[name] and counts[name] == max(counts.values())]
        detectors = [each for each in sound if all((each, name) in done for name in variations)]
        return (detectors, variations) if variations else ([], [])

    def report(self, part: Part, output: Path) -> None:
        detectors, variations = self.complete(part)
        if not detectors:
            print(f"{part.name}: nothing complete", flush=True)
            return
        assert self.benchmark.id_val is not None
        began = time.perf_counter()
        attack = oods.attack(
            {name: self.scorers[name] for name in detectors},
            self.benchmark.id_val,
            self.benchmark.id_test,
            self.outliers,
            {name: self.variations[name] for name in variations},
            budget=part.plan.budget,
            chains=part.plan.chains,
            seed=part.plan.seed,
            folder=part.plan.folder,
            benchmark=(self.benchmark.name, self.benchmark.version),
        )
        folder = output / part.name
        shutil.rmtree(folder, ignore_errors=True)
        attack.save(folder)
        write_attack(attack, folder)
        print(
            f"\n## {part.name} ({time.perf_counter() - began:.0f} s)\n\n{(folder / 'table.md').read_text()}", flush=True
        )
        orders = clean_order_left(attack)
        print("Spearman, AUROC clean ~ attacked: " + ", ".join(f"{name} {rho:.3f}" for name, rho in orders.items()))


def clean_order_left(attack: Attack) -> dict[str, float]:
    """Spearman's correlation of the classifier's detectors, by AUROC, between clean and each variation."""
    table = attack_table(attack)
    clean, *varied = (
        [cells[column].row.value for name, cells in table.rows if name in DETECTORS]
        for column in range(len(table.groups))
    )
    if len(clean) < 3:
        return {}
    return {name: float(spearmanr(clean, values).statistic) for name, values in zip(table.groups[1:], varied)}


def open_benchmark(folder: Path, train: Path | None, limit: int | None) -> tuple[oods.Benchmark, oods.ImageSet]:
    """CIFAR-10 by OpenOOD's split, and the digits that no generator has seen."""
    splits = np.load(folder / "openood_v15_splits.npz")
    whole = pack(folder, "cifar10_test")
    if train is None and limit is not None:  # to try the script out; the numbers mean nothing
        learnt = whole.take(np.arange(limit), "id_train")
    else:
        place = train or next(
            home / "cifar10_train.npz" for home in (folder, ARTIFACTS) if (home / "cifar10_train.npz").exists()
        )
        learnt = pack(folder, place.stem, place.resolve().parent)
    part = slice(limit)
    bench = oods.Benchmark(
        name="cifar10 against svhn",
        version="openood-1.5 split",
        transform=TRANSFORM["cifar10"],
        id_train=learnt.take(np.arange(len(learnt))[part], "id_train"),
        id_val=whole.take(splits["cifar10_val_id"][part], "id_val"),
        id_test=whole.take(splits["cifar10_test_id"][part], "id_test"),
    )
    digits = pack(folder, "svhn_test_10k")
    return bench, digits.take(np.arange(TRAINED_THE_GAN, len(digits)), "svhn")


def fitted(
    classifier: oods.Classifier, bench: oods.Benchmark, names: Sequence[str], work: Path
) -> tuple[dict[str, TensorScorer], dict[str, str]]:
    """Scorers, fitted once, and why others could not be: a resumed search must meet the detector that it began with."""
    store, scorers, failed = oods.ActivationStore(work / "activations"), {}, {}
    for name in names:
        saved = work / "detectors" / f"{name}.safetensors"
        try:
            if not saved.exists():
                made = fit_scorers(classifier, bench, [name], store=store, progress=ConsoleProgress())
                made[name].detector.save(saved)
            scorers[name] = Scorer(classifier, load_detector(saved))
        except oods.OodscopeError as error:
            failed[name] = str(error)
            print(f"FAILED to fit {name}: {error}", flush=True)
    return scorers, failed


def parts_of(options: argparse.Namespace, names: tuple[str, ...]) -> list[Part]:
    plan = Plan(options.budget, options.chains, seed=options.seed, folder=options.work / "searches")
    few = tuple(name for name in FEW if name in names) or names[:1]
    varied = tuple(name for name in VARIED if name != "gan" or options.generator is not None)
    long = replace(plan, budget=20 * options.budget, chains=options.chains // 2, folder=options.work / "long")
    single = tuple(name for name in varied if "+" not in name)
    large = replace(plan, chains=5 * options.chains)
    if options.chains % 1000:  # only whole blocks are a part of a larger search
        large = replace(large, folder=options.work / "large")
    return [
        Part("all", names, tuple(name for name in varied if name in options.stage), plan),
        Part("large", few, single if "large" in options.stage else (), large),
        Part("linf", few, ("linf",) if "linf" in options.stage else (), plan),
        Part("long", few[:1], ("linf",) if "long" in options.stage else (), long),
    ]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar10-train", type=Path, help="pack of the 50,000 training images; else looked for")
    parser.add_argument("--generator", type=Path, help="from oodscope generate gan; without it, no gan stage")
    parser.add_argument(
        "--density",
        type=Path,
        action="append",
        default=[],
        help="folder of a training by a recipe such as glow; repeatable",
    )
    parser.add_argument("--detectors", default=",".join(DETECTORS))
    parser.add_argument("--stage", default=",".join(STAGES))
    parser.add_argument("--chains", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="so many images of each ID set, to try the script out")
    parser.add_argument("--stop-after", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--work", type=Path, required=True, help="searches and fitted detectors, for going on")
    parser.add_argument("--output", type=Path, required=True, help="results and pages")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    options.stage = options.stage.split(",")
    if unknown := set(options.stage) - set(STAGES):
        parser.error(f"unknown stage {min(unknown)!r}; stages: {', '.join(STAGES)}")
    return options


def main() -> int:
    options, began = read_options(), time.time()
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    bench, outliers = open_benchmark(folder, options.cifar10_train, options.limit)
    classifier = open_classifier(folder, "cifar10", options.device)
    scorers, unfit = fitted(classifier, bench, options.detectors.split(","), options.work)
    for path in options.density:
        kind = read_density_record(path).shape.kind
        scorers[kind] = Scorer(classifier, oods.create_detector(kind, network=str(path)))
    variations: dict[str, Variation] = {name: create_variation(name) for name in (*VARIED[:3], "linf")}
    if options.generator is not None:
        variations["gan"] = GanVariation(load_generator(options.generator))
    study = Study(scorers, bench, outliers, variations, began + options.stop_after)
    study.failed |= {("fit", name): reason for name, reason in unfit.items()}
    print(f"ready after {time.time() - began:.0f} s: {len(scorers)} detectors on {classifier.device}", flush=True)
    parts = parts_of(options, tuple(scorers))
    for part in parts:
        for variation in part.variations:
            for detector in part.detectors:
                study.search(part, detector, variation)
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "timings.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["part", "detector", "variation", "chains", "budget", "search_seconds", "seconds"])
        writer.writerows(study.timings)
    for part in parts:
        if part.variations:
            study.report(part, options.output)
    for (part_name, detector), reason in study.failed.items():
        print(f"failed: {part_name}, {detector}: {reason}")
    print(f"ended after {time.time() - began:.0f} s", flush=True)
    return 1 if study.failed else 0


if __name__ == "__main__":
    sys.exit(main())
