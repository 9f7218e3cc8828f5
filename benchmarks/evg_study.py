"""Evaluation via generation on CIFAR-10, cell by cell: which detector is left with what, under which search.

    OODSCOPE_DATA=path/to/packs python benchmarks/evg_study.py --output CELLS --minutes 20 \\
        --generator gan/generator.safetensors --judge judge.safetensors

The network is the ResNet-18 trained on CIFAR-10; ID validation and test are OpenOOD's split (1,000 and 9,000). A cell
is one search: stage, outliers, detector, variation, samplers, search seed. It is written as one small JSON file when it
is done, and a cell that is there is not done again: the same command goes on. Stages, each with its first seed first:

    choose   samplers and temperatures at equal evaluations, outliers Tiny ImageNet: here the portfolio is chosen
    report   the same on SVHN, which no choice has seen (the paper's figure 2 with real data)
    forms    each detector as s, sigmoid(s) and exp(s), paper's attack and portfolio: what a monotone change changes
    main     twelve detectors, affine, color, both and a generator: the paper's table 2
    linf     four detectors in the l-inf ball: the paper's 20,000 steps, and white-box Auto-PGD

Source images are a draw of the digits 5,000-9,999 (the generator and its judge saw 0-4,999) with every class in its
share. Searches of a cell all have the same total number of evaluations. ``benchmarks/evg_page.py`` makes the pages.
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import oodscope as oods
from oodscope.base.files import slug, write_text
from oodscope.deploy.function_scorer import FunctionScorer, TensorScorer
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.registry import create_detector
from oodscope.generation.samplers.auto_projected_gradient import AutoProjectedGradient
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.samplers.coordinate_descent import CoordinateDescent
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.samplers.parallel_tempering import ParallelTempering
from oodscope.generation.samplers.random_search import RandomSearch
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.registry import create_variation
from oodscope.metrics.ranking.minrank import outlier_ranks, source_interval
from oodscope.models.generators.saved import load_generator
from oodscope.runs.attack.attacked import Attacked, PixelView, aim
from oodscope.runs.attack.convergence import convergence
from oodscope.runs.attack.plan import Plan
from oodscope.runs.attack.sources import source_order
from oodscope.runs.attack.validity import Validity, truncation_curve
from oodscope.runs.evaluation.scoring import fit_scorers
from openood_cifar import TRANSFORM, drawn, open_classifier, open_training, pack
from svhn_gan import TRAINING
from svhn_judge import open_judge, recognised

DETECTORS = ("msp", "knn", "vim", "mds", "mls", "ebo", "gen", "klm", "fdbd", "react", "ash", "nnguide")
FEW = DETECTORS[:4]

SAMPLERS: dict[str, str | Sampler] = {
    "mh T=1": MetropolisHastings(),
    "mh T=.1": MetropolisHastings(temperature=0.1),
    "mh T=.02": MetropolisHastings(temperature=0.02),
    "tempering": ParallelTempering(temperature=0.1),
    "random": RandomSearch(),
    "coordinate descent": CoordinateDescent(),
    "gradient starts": AutoProjectedGradient(),
    "portfolio": "portfolio",
}
"""At equal evaluations; an evaluation of the gradient search has a backward pass too."""

FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "s": lambda scores: scores,
    "sigmoid(s)": torch.sigmoid,
    "exp(s)": torch.exp,
}


FORMED = ("msp", "knn")
"""Detectors that are attacked in every form."""


@dataclass(frozen=True)
class Cell:
    """One search."""

    stage: str
    outliers: str
    detector: str
    variation: str
    sampler: str
    seed: int
    form: str = "s"
    energy: str = "canonical"

    @property
    def name(self) -> str:
        parts = (self.outliers, self.detector, self.form, self.variation, self.sampler, self.energy, f"seed{self.seed}")
        return slug(f"{self.stage}_{'_'.join(parts)}".replace(" ", "-").replace("(", "-").replace(")", ""))


def cells(generator: bool) -> Iterator[Cell]:
    """All cells, the most telling first: rows of the main table, then samplers, then further seeds."""
    varied = ("affine", "color", "affine+color", *(("gan",) if generator else ()))

    def compared(seed: int) -> Iterator[Cell]:
        for stage, outliers in (("choose", "tin"), ("report", "svhn")):
            for variation in ("affine", "color"):
                for detector in FEW:
                    yield from (Cell(stage, outliers, detector, variation, each, seed) for each in SAMPLERS)

    def table(seed: int, detectors: Sequence[str]) -> Iterator[Cell]:
        # row by row, so that a row is whole before the next begins
        return (Cell("main", "svhn", each, name, "portfolio", seed) for each in detectors for name in varied)

    yield from table(0, FEW)
    yield from compared(0)
    yield from table(0, DETECTORS[len(FEW) :])
    for detector in FORMED:
        for form in FORMS:
            for variation in ("affine", "color"):
                yield Cell("forms", "svhn", detector, variation, "portfolio", 0, form)
                yield Cell("forms", "svhn", detector, variation, "mh T=1", 0, form, "standardised")
    yield from (Cell("linf", "svhn", each, "linf", "white box", 0) for each in FEW)
    for seed in (1, 2):
        yield from table(seed, DETECTORS)
        yield from compared(seed)
    yield from (Cell("linf", "svhn", each, "linf", "paper", 0) for each in FEW)


class Study:
    """What cells share: images, the network, fitted detectors and their ID scores."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
        self.classifier = open_classifier(self.folder, "cifar10", options.device)
        self.scorers: dict[str, TensorScorer] = {}
        self.aimed: dict[tuple[str, str, str], Attacked] = {}

    @cached_property
    def benchmark(self) -> oods.Benchmark:
        splits = np.load(self.folder / "openood_v15_splits.npz")
        whole = pack(self.folder, "cifar10_test")
        return oods.Benchmark(
            name="cifar10",
            version="openood-1.5 split",
            transform=TRANSFORM["cifar10"],
            id_train=drawn(open_training(self.folder, "cifar10"), self.options.train),
            id_val=drawn(whole.take(splits["cifar10_val_id"], "id_val"), self.options.test),
            id_test=drawn(whole.take(splits["cifar10_test_id"], "id_test"), self.options.test),
        )

    @cached_property
    def pools(self) -> dict[str, Tensor]:
        splits = np.load(self.folder / "openood_v15_splits.npz")
        tin = pack(self.folder, "tinyimagenet_val").take(splits["cifar10_test_tin"], "tin")
        digits = pack(self.folder, "svhn_test_10k")
        digits = digits.take(np.arange(TRAINING, len(digits)), "svhn")
        view = PixelView({"msp": self.scorer("msp")})
        most = max(self.options.chains, self.options.main_chains)
        return {each.name: view.rows(each, source_order(each)[:most]) for each in (tin, digits)}

    @cached_property
    def validity(self) -> Validity | None:
        if self.options.judge is None:
            return None
        judge, _ = open_judge(self.options.judge, self.options.device)
        return Validity.of(Scorer(judge, create_detector("msp")), self.pools["svhn"])

    @cached_property
    def judge_accuracy(self) -> float:
        """Of the digits that searches start from, the share that the judge recognises; it has seen none of them."""
        assert self.validity is not None and isinstance(self.validity.judge, Scorer)
        digits = pack(self.folder, "svhn_test_10k")
        return recognised(self.validity.judge.classifier, digits.take(np.arange(TRAINING, len(digits)), "unseen"))[0]

    @cached_property
    def generator(self) -> GanVariation:
        return GanVariation(load_generator(self.options.generator))

    def scorer(self, name: str) -> TensorScorer:
        if name not in self.scorers:
            self.scorers |= fit_scorers(self.classifier, self.benchmark, [name])
        return self.scorers[name]

    def attacked(self, cell: Cell, pool: Tensor) -> Attacked:
        key = (cell.detector, cell.form, cell.outliers)
        if key not in self.aimed:
            scorer = self.scorer(cell.detector)
            if cell.form != "s":
                plain, change = scorer, FORMS[cell.form]
                scorer = FunctionScorer(lambda images: change(plain.score_tensor(images)), plain.device)
            view = PixelView({cell.detector: self.scorer(cell.detector)})
            bench = self.benchmark
            assert bench.id_val is not None
            self.aimed[key] = aim(cell.detector, scorer, view, bench.id_val, bench.id_test, pool)
        return self.aimed[key]

    def plan(self, cell: Cell) -> Plan:
        budget, chains = self.options.budget, self.options.chains
        if cell.stage == "main":
            budget, chains = self.options.main_budget, self.options.main_chains
        sampler: Any = SAMPLERS.get(cell.sampler, "paper")
        plan = Plan(budget, chains, sampler, cell.energy, seed=cell.seed)  # type: ignore[arg-type]
        if cell.stage == "linf":
            if cell.sampler == "white box":
                return replace(plan, sampler=AutoProjectedGradient(length=100), budget=budget)
            return replace(plan, sampler="paper", energy="standardised", linf_budget=80 * budget, chains=chains)
        return plan

    def run(self, cell: Cell) -> dict[str, Any]:
        pool = self.pools[cell.outliers]
        attacked, plan = self.attacked(cell, pool), self.plan(cell)
        plan = replace(plan, chains=min(plan.chains, len(pool)))
        variation: Variation = self.generator if cell.variation == "gan" else create_variation(cell.variation)
        began = time.perf_counter()
        result = plan.search(attacked, cell.variation, variation, pool[: plan.chains])
        seconds = time.perf_counter() - began
        ranks, clean = (
            outlier_ranks(attacked.id_test, scores)
            for scores in (np.asarray(result.scores), attacked.sources[: plan.chains])
        )
        interval, ahead = source_interval(ranks), convergence([result], attacked.id_test)
        found: dict[str, Any] = {
            **vars(cell),
            "chains": len(result),
            "budget": result.budgets[-1],
            "evaluations": result.evaluations,
            "seconds": round(seconds, 2),
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "processor",
            "clean": clean.auroc,
            "auroc": ranks.auroc,
            "low": interval.low,
            "high": interval.high,
            "min_rank": [int(each) for each in ranks.min_ranks(5)],
            "clean_min_rank": [int(each) for each in clean.min_ranks(5)],
            "n_id": ranks.n_id,
            "n_train": len(self.benchmark.id_train or ()),
            "date": str(date.today()),
            "torch": torch.__version__,
            # searches by gradients have one at the ends of a range, whatever this torch gives clamp
            "gradient at ends": True,
            "curve": {
                str(budget): outlier_ranks(attacked.id_test, np.asarray(row)).auroc
                for budget, row in zip(result.budgets, result.at_budget)
            },
            "ranks": [round(float(each), 1) for each in ranks.mid],
        }
        if ahead is not None:
            found |= {
                "fall": ahead.fall,
                "eightfold": [ahead.eightfold, ahead.eightfold_interval.low, ahead.eightfold_interval.high],
            }
        if cell.outliers == "svhn" and cell.stage == "main" and self.validity is not None:
            share = self.validity.of_search(result, variation, pool[: plan.chains])
            found["judge_accuracy"] = self.judge_accuracy
            found["valid"] = [share.value, share.interval.low, share.interval.high]
            if cell.variation == "gan" and cell.detector == DETECTORS[0]:
                curve = truncation_curve(self.generator, self.validity)
                found["truncation"] = {
                    f"{key:g}": [each.value, each.interval.low, each.interval.high] for key, each in curve.items()
                }
        return found


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="folder of the cells")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no cell after so many")
    parser.add_argument("--generator", type=Path, help="from svhn_gan.py; without it, no column gan")
    parser.add_argument("--judge", type=Path, help="from svhn_judge.py; without it, no share of valid images")
    parser.add_argument("--stages", default="choose,report,main,forms,linf")
    parser.add_argument("--match", default="", help="only cells whose name this regular expression finds")
    parser.add_argument("--chains", type=int, default=500)
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--main-chains", type=int, default=1000)
    parser.add_argument("--main-budget", type=int, default=2000)
    parser.add_argument("--train", type=int, help="so many ID training images; all unless given")
    parser.add_argument("--test", type=int, help="so many ID validation and test images; all unless given")
    parser.add_argument("--seeds", type=int, default=3, help="search seeds, at most 3")
    parser.add_argument("--device", default="auto")
    return parser.parse_args()


def main() -> int:
    options, began = read_options(), time.time()
    stages = options.stages.split(",")
    todo = [
        each
        for each in cells(options.generator is not None)
        if each.stage in stages
        and each.seed < options.seeds
        and re.search(options.match, each.name)
        and not (options.output / f"{each.name}.json").exists()
    ]
    print(f"{len(todo)} cells to do", flush=True)
    study, failed = (Study(options) if todo else None), 0
    for cell in todo:
        if time.time() - began > 60 * options.minutes or study is None:
            print("out of time: the same command goes on")
            break
        try:
            found = study.run(cell)
        except (oods.OodscopeError, RuntimeError) as error:
            failed += 1
            print(f"FAILED {cell.name}: {error}", flush=True)
            continue
        write_text(options.output / f"{cell.name}.json", json.dumps(found) + "\n")
        print(
            f"{cell.name}: {100 * found['clean']:.1f} -> {100 * found['auroc']:.1f}, {found['seconds']} s", flush=True
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
