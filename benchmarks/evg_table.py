"""Table 2 of evaluation via generation, in kind: detectors trained here, attacked on CIFAR-10 against two sets.

    OODSCOPE_DATA=path/to/packs python benchmarks/evg_table.py --output FOLDER [--minutes 9.5] [--device cuda]
        [--rows glow,nae] [--kinds linf,color] [--plain FILE] [--chains 200] [--budget 2000] [--seeds 3]
        [--form whole|cpu|small] [--write docs/results/evg-table.md]

ID is CIFAR-10 (OpenOOD's split: 1,000 images to validate, 9,000 to test), outliers are SVHN digits and SUN scenes. Of
each set of outliers one half trains the generator (1,000 digits of it also weigh the layers of MD), the other half is
attacked from ``--chains`` images, a proportional stratified draw that all rows and search seeds share. Every row is
trained in a compact form, then attacked: l-inf .01 by white-box gradients and, beside it, without gradients; affine,
color and a generator by search.

Everything is kept in --output and never repeated: a call stops after --minutes and the next one goes on, trainings in
the middle of an epoch. Rows come from cheap to dear, each whole with one search seed before the next; further seeds
follow. A row that fails is reported and left out. --plain names the weights of a ResNet-18 that was
trained on CIFAR-10 before, which then need not be trained here; the page names the file. Calls for different rows may
run at the same time, each with an --output of its own; `cp -r` puts their folders together. --form cpu is a stated
smaller study for two processor cores, with a page of its own; --form small tries the script out.
"""

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

import oodscope as oods
from evg_forms import FORMS, PLAIN, Form
from evg_rows import KINDS, PROVEN, ROWS, SETS, VARIED, Row
from evg_table_page import record_minutes, write_page
from oodscope.base.files import atomic_path, write_text
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.base import Detector
from oodscope.detectors.saving import load_detector
from oodscope.execution.progress import Advance
from oodscope.generation.gan.recipe import GanRecipe
from oodscope.generation.gan.trained import FILE as GENERATOR
from oodscope.generation.gan.trained import train_gan
from oodscope.generation.samplers.auto_projected_gradient import AutoProjectedGradient
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.samplers.square import Square
from oodscope.generation.samplers.zeroth_order import ZerothOrder
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.gan import GanVariation
from oodscope.jobs.stages import check_training, train_stages
from oodscope.models.classifier.network import choose_device
from oodscope.models.generators.saved import load_generator
from oodscope.runs.attack.sources import source_order
from oodscope.runs.evaluation.scoring import fit_scorers
from oodscope.training.registry import RECIPES, create_recipe
from openood_cifar import TRANSFORM, drawn, open_training, pack

RADIUS = 0.01
"""Of the l-inf ball, in pixels of [0, 1]."""
LAYERS = 1_000
"""Images of the test source that weigh the layers of MD."""
NEAR_CIFAR10 = (
    "large_carnivores", "large_omnivores_and_herbivores", "medium_mammals", "small_mammals", "vehicles_1", "vehicles_2",
)  # fmt: skip
"""Superclasses of CIFAR-100 that show what CIFAR-10's classes show; their images are no outliers to learn from."""


class OutOfTimeError(BaseException):
    """The minutes of this call are over; nothing failed."""


@dataclass
class Deadline:
    """A progress that ends the work when its time is over."""

    end: float

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Advance]:
        print(f"  {name}", flush=True)
        yield self.advance

    def advance(self, count: int, *_: Any) -> None:
        if time.time() > self.end:
            raise OutOfTimeError


@dataclass
class Study:
    """The data, the networks and what was found so far, all of it in a folder."""

    data: Path
    home: Path
    device: str
    chains: int
    budget: int
    seeds: int
    form: Form
    clock: Deadline
    plain: Path | None = None
    failed: dict[str, str] = field(default_factory=dict)
    scorers: dict[str, Scorer] = field(default_factory=dict)

    @cached_property
    def benchmark(self) -> oods.Benchmark:
        """CIFAR-10 by OpenOOD's split, with outliers to learn from."""
        splits, whole, form = np.load(self.data / "openood_v15_splits.npz"), pack(self.data, "cifar10_test"), self.form
        train = whole.take(np.arange(400), "id_train") if form.from_test else open_training(self.data, "cifar10")
        return oods.Benchmark(
            name="cifar10 against svhn and scenes",
            version="evg-table-1",
            transform=TRANSFORM["cifar10"],
            id_train=drawn(train, form.train),
            id_val=drawn(whole.take(splits["cifar10_val_id"], "id_val"), form.val),
            id_test=drawn(whole.take(splits["cifar10_test_id"], "id_test"), form.test),
            ood_train=self._outliers(),
        )

    def _outliers(self) -> oods.ImageSet:
        """CIFAR-100 without the superclasses that show CIFAR-10's classes: to learn from, never to be judged on."""
        names = ["cifar100_train_25k", "cifar100_train_rest_25k"]
        names = names[:1] if self.form.learnt or not (self.data / f"{names[1]}.npz").exists() else names
        pixels, labels = [], []
        for name in names:
            images = pack(self.data, name)
            content = np.load(self.data / f"{name}.npz")
            near = np.isin(content["coarse_names"][content["coarse_labels"]], NEAR_CIFAR10)
            rows = np.flatnonzero(~near)[: self.form.learnt]
            pixels.append(np.stack(images.images(rows)))
            labels.append(images.labels[rows])
        classes = [str(number) for number in range(100)]
        return oods.ImageSet.from_arrays("cifar100_far", np.concatenate(pixels), np.concatenate(labels), classes)

    def describe(self) -> None:
        """Keep where it ran and what it started from, for the page."""
        device = choose_device(self.device)
        facts = {
            "machine": torch.cuda.get_device_name(device)
            if device.type == "cuda"
            else f"{os.cpu_count()} cores ({platform.machine()})",
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "plain": self.plain.stem if self.plain else "",
            "form": next(name for name, form in FORMS.items() if form is self.form),
            "words": self.form.describe(len(self.benchmark.id_train or ())),
            "learnt_outliers": len(self.benchmark.ood_train or ()),
            "network": "" if self.plain else self.form.network,
            "id_test": len(self.benchmark.id_test),
            **{f"learnt_{name}": len(learnt) for name, (learnt, _) in self.outliers.items()},
        }
        write_text(self.home / "study.json", json.dumps(facts, indent=1) + "\n")

    @cached_property
    def outliers(self) -> dict[str, tuple[oods.ImageSet, oods.ImageSet]]:
        """Of each set the half that a generator learns from, and the half that is attacked."""
        digits, scenes = pack(self.data, "svhn_test_10k"), pack(self.data, "sun_scenes_32")
        order = np.random.default_rng(0).permutation(len(scenes))
        halves = {
            "svhn": (digits.take(np.arange(5000), "svhn_learnt"), digits.take(np.arange(5000, 10_000), "svhn")),
            "scenes": (
                scenes.take(np.sort(order[: len(order) // 2]), "scenes_learnt"),
                scenes.take(np.sort(order[len(order) // 2 :]), "scenes"),
            ),
        }
        few = self.form.judged
        return {name: (drawn(learnt, few), drawn(judged, few)) for name, (learnt, judged) in halves.items()}

    def sources(self, name: str) -> oods.ImageSet:
        """The images that chains start from: a proportional draw, the same for every row and search seed."""
        images = self.outliers[name][1]
        return images.take(np.sort(source_order(images)[: self.chains]), name)

    def scorer(self, row: Row) -> Scorer:
        """The trained, fitted detector of a row, made once."""
        if row.name not in self.scorers:
            self.scorers[row.name] = self._scorer(row)
        return self.scorers[row.name]

    def _scorer(self, row: Row) -> Scorer:
        """What is in the folder is not done again."""
        classifier = self._classifier(row)
        saved = self.home / "detectors" / f"{row.name}.safetensors"
        if saved.exists():
            return Scorer(classifier, load_detector(saved))
        name = row.detector or (*RECIPES.get(row.recipe).detectors, "msp")[0]
        detector = oods.create_detector(name, **self._parameters(row))
        if row.peeks:
            detector = self._weighed(classifier, detector)
        else:
            store = oods.ActivationStore(self.home / "activations")
            (made,) = fit_scorers(classifier, self.benchmark, [detector], store=store, progress=self.clock).values()
            detector = made.detector
        detector.save(saved)
        return Scorer(classifier, detector)

    def _parameters(self, row: Row) -> dict[str, Any]:
        own = {"network": str(self.home / "networks" / row.name)} if row.own else {}
        return {**own, **row.parameters}

    def _weighed(self, classifier: oods.Classifier, detector: Detector) -> Detector:
        """Fitted with digits of the half that is not attacked: it has seen the test source, and its row says so."""
        store, bench = oods.ActivationStore(self.home / "activations"), self.benchmark
        digits = self.outliers["svhn"][0]
        seen = digits.take(np.arange(min(LAYERS, len(digits))), "svhn_val")
        assert bench.id_train is not None and bench.id_val is not None
        train, val, ood = (
            store.extract(classifier, images, probes=detector.probes, progress=self.clock)
            for images in (bench.id_train, bench.id_val, seen)
        )
        return detector.to(classifier.device).fit(train, val, ood_val=ood)

    def _classifier(self, row: Row) -> oods.Classifier:
        """The network of a row; a detector's own one is scored beside a small one, which has no part in it."""
        if row.own:
            self._train(row)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                model = oods.create_model("small_cnn", num_classes=10)[0]
        else:
            model = self._train(row if row.recipe else next(each for each in ROWS if each.name == PLAIN))
        return oods.Classifier(model, TRANSFORM["cifar10"], device=self.device, name=row.name)

    def _train(self, row: Row) -> torch.nn.Module:
        if row.name == PLAIN and self.plain is not None:
            return oods.create_model(row.model, num_classes=10, weights=self.plain)[0]
        cuda = choose_device(self.device).type == "cuda"
        fewer = {**self.form.common, **self.form.settings.get(row.name, {})}
        common = {**fewer, "precision": row.precision if cuda else "32-true"}
        stages = [create_recipe(name, **{**settings, **common}) for name, settings in row.stages]
        check_training(stages, self.benchmark)
        home = self.home / "networks"
        began = time.time()
        smaller = self.form.network and row.model == "resnet18_32" and not (row.own or self.plain)
        trained = train_stages(
            self.form.network if smaller else row.model,
            stages,
            self.benchmark,
            [*(home / row.name / f"stage{number}" for number in range(1, len(stages))), home / row.name],
            self.device,
            self.clock,
            weights=self._start(row),
        )[-1]
        if time.time() - began > 1:
            minutes = sum(epoch.seconds for epoch in trained.history) / 60
            print(f"  {row.name} trained in {minutes:.2f} minutes, loss {trained.history[-1].loss:.4f}", flush=True)
        return trained.model

    def _start(self, row: Row) -> str | None:
        """The weights that its first stage starts from, made first if they are not there."""
        if not row.start:
            return None
        if row.start == PLAIN and self.plain is not None:
            return str(self.plain)
        self._train(next(each for each in ROWS if each.name == row.start))
        return str(self.home / "networks" / row.start / "model.safetensors")

    def variation(self, kind: str, name: str) -> str | Variation:
        """What is varied; a generator is trained on the half of the set that is not attacked."""
        if kind != "gan":
            return "linf" if kind.startswith("linf") else kind
        folder = self.home / "generators" / name
        if not (folder / "done").exists():
            cuda = choose_device(self.device).type == "cuda"
            recipe = GanRecipe(
                **self.form.generator,
                discriminator_width=max(1, self.form.generator["width"] * 4 // 3),
                r1=0.01,
                augment=0.5,
                precision="bf16-mixed" if cuda else "32-true",
            )
            train_gan(self.outliers[name][0], recipe, folder=folder, device=self.device, progress=self.clock)
            write_text(folder / "done", "")
        return GanVariation(load_generator(folder / GENERATOR))

    def unit(self, row: Row, name: str, kind: str, seed: int) -> Path:
        """The file of one search."""
        return self.home / "units" / f"{row.name}-{name}-{kind}-{seed}.npz"

    def measure(self, row: Row, name: str, kind: str, seed: int) -> None:
        """Score or search once, and keep the scores of ID test images, of the sources, and of what was found."""
        scorer, began = self.scorer(row), time.time()
        if kind in ("clean", PROVEN):
            proven = oods.create_detector("guaranteed_msp", epsilon=RADIUS)
            judge = Scorer(scorer.classifier, proven) if kind == PROVEN else scorer
            found = {"id_test": scorer.score(self.benchmark.id_test), "found": judge.score(self.outliers[name][1])}
        else:
            found = self._search(row, scorer, name, kind, seed)
        with atomic_path(self.unit(row, name, kind, seed)) as temporary, temporary.open("wb") as stream:
            np.savez(stream, seconds=time.time() - began, chains=self.chains, budget=self._budget(kind), **found)
        print(f"{row.name:>12} {name:<7} {kind:<15} seed {seed}: {time.time() - began:6.1f} s", flush=True)

    def _search(self, row: Row, scorer: Scorer, name: str, kind: str, seed: int) -> dict[str, np.ndarray]:
        bench = self.benchmark
        assert bench.id_val is not None
        if kind == "linf" and not scorer.differentiable:
            raise oods.OodscopeError("the score has no gradient, so there is no white-box attack")
        variation = self.variation(kind, name)
        # a search of a few seconds is not worth half a minute of compiling
        with torch.compiler.set_stance("force_eager"):
            attack = oods.attack(
                {row.name: scorer},
                bench.id_val,
                bench.id_test,
                self.sources(name),
                [variation],
                budget=self._budget(kind),
                chains=self.chains,
                runs=1,
                sources="first",  # drawn before, so that every search seed starts from the same images
                seed=seed,
                folder=self.home / "searches" / row.name / name / kind / str(seed),
                benchmark=(bench.name, bench.version),
                progress=self.clock,
                sampler=samplers_of(kind) or "portfolio",
            )
        frame = attack.result.scores.frame
        label = variation if isinstance(variation, str) else variation.name
        parts = {
            "id_test": frame["role"] == "id_test",
            "clean": frame["unit"] == "clean",
            "found": frame["unit"] == label,
        }
        return {key: frame.loc[rows & frame[row.name].notna(), row.name].to_numpy() for key, rows in parts.items()}

    def _budget(self, kind: str) -> int:
        return max(2, self.budget // 10) if kind == "linf" else self.budget


def samplers_of(kind: str) -> tuple[Sampler, ...]:
    """In the ball by gradients, or without them; elsewhere the portfolio of an attack, for which none is named."""
    if kind == "linf":
        return (AutoProjectedGradient(),)
    return (ZerothOrder(), Square()) if kind == "linf black-box" else ()


def units(rows: Sequence[Row], seeds: int, kinds: Sequence[str] = KINDS) -> Iterator[tuple[Row, str, str, int]]:
    """What is to be done, in the order in which it pays: each row whole with one search seed, then further seeds."""
    for seed in range(seeds):
        for row in rows:
            first = ("clean", *([PROVEN] if row.certified else []), *KINDS)
            for kind in first if seed == 0 else VARIED:
                for name in SETS:
                    if kind in (*kinds, "clean", PROVEN):
                        yield row, name, kind, seed


def run(study: Study, rows: Sequence[Row], kinds: Sequence[str] = KINDS) -> bool:
    """Work until the time is over; whether everything is done."""
    try:
        for row, name, kind, seed in units(rows, study.seeds, kinds):
            part = f"{row.name} {kind}"
            if {part, f"{row.name} clean"} & study.failed.keys() or study.unit(row, name, kind, seed).exists():
                continue
            study.clock.advance(0)
            try:
                study.measure(row, name, kind, seed)
            except Exception as error:  # one row's failure must not cost the others' minutes
                traceback.print_exc()
                study.failed[part] = f"{type(error).__name__}: {(str(error).splitlines() or ['no message'])[0][:200]}"
    except OutOfTimeError:
        return False
    return not study.failed


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--rows", default="")
    parser.add_argument("--kinds", default="", help="of variation, in the order of the table")
    parser.add_argument("--plain", type=Path, metavar="FILE", help="weights of the plain network")
    parser.add_argument("--form", choices=FORMS, default="whole", help="how large the study is")
    for name in ("chains", "budget", "seeds"):
        parser.add_argument(f"--{name}", type=int, help="of each search; by default the form's")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--write", type=Path, help="the page to write from what is there")
    parser.add_argument("--record-minutes", type=Path, metavar="FILE", help="src/oodscope/training/minutes.json")
    return parser.parse_args()


def main() -> int:
    options = read_options()
    form = FORMS[options.form]
    names = [name for name in options.rows.split(",") if name] or form.rows
    names = names or [row.name for row in ROWS if row.name != PLAIN]
    rows = [row for row in ROWS if row.name in names]
    if missing := set(names) - {row.name for row in ROWS}:
        raise SystemExit(f"unknown row {min(missing)!r}; rows: {', '.join(row.name for row in ROWS)}")
    known = [row for row in rows if all(recipe in RECIPES for recipe, _ in row.stages)]
    study = Study(
        Path(os.environ["OODSCOPE_DATA"]).resolve(),
        options.output.resolve(),
        options.device,
        options.chains or form.chains,
        options.budget or form.budget,
        options.seeds or form.seeds,
        form,
        Deadline(time.time() + 60 * options.minutes),
        options.plain.resolve() if options.plain else None,
    )
    kinds = options.kinds.split(",") if options.kinds else form.kinds or KINDS
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise SystemExit(f"unknown kind {unknown[0]!r}; kinds: {', '.join(KINDS)}")
    if options.plain and not options.plain.is_file():
        raise SystemExit(f"--plain: there is no {options.plain}")
    done = run(study, known, kinds)
    study.describe()
    absent = {f"{row.name} clean": f"recipe {row.recipe} is not installed" for row in rows if row not in known}
    reasons = absent | study.failed
    write_text(options.output / "failed.json", json.dumps(reasons, indent=1) + "\n")
    for name, reason in reasons.items():
        print(f"left out: {name}: {reason}", flush=True)
    if options.write:
        write_page(options.output, options.write)
    if options.record_minutes:
        record_minutes(options.output, options.record_minutes)
    print("done" if done else "not done: the same command goes on", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
