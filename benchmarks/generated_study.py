"""Generated benchmarks of MNIST, CIFAR-10 and CIFAR-100: are they what they should be, how hard, do rankings hold?

    OODSCOPE_DATA=path/to/packs python benchmarks/generated_study.py cifar10 --train cifar10_train.npz \\
        --work scratch --output results --device cuda
    OODSCOPE_DATA=path/to/packs python benchmarks/generated_study.py mnist --train mnist_train.npz \\
        --fashion fashion_test.npz --work scratch --output results --device cuda

After "Raising the Bar on the Evaluation of Out-of-Distribution Detection" (Mukhoti et al., 2022), with compact nets.
Stages, in this order unless --stage names others; each goes on where it was stopped:

    makers    the ensemble whose mutual information shapes and filters the images
    base      a plain generator (MNIST: DCGAN, CIFAR-10: BigGAN-style)
    fine      one fine-tuned from it for each of 11 weights
    near      the set; beside it ``plain``, as many samples of the plain generator, ``recombined``, patches, and
              ``latent``, latents of the plain generator searched instead of trained
    shifted   pix2pix, then the ID test images redrawn; ``free`` is the same without any filter
    judges    another ensemble, of other seeds and another recipe, that says what the images are
    judge     seven networks of their own, five of one architecture as an ensemble, and one of the makers, marked; 19
              detectors; the page
    final     the same with judges that nobody has looked at before: once, at the end

The distance of the loss is measured in the features of efficientnet-lite0, closeness is judged in those of
efficientnet-lite2. --minutes begins no stage after so many; the same command goes on.

One process after the other, or several beside each other on one GPU: makers and base need nothing, --seeds trains some
of the networks only (makers 0-3, judges 100-103, under test 200-206, judges of the end 300-303, the five 400-404),
--lambdas some of the generators.

--work holds everything that is trained and the whole study; --output gets the page, its tables, the sheets of samples
and stages.csv: stage, part of it, seconds, MiB at most. --small tries the script out in minutes on a
processor; its numbers mean nothing.
"""

import argparse
import json
import os
import shutil
import time
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

import oodscope as oods
from generated_making import FINAL, FIVE, JUDGES, MAKERS, UNDER_TEST, Makers
from generated_page import SETTINGS
from generated_sets import NAMES
from oodscope.base.files import write_text
from oodscope.data.corruptions.catalog import members
from oodscope.data.generated.files import is_generated, open_generated
from oodscope.data.generated.record import read_generated
from oodscope.generation.distances.perceptual import open_perceptual
from oodscope.generation.near.recipe import LAMBDAS
from oodscope.metrics.generated.information import Window
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.models.zoo.efficientnet_lite import JUDGE as LITE2
from oodscope.models.zoo.efficientnet_lite import NAME as LITE0
from oodscope.models.zoo.efficientnet_lite import efficientnet_lite, installed
from oodscope.report.page.generated import write_generated_study
from oodscope.runs.generated.checking import GeneratedChecks
from oodscope.runs.generated.claims import claims
from oodscope.runs.generated.judging import judge_generated
from oodscope.runs.generated.ranks import rank_agreements
from oodscope.runs.generated.table import calibration_table, separation_table

DETECTORS = (
    *("msp", "mls", "ebo", "gen", "entropy", "temp_scaling", "klm", "knn", "mds", "mahalanobis_pp", "rmds", "vim"),
    *("residual", "fdbd", "react", "ash", "scale", "she", "nnguide"),
)
STAGES = ("makers", "base", "fine", "near", "shifted", "judges", "judge", "final")


class Study(Makers):
    """From the images of one data set to the page of its generated sets."""

    @cached_property
    def left_out(self) -> dict[str, list[str]]:
        """Networks that a detector does not apply to, by detector and reason."""
        return {}

    def judge(self, judges: int = JUDGES) -> None:
        made_near, redrawn = (
            [self._some(self._in_memory(name)) for name in names if is_generated(self.work / name)]
            for names in (self.near_names, ("shifted", "free"))
        )
        originals = {
            each.name: self._some(self.sets.test.take(read_generated(self.work / each.name).recipe["rows of id_test"]))
            for each in redrawn
        }
        corrupted = []
        for kind in members("c"):
            made, source = self._corrupted(kind)
            corrupted.append(made)
            originals[made.name] = source
        bench = oods.Benchmark(
            name=self.options.dataset,
            version=f"seed {self.options.seed}",
            transform=self.frame,
            id_train=self._some(self.sets.train),
            id_val=self._some(self.sets.val),
            id_test=self._some(self.sets.test),
            near=(*made_near, *map(self._some, self.sets.near)),
            far=tuple(map(self._some, self.sets.far)),
            csid=(*redrawn, *corrupted),
        )
        store, makers = oods.ActivationStore(self.work / "activations"), self.ensemble(MAKERS)
        runs = []
        for network in (*self.ensemble(UNDER_TEST), *self._five(), makers[0]):
            usable_ones = [name for name in self.options.detectors if self._applies(name, network, bench)]
            result = oods.evaluate(network, bench, usable_ones, store=store, progress=self.progress)
            runs.append((network, result))
            self.say(f"{network.name}: {len(usable_ones)} detectors")
        checks = GeneratedChecks(
            generated=tuple(each.name for each in (*made_near, *redrawn)),
            judges=self.ensemble(judges),
            features=efficientnet_lite(LITE2, self.options.device) if self.options.features else None,
            makers=makers,
            window=Window(*read_generated(self.work / "near").recipe["window"]),
            perceptual=open_perceptual(self.options.perceptual, self.ensemble(judges), self.options.device),
            originals=originals,
        )
        study = judge_generated(runs, bench, checks, store=store, progress=self.progress)
        name = "study" if judges == JUDGES else "final"
        shutil.rmtree(self.work / name, ignore_errors=True)
        study.save(self.work / name)
        write_text(self.work / SETTINGS, json.dumps(self.settings(), indent=1) + "\n")
        output = self.options.output / self.options.dataset / name
        page = write_generated_study(study, output)
        shutil.copy(self.work / name / "run.json", output)
        for sheet in self.work.rglob("samples.png"):
            shutil.copy(sheet, output / f"{'-'.join(sheet.parent.relative_to(self.work).parts)}-samples.png")
        self.say(f"page: {page}")
        for table in (separation_table(study), calibration_table(study)):
            print(f"\n{table.render('markdown')}")
        for each in rank_agreements(study):
            ends = "" if each.interval is None else f" ({each.interval.low:.2f} to {each.interval.high:.2f})"
            print(f"tau {each.generated} ~ {each.real}, {each.scope}: {each.tau:.3f}{ends}, {each.rows} rows")
        for check in study.sanity.sets:
            distance = "" if check.perceptual is None else f", perceptual {check.perceptual:.4f}"
            share = "" if check.preserved is None else f", keeps its class {100 * check.preserved:.2f} %"
            far = "" if check.frechet is None else f": frechet {check.frechet:.4g}"
            near_by = "" if check.kernel is None else f", KID {check.kernel[0]:.4g} [{check.kernel[1]:.4g}, "
            near_by += "" if check.kernel is None else f"{check.kernel[2]:.4g}]"
            print(f"{check.name} ({check.role}, {check.n:,}){far}{near_by}{share}{distance}")
        for claim in claims(study):
            print(f"{claim.answer}: {claim.text}: {claim.evidence}")

    def settings(self) -> dict[str, Any]:
        """What the page tells of the study beside its numbers."""
        asked = (
            *("epochs", "steps", "fine_steps", "shifted_steps", "batch_size", "width", "lambdas", "lambda_perceptual"),
            *("shifted_perceptual", "lambda_label", "pool", "latent_budget", "corrupted", "perceptual", "judged"),
        )
        names = [*self.near_names, "shifted"]
        made = {name: read_generated(self.work / name).recipe for name in names if is_generated(self.work / name)}
        keys = ("window", "pool", "class seen by the ensemble", "dropped by class", "images of a class", "lambdas")
        return {
            "dataset": self.options.dataset,
            "training images": len(self.sets.train),
            **{key: getattr(self.options, key) for key in asked},
            "sets": {name: {key: recipe[key] for key in keys if key in recipe} for name, recipe in made.items()},
            "left out": {reason: sorted(set(names)) for reason, names in self.left_out.items()},
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} cores",
            "date": str(date.today()),
        }

    def train_others(self) -> None:
        """Both sets of judges, networks under test, and the five of one architecture."""
        self.ensemble(JUDGES)
        self.ensemble(FINAL)
        self.ensemble(UNDER_TEST)
        self.ensemble(FIVE)

    def _five(self) -> list[Classifier]:
        """Five networks of one architecture as one: the paper's baseline."""
        members = self.ensemble(FIVE)
        if len(members) < len(self.networks.five):
            return []
        joined = Ensemble([each.model for each in members])
        return [Classifier(joined, self.frame, device=self.options.device, name="ensemble of five")]

    def _some(self, images: oods.ImageSet) -> oods.ImageSet:
        """Images from all over a set, no more than are to be judged; of a set and its originals the same rows."""
        most = self.options.judged or len(images)
        if len(images) <= most:
            return images
        return images.take(np.linspace(0, len(images) - 1, most).round().astype(np.int64), images.name)

    def _in_memory(self, name: str) -> oods.ImageSet:
        """A generated set, checked and decoded once: a dozen networks look at it."""
        made = open_generated(self.work / name)
        pixels = np.stack(made.images(range(len(made))))
        return oods.ImageSet.from_arrays(name, pixels, made.labels, made.class_names)

    def _corrupted(self, kind: str) -> tuple[oods.ImageSet, oods.ImageSet]:
        """Some ID test images at the highest severity, computed once, and the images that they were."""
        place = self.work / "corrupted" / f"{kind}.npz"
        parent = self.sets.test.take(np.arange(min(self.options.corrupted, len(self.sets.test))))
        if not place.exists():
            made = oods.corrupt(parent, kind, severity=5)
            place.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.stack(made.images(range(len(made))))
            np.savez(place.with_suffix(".part.npz"), pixels=pixels, rows=np.asarray(made.source.rows))
            place.with_suffix(".part.npz").rename(place)
        with np.load(place) as kept:
            pixels, rows = kept["pixels"], kept["rows"]
        source = parent.take(rows)
        return oods.ImageSet.from_arrays(kind, pixels, source.labels, source.class_names), source

    def _applies(self, name: str, network: Classifier, bench: oods.Benchmark) -> bool:
        from oodscope.runs.evaluation.extraction import FromNetwork
        from oodscope.runs.evaluation.scoring import applicable

        chosen, refused = applicable([oods.create_detector(name)], FromNetwork(network), bench)
        for detector, reason in refused.items():
            self.left_out.setdefault(f"{detector} {reason}", []).append(network.name)
            self.say(f"{network.name}: {detector} left out: {reason}")
        return bool(chosen)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=tuple(NAMES))
    parser.add_argument("--train", type=Path, help="pack of the training images")
    parser.add_argument("--fashion", type=Path, help="pack of Fashion-MNIST test images")
    parser.add_argument("--stage", default=",".join(STAGES))
    parser.add_argument("--epochs", type=int, default=30, help="of every classifier")
    parser.add_argument("--steps", type=int, default=20_000, help="of the plain generator")
    parser.add_argument("--fine-steps", type=int, default=1_000, help="of each fine-tuned one")
    parser.add_argument("--shifted-steps", type=int, default=4_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--width", type=int, help="channels of the near generators at full size; those of the recipe")
    parser.add_argument("--lambdas", default=",".join(map(str, LAMBDAS)))
    parser.add_argument("--lambda-perceptual", type=float, default=8.0, help="of near images; the paper: 1")
    parser.add_argument("--shifted-perceptual", type=float, default=9.0, help="of shifted images; the paper: 2")
    parser.add_argument(
        "--lambda-label", type=float, default=1.0, help="of the label term of shifted images; the paper: 0"
    )
    parser.add_argument("--partner", default="itself", choices=("itself", "class"))
    parser.add_argument("--ceiling", type=float, help="information above which a near image earns no more")
    parser.add_argument("--window", help="LOW,HIGH in nats, instead of the overlap rule's; the paper: .2,.6 or .1,.5")
    parser.add_argument("--perceptual", help="lpips, ensemble, timm:NAME; efficientnet-lite0 for colour")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no stage after so many")
    parser.add_argument("--count", type=int, help="images of a near set; as many as the test set has")
    parser.add_argument("--train-images", type=int, help="so many training images, of every class alike; all of them")
    parser.add_argument("--latent-budget", type=int, default=100, help="energies per chain of the set latent; 0: none")
    parser.add_argument("--pool", type=int, default=60_000)
    parser.add_argument("--judged", type=int, help="so many images of every set at most; all of them")
    parser.add_argument("--detectors", default=",".join(DETECTORS))
    parser.add_argument("--corrupted", type=int, default=2_500, help="images of each corruption")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", help="of the networks to train, two or more of a group, such as 0,1")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--precision",
        choices=("32-true", "bf16-mixed"),
        help="of trainings; bf16-mixed on a GPU. Networks trained elsewhere are found under theirs",
    )
    options = parser.parse_args()
    options.stage, options.detectors = options.stage.split(","), options.detectors.split(",")
    colour = options.dataset != "mnist"
    options.perceptual = options.perceptual or (LITE0 if colour and installed(LITE0) else "ensemble")
    options.features = colour and installed(LITE2)
    if unknown := set(options.stage) - set(STAGES):
        parser.error(f"unknown stage {min(unknown)!r}; stages: {', '.join(STAGES)}")
    options.lambdas = tuple(float(each) for each in options.lambdas.split(","))
    options.seeds = [int(each) for each in options.seeds.split(",")] if options.seeds else []
    options.window = None if options.window is None else tuple(float(each) for each in options.window.split(","))
    if options.small:
        # a DCGAN of fewer steps draws one grey image, and nothing is fine-tuned from it
        steps = 600 if options.dataset == "mnist" else 20
        options.epochs, options.steps, options.fine_steps, options.shifted_steps = 2, steps, 5, 20
        options.batch_size, options.pool, options.corrupted, options.lambdas = 16, 400, 40, (0.5, 3.0)
        options.window = (0.0, 2.0)
    return options


def main() -> None:
    options = read_options()
    study = Study(options)
    for stage, act in (
        ("makers", lambda: study.ensemble(MAKERS)),
        ("base", study.base),
        ("fine", study.fine),
        ("near", study.make_near),
        ("shifted", study.make_shifted),
        ("judges", study.train_others),
        ("judge", study.judge),
        ("final", lambda: (study.ensemble(FINAL), study.judge(FINAL))),
    ):
        if time.time() - study.began > 60 * options.minutes:
            study.say("out of time: the same command goes on")
            return
        if stage in options.stage:
            study.say(f"stage {stage}")
            study.measured(stage, act)
    study.say("done")


if __name__ == "__main__":
    main()
