"""What ``generated_study.py`` makes of one data set: networks by group, generators, near and shifted sets."""

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from generated_sets import open_sets
from oodscope.data.generated.files import is_generated, write_generated
from oodscope.execution.console import ConsoleProgress
from oodscope.execution.memory import PeakMemory
from oodscope.generation.distances.perceptual import open_perceptual
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.near.recipe import NearRecipe
from oodscope.generation.near.stages import TrainedNear, usable
from oodscope.generation.near.trained import fine_tune_grid, train_base
from oodscope.generation.sets.ensemble import GREY, HETEROGENEOUS, train_ensemble
from oodscope.generation.sets.latent_near import latent_near
from oodscope.generation.sets.pool import Pool, draw_near, frame_of, read_pool
from oodscope.generation.sets.recombination import recombine
from oodscope.generation.sets.selecting import select_near, select_shifted
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.generation.shifted.trained import shift, train_shifted
from oodscope.generation.variations.gan import GanVariation
from oodscope.metrics.generated.information import Window
from oodscope.models.classifier.classifier import Classifier
from oodscope.training.methods.cross_entropy import CrossEntropy

MAKERS, JUDGES, UNDER_TEST, FINAL, FIVE = 0, 100, 200, 300, 400
"""First seeds of the groups of networks."""


@dataclass(frozen=True)
class Networks:
    """Architectures by group: makers and both sets of judges, the seven under test, and the five of one kind."""

    ensemble: tuple[str, ...]
    tested: tuple[str, ...]
    five: tuple[str, ...]

    def of(self, first: int) -> tuple[str, ...]:
        """Of the group whose seeds begin with ``first``."""
        return {UNDER_TEST: self.tested, FIVE: self.five}.get(first, self.ensemble)


COLOUR = Networks(
    HETEROGENEOUS,
    ("resnet18_32", "vgg16_32", "densenet_40_24", "vit_tiny_32", "wrn_16_4", "wrn_40_2", "resnet34_32"),
    ("resnet18_32",) * 5,
)
DIGITS = Networks(
    GREY,
    ("lenet", "small_cnn", "wrn_10_1", "lenet", "small_cnn", "wrn_10_1", "small_cnn"),
    ("small_cnn",) * 5,
)
"""For MNIST: small enough for a processor."""

CLASS_SHARE = 0.5
"""Largest share of the images of a class in which the makers may still see it."""


class Makers:
    """One data set, from its images to the generated sets: networks, generators, choices."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.began = options, time.time()
        self.progress = ConsoleProgress()
        self.work: Path = options.work / options.dataset
        self.sets = open_sets(options)
        self.frame = frame_of(self.sets.train)
        self.precision = options.precision or ("bf16-mixed" if options.device.startswith("cuda") else "32-true")
        self.networks = DIGITS if options.dataset == "mnist" else COLOUR
        self._made: dict[int, list[Classifier]] = {}

    def say(self, words: str) -> None:
        print(f"[{time.time() - self.began:7.0f} s] {words}", flush=True)

    def measured(self, stage: str, act: Callable[[], object]) -> None:
        """Do it, and add what it cost to ``stages.csv``: side by side, processes slow each other down."""
        begun = time.time()
        with PeakMemory(self.options.device) as peak:
            act()
        path = self.options.output / self.options.dataset / "stages.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        part = self.options.seeds or (list(self.options.lambdas) if stage == "fine" else "")
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{stage},{str(part).replace(',', '')},{time.time() - begun:.1f},{peak.mib:.0f}\n")

    def ensemble(self, first: int) -> list[Classifier]:
        """Networks of a group: trained, or read back."""
        if first not in self._made:
            architectures = self.networks.of(first)
            seeds = [first + number for number in range(len(architectures))]
            if self.options.small:
                architectures = ("small_cnn",) * len(architectures)
            if self.options.seeds:
                asked = [(name, seed) for name, seed in zip(architectures, seeds) if seed in self.options.seeds]
                if not asked:
                    return []
                architectures, seeds = zip(*asked)
            mirror = self.options.dataset != "mnist"
            recipe = CrossEntropy(
                epochs=self.options.epochs,
                batch_size=128,
                warmup_epochs=min(1, self.options.epochs - 1),
                augment={"pad": self.frame.size // 8 if mirror else 2, "flip": mirror},
                precision=self.precision,
            )
            if first != MAKERS:
                # who judges and who is tested learnt otherwise than the makers did
                other = {"learning_rate": 0.05, "weight_decay": 1e-3, "batch_size": 256}
                recipe = recipe.model_copy(update=other)
            self._made[first] = train_ensemble(
                *(architectures, self.sets.train, None, recipe, seeds),
                preprocess=self.frame,
                folder=self.work / "networks",
                device=self.options.device,
                progress=self.progress,
            )
        return self._made[first]

    @property
    def count(self) -> int:
        """Images of a near set."""
        return int(self.options.count or len(self.sets.test))

    @property
    def latent_count(self) -> int:
        """Images of the searched set: a search of latents costs a hundred times a drawing."""
        return 20 if self.options.small else max(20, self.count // 3)

    def common(self) -> dict[str, Any]:
        return {"device": self.options.device, "progress": self.progress}

    def terms(self) -> tuple[Any, EnsembleInformation]:
        makers = self.ensemble(MAKERS)
        return open_perceptual(self.options.perceptual, makers, self.options.device), EnsembleInformation(makers)

    def recipe(self) -> NearRecipe:
        return NearRecipe(
            network="dcgan" if self.options.dataset == "mnist" else "biggan",
            steps=self.options.steps,
            fine_steps=self.options.fine_steps,
            batch_size=self.options.batch_size,
            semantic_ceiling=self.options.ceiling,
            lambda_perceptual=self.options.lambda_perceptual,
            flip=self.options.dataset != "mnist",
            precision=self.precision,
            # a short training is averaged over its last part alone
            average_images=min(500_000, max(200, self.options.steps * self.options.batch_size // 10)),
            **self.widths,
        )

    @property
    def widths(self) -> dict[str, int]:
        """Of the near generators' networks, where they are not the recipe's."""
        width = 16 if self.options.small else self.options.width
        return {} if width is None else {"width": width, "discriminator_width": width}

    def base(self) -> TrainedNear:
        made = train_base(self.recipe(), self.sets.train, folder=self.work / "base", **self.common())
        self.say(f"plain generator: {made.taken:,} steps, {made.seconds:.0f} s, {made.health}")
        return made

    def fine(self) -> list[TrainedNear]:
        perceptual, semantic = self.terms()
        return fine_tune_grid(
            *(self.base(), perceptual, semantic),
            images=self.sets.train,
            folder=self.work / "fine",
            lambdas=self.options.lambdas,
            **self.common(),
        )

    def make_near(self) -> None:
        """The near set, and beside it samples of the plain generator, patches and searched latents."""
        for name, make in (
            ("near", self._trained_near),
            ("plain", self._plain),
            ("recombined", self._recombined),
            ("latent", self._latent),
        ):
            if name in self.near_names and not is_generated(self.work / name):
                make()

    @property
    def near_names(self) -> tuple[str, ...]:
        """Generated near sets; ``plain`` is not filtered and meant to be ID."""
        return ("near", "recombined", *(("latent",) if self.options.latent_budget else ()), "plain")

    def _trained_near(self) -> None:
        perceptual, semantic = self.terms()
        base, tuned = self.base(), self.fine()
        kept = usable(tuned)
        pool = draw_near(base, kept, semantic, self.options.pool, self.options.seed)
        self._choose(
            "near",
            pool,
            {
                "method": "gan",
                "recipe": self.recipe().model_dump(mode="json"),
                "lambdas": [one.lambda_semantic for one in kept],
                "collapsed": [one.lambda_semantic for one in tuned if one not in kept],
                "perceptual": perceptual.name,
            },
        )

    def _plain(self) -> None:
        count, base, (_, semantic) = self.count, self.base(), self.terms()
        plain = draw_near(base, [base], semantic, count, self.options.seed)
        self._write(self.work / "plain", plain.pixels[:count], plain.labels[:count], {"method": "plain"}, "near")

    def _recombined(self) -> None:
        known = read_pool(self.sets.train, self.frame)
        laid = recombine(known.pixels, known.labels, self.options.pool, seed=self.options.seed, pieces=4, sources=2)
        self._choose("recombined", Pool.of(laid.pixels, laid.labels), {"method": "recombination"})

    def _latent(self) -> None:
        known, (perceptual, semantic) = read_pool(self.sets.train, self.frame), self.terms()
        images, labels = latent_near(
            GanVariation(self.base().generator),
            *(perceptual, semantic, known.pixels, known.labels, 3 * self.latent_count),
            lambdas=self.options.lambdas,
            lambda_perceptual=self.options.lambda_perceptual,
            budget=self.options.latent_budget,
            chains=500,
            seed=self.options.seed,
            folder=self.work / "searches",
            progress=self.progress,
        )
        told = {"method": "latent", "budget": self.options.latent_budget}
        self._choose("latent", Pool.of(images, labels), told, self.latent_count)

    def _choose(self, name: str, pool: Pool, told: dict[str, Any], count: int | None = None) -> None:
        """Filter a pool by the makers, and write what is kept."""
        _, semantic = self.terms()
        given = None if self.options.window is None else Window(*self.options.window)
        chosen = select_near(
            *(pool, read_pool(self.sets.val, self.frame), semantic, count or self.count),
            seed=self.options.seed,
            window=given,
            class_share=1.0 if self.options.small else CLASS_SHARE,
        )
        self.say(
            f"{name}: window {chosen.window}, {chosen.kept:,} of {len(pool):,} kept, {chosen.dropped:,} dropped, "
            f"least of a class {min(chosen.per_class().values()):,}, the class seen by the makers in "
            f"{100 * chosen.class_seen:.1f} %"
        )
        told |= {
            "seed": self.options.seed,
            "ensemble": semantic.fingerprints,
            "window": [chosen.window.low, chosen.window.high],
            "pool": {"images": len(pool), "kept": chosen.kept, "chosen": len(chosen.pool)},
            "class seen by the ensemble": chosen.class_seen,
            "dropped by class": chosen.dropped,
            "images of a class": chosen.per_class(),
        }
        self._write(self.work / name, chosen.pool.pixels, chosen.pool.labels, told, "near")

    def make_shifted(self) -> None:
        folder = self.work / "shifted"
        if is_generated(folder):
            return
        perceptual, semantic = self.terms()
        recipe = ShiftedRecipe(
            steps=self.options.shifted_steps,
            lambda_perceptual=self.options.shifted_perceptual,
            lambda_label=self.options.lambda_label,
            partner=self.options.partner,
            flip=self.options.dataset != "mnist",
            precision=self.precision,
            **({"width": 8, "discriminator_width": 8, "batch_size": 32} if self.options.small else {}),
        )
        trained = train_shifted(
            *(recipe, self.sets.train, perceptual, semantic),
            folder=self.work / "pix2pix",
            **self.common(),
        )
        self.say(f"pix2pix: {trained.taken:,} steps, {trained.seconds:.0f} s, {trained.health}")
        if trained.health.collapsed is not None and not self.options.small:
            sys.exit(f"pix2pix has collapsed: {trained.health.collapsed}")
        test = read_pool(self.sets.test, self.frame)
        drawn = shift(trained.generator.to(semantic.device), test.pixels.float() / 255, self.options.seed)
        redrawn, val = Pool.of(drawn, test.labels, test.rows), read_pool(self.sets.val, self.frame)
        given = Window(0.0, 2.0) if self.options.small else None
        chosen = select_shifted(redrawn, val, semantic, len(redrawn), seed=self.options.seed, window=given)
        self.say(
            f"shifted: information up to {chosen.window.high:.3f} and the class seen by the makers: "
            f"{chosen.kept:,} of {len(redrawn):,} kept"
        )
        told = {
            "method": "gan",
            "recipe": recipe.model_dump(mode="json"),
            "seed": self.options.seed,
            "perceptual": perceptual.name,
            "ensemble": semantic.fingerprints,
            "window": [chosen.window.low, chosen.window.high],
            "rows of id_test": chosen.pool.rows.tolist(),
        }
        self._write(folder, chosen.pool.pixels, chosen.pool.labels, told, "shifted")
        told |= {"method": "gan, no filter", "rows of id_test": redrawn.rows.tolist()}
        self._write(self.work / "free", redrawn.pixels, redrawn.labels, told, "shifted")

    def _write(self, folder: Path, pixels: torch.Tensor, labels: torch.Tensor, recipe: Any, kind: Any) -> None:
        begun = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(begun, ignore_errors=True)
        images = np.ascontiguousarray(pixels.permute(0, 2, 3, 1).numpy())
        write_generated(begun, images, labels.numpy(), recipe, kind=kind, class_names=self.sets.train.class_names)
        begun.rename(folder)
