"""Train the generators of near-OOD and of shifted images, and see what each weight of the semantic term does.

    OODSCOPE_DATA=path/to/packs python benchmarks/near_shifted_gans.py --stage base,near,shifted \\
        --cifar10-train cifar10_train.npz --member resnet18_32:a.safetensors --member vgg11_32:b.safetensors \\
        --work scratch --output results --device cuda

Stages, in this order:

    base     a plain class-conditional GAN on CIFAR-10
    near     fine-tuned copies of it, one for each of the 11 weights of the paper (or --lambdas)
    shifted  pix2pix on CIFAR-10
    mnist    DCGAN on 28 px digits, plain and fine-tuned

The ensemble whose mutual information is the semantic term is given by --member ARCHITECTURE:FILE, or trained in --work
(--ensemble-epochs, four architectures). Distances are those of features of its first member, or LPIPS. Features for the
Fréchet distance are of the ResNet-18 that lies beside the packs, which takes no part in the training. Everything is
kept in --work, where the same command goes on; --stop-after ends cleanly, --base-seconds ends the plain GAN alone. The
stage near without base takes the plain GAN as it lies in --work. --output gets records, sheets, 64 samples of each
generator, and weights as long as all stays below 15 MiB.
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import oodscope as oods
from oodscope.execution.console import ConsoleProgress
from oodscope.generation.ensemble import HETEROGENEOUS, train_ensemble
from oodscope.generation.gan import write_grid
from oodscope.generation.gan.stage import FILE, GRID, RECORD
from oodscope.generation.near import LAMBDAS, NearRecipe, TrainedNear, fine_tune_grid, sample, train_base, usable
from oodscope.generation.perceptual import FeatureDistance, Perceptual, lpips
from oodscope.generation.semantic import EnsembleInformation
from oodscope.generation.shifted import ShiftedRecipe, shift, train_shifted
from oodscope.generation.sight import Sight
from oodscope.metrics.window import overlap_window
from oodscope.models.device import choose_device
from oodscope.training import CrossEntropy
from openood_cifar import ARTIFACTS, TRANSFORM, open_classifier, pack

STAGES = ("base", "near", "shifted", "mnist")
DIGITS = oods.Preprocess(size=32, mean=(0.1307,), std=(0.3081,))
MOST_BYTES = 15 * 2**20
JUDGED = 2000  # images that a row of a table is about


@dataclass
class World:
    """Images, the two terms, and features of an outsider."""

    train: oods.ImageSet
    val: oods.ImageSet
    perceptual: Perceptual
    semantic: EnsembleInformation
    features: Callable[[Tensor], Tensor] | None

    def val_images(self, size: int, channels: int) -> Tensor:
        rows = np.arange(min(JUDGED, len(self.val)))
        plain = oods.Preprocess(size=size, mean=(0.0,) * channels, std=(1.0,) * channels)
        images: Tensor = plain(self.val.pictures(rows))
        return images.to(self.semantic.device)

    @torch.no_grad()
    def ask(self, images: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Mutual information and the class that the ensemble sees."""
        told, seen = [], []
        for part in torch.split(images, 250):
            told.append(self.semantic(part).cpu())
            seen.append(self.semantic.logits(part).softmax(2).mean(0).argmax(1).cpu())
        return torch.cat(told).numpy(), torch.cat(seen).numpy()


def ensemble(
    options: argparse.Namespace, train: oods.ImageSet, val: oods.ImageSet, transform: oods.Preprocess, name: str
):
    """The members given, or trained here."""
    if options.member and name == "cifar10":
        members = []
        for given in options.member:
            architecture, _, path = given.partition(":")
            model, _ = oods.create_model(architecture, num_classes=len(train.class_names), weights=path)
            members.append(oods.Classifier(model, transform, device=options.device, name=Path(path).stem))
        return members
    precision = "bf16-mixed" if choose_device(options.device).type == "cuda" else "32-true"
    recipe = CrossEntropy(epochs=options.ensemble_epochs, precision=precision)
    if name == "mnist":
        recipe = recipe.model_copy(update={"augment": recipe.augment.model_copy(update={"flip": False})})
    seeds = [100 + number for number in range(len(options.architectures))]
    return train_ensemble(
        options.architectures,
        train,
        val,
        recipe,
        seeds,
        preprocess=transform,
        folder=options.work / f"ensemble-{name}",
        device=options.device,
        progress=ConsoleProgress(),
    )


def open_cifar(options: argparse.Namespace, folder: Path) -> World:
    splits, whole = np.load(folder / "openood_v15_splits.npz"), pack(folder, "cifar10_test")
    val = whole.take(splits["cifar10_val_id"], "id_val")
    if options.limit:  # to try the script out; the numbers mean nothing
        train = whole.take(np.arange(options.limit), "id_train")
    else:
        homes = (
            [options.cifar10_train] if options.cifar10_train else [h / "cifar10_train.npz" for h in (folder, ARTIFACTS)]
        )
        place = next(path for path in homes if path.exists()).resolve()
        train = pack(folder, place.stem, place.parent)
    judge = Sight(open_classifier(folder, "cifar10", options.device))
    features = None if options.limit else lambda images: judge(images).features
    return world(options, train, val, TRANSFORM["cifar10"], "cifar10", features)


def open_digits(options: argparse.Namespace, folder: Path) -> World:
    digits = pack(folder, "mnist_test")
    if options.mnist_train:
        train, val = pack(folder, options.mnist_train.stem, options.mnist_train.resolve().parent), digits
    else:
        cut = options.limit or 8000
        train, val = digits.take(np.arange(cut), "mnist_8k"), digits.take(np.arange(8000, 10_000), "mnist_2k")
    return world(options, train, val, DIGITS, "mnist", None)


def world(
    options: argparse.Namespace,
    train: oods.ImageSet,
    val: oods.ImageSet,
    transform: oods.Preprocess,
    name: str,
    features: Callable[[Tensor], Tensor] | None,
) -> World:
    members = ensemble(options, train, val, transform, name)
    perceptual = lpips(options.device) if options.perceptual == "lpips" else FeatureDistance(members[0])
    return World(train, val, perceptual, EnsembleInformation(members), features)


def near_table(made: Sequence[TrainedNear], found: World, output: Path, seed: int) -> None:
    """What each generator draws, in numbers and on one sheet: a row for each, the same latents throughout."""
    device, shape = found.semantic.device, made[0].generator.shape
    known, _ = found.ask(found.val_images(shape.size, shape.channels))
    rows, pooled, sheet, kept = [], [], [], {}
    for each in made:
        generator = each.generator.to(device)
        images, classes = sample(generator, JUDGED, seed)
        told, taken = found.ask(images)
        agreed = float((taken == classes.cpu().numpy()).mean()) if generator.classes else float("nan")
        rows.append((each, told, agreed))
        pooled += [told] if each.lambda_semantic is not None and each.health.collapsed is None else []
        sheet.append(images[:20])
        weight = "base" if each.lambda_semantic is None else f"{each.lambda_semantic:g}"
        kept[weight] = (images[:64] * 255).round().byte().cpu().numpy()
        kept[f"{weight} information"] = told.astype(np.float32)
    write_grid(torch.cat(sheet), output / "sheet.png", columns=20)
    np.savez_compressed(output / "samples.npz", validation=known.astype(np.float32), **kept)
    try:
        window = overlap_window(known, np.concatenate(pooled)) if pooled else None
    except oods.OodscopeError as error:
        window = None
        print(f"no window: {error}")
    print(f"\nvalidation images: information {known.mean():.4f} (95 % below {np.quantile(known, 0.95):.4f})")
    print(f"window of the pooled samples: {window}\n")
    print(
        "| lambda_s | steps | seconds | information | in window | class kept | distance | variety | Fréchet | state |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for each, told, agreed in rows:
        distance = f"{each.history[-1].perceptual:.4f}" if each.history and each.lambda_semantic is not None else ""
        inside = f"{window.keeps(told).mean():.3f}" if window else ""
        health = each.health
        frechet = "" if health.frechet is None else f"{health.frechet:.3f} of {health.spread:.3f}"
        print(
            f"| {'base' if each.lambda_semantic is None else f'{each.lambda_semantic:g}'} | {each.taken} "
            f"| {each.seconds:.0f} | {told.mean():.4f} | {inside} | {agreed:.3f} | {distance} "
            f"| {health.variety.share:.3f} | {frechet} | {health.collapsed or 'sound'} |",
            flush=True,
        )


def train_near(options: argparse.Namespace, found: World, name: str, recipe: NearRecipe, fine: bool) -> None:
    common = {"device": options.device, "features": found.features, "progress": ConsoleProgress()}
    folder = options.work / name
    if not {"base", "mnist"} & set(options.stage) and (folder / "base" / RECORD).exists():
        recipe = recipe.model_copy(update={"steps": json.loads((folder / "base" / RECORD).read_text())["steps"]})
    time_for_base = min(left(options), options.base_seconds)
    base = train_base(recipe, found.train, folder=folder / "base", stop_after=time_for_base, **common)
    made = [base]
    print(
        f"{name} base: {base.taken} steps in {base.seconds:.0f} s, {base.taken / base.seconds:.1f} steps/s", flush=True
    )
    ready = base.finished or options.base_seconds < float("inf")
    if fine and ready and base.health.collapsed is None:
        made += fine_tune_grid(
            *(base, found.perceptual, found.semantic),
            images=found.train,
            folder=folder,
            lambdas=options.lambdas,
            stop_after=left(options),
            **common,
        )
    print(f"{name}: {len(usable(made[1:]))} of {len(made) - 1} fine-tuned generators are sound")
    output = options.output / name
    output.mkdir(parents=True, exist_ok=True)
    near_table(made, found, output, options.seed)
    ship(folder, output, [each.lambda_semantic for each in made])


def train_shift(options: argparse.Namespace, found: World) -> None:
    recipe = ShiftedRecipe(
        steps=options.shifted_steps,
        batch_size=options.shifted_batch,
        lambda_label=options.lambda_label,
        partner=options.partner,
        width=options.width,
        seed=options.seed,
        precision=precision(options),
    )
    folder, output = options.work / "shifted", options.output / "shifted"
    made = train_shifted(
        *(recipe, found.train, found.perceptual, found.semantic),
        folder=folder,
        logits=found.semantic.logits,
        stop_after=left(options),
        device=options.device,
        progress=ConsoleProgress(),
    )
    generator = made.generator.to(found.semantic.device)
    given = found.val_images(generator.shape.size, generator.shape.channels)
    redrawn = shift(generator, given, options.seed)
    labels = found.val.labels[: len(given)]
    print(f"\npix2pix: {made.taken} steps in {made.seconds:.0f} s; {made.health.collapsed or 'sound'}\n")
    print("| images | information | label kept by the ensemble | distance | variety |\n|---|---|---|---|---|")
    for name, images in (("validation", given), ("redrawn", redrawn)):
        told, seen = found.ask(images)
        with torch.no_grad():
            apart = torch.cat([found.perceptual(a, b) for a, b in zip(given.split(250), images.split(250))]).mean()
        share = 1.0 if name == "validation" else made.health.variety.share
        print(f"| {name} | {told.mean():.4f} | {(seen == labels).mean():.3f} | {float(apart):.4f} | {share:.3f} |")
    output.mkdir(parents=True, exist_ok=True)
    pairs = torch.stack([given[:64], redrawn[:64]], 1).flatten(0, 1)
    write_grid(pairs, output / "sheet.png", columns=16)
    for file in (RECORD, GRID):
        shutil.copyfile(folder / file, output / file)


def ship(folder: Path, output: Path, weights: Sequence[float | None]) -> None:
    """Records and sheets of every generator; weights as long as they are small."""
    names = ["base" if weight is None else f"lambda-{weight:g}" for weight in weights]
    for name in names:
        for file in (RECORD, GRID):
            shutil.copyfile(folder / name / file, output / f"{name}-{file}")
    for name in names:
        source, held = (
            folder / name / FILE,
            sum(path.stat().st_size for path in output.parent.rglob("*") if path.is_file()),
        )
        if held + source.stat().st_size <= MOST_BYTES:
            shutil.copyfile(source, output / f"{name}-{FILE}")
        else:
            print(f"not copied, for its size: {source}")


def left(options: argparse.Namespace) -> float:
    return max(0.0, options.deadline - time.time())


def precision(options: argparse.Namespace) -> str:
    return "bf16-mixed" if choose_device(options.device).type == "cuda" else "32-true"


def near_recipe(options: argparse.Namespace, **changes: object) -> NearRecipe:
    declared = {
        "steps": options.steps,
        "fine_steps": options.fine_steps,
        "batch_size": options.batch_size,
        "discriminator_steps": options.discriminator_steps,
        "semantic_ceiling": options.ceiling,
        "augment": options.augment,
        "width": options.width,
        "discriminator_width": options.width,
        "seed": options.seed,
        "precision": precision(options),
    }
    return NearRecipe.model_validate({**declared, **changes})


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", default="base,near,shifted")
    parser.add_argument("--cifar10-train", type=Path, help="pack of the 50,000 training images; else looked for")
    parser.add_argument("--mnist-train", type=Path, help="pack of training digits; else 8,000 of the test pack")
    parser.add_argument("--member", action="append", default=[], metavar="ARCHITECTURE:FILE")
    parser.add_argument("--architectures", type=lambda text: text.split(","), default=list(HETEROGENEOUS))
    parser.add_argument("--ensemble-epochs", type=int, default=15)
    parser.add_argument("--perceptual", choices=["features", "lpips"], default="features")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fine-steps", type=int, default=1_000)
    parser.add_argument("--mnist-steps", type=int, default=4_000)
    parser.add_argument("--shifted-steps", type=int, default=4_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--shifted-batch", type=int, default=128)
    parser.add_argument("--discriminator-steps", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--augment", type=float, default=0.0)
    parser.add_argument("--ceiling", type=float, help="information that earns no more")
    parser.add_argument("--lambdas", type=lambda text: tuple(map(float, text.split(","))), default=LAMBDAS)
    parser.add_argument("--lambda-label", type=float, default=0.0)
    parser.add_argument("--partner", choices=["itself", "class"], default="itself")
    parser.add_argument("--base-seconds", type=float, default=float("inf"), help="time for the plain GAN")
    parser.add_argument("--limit", type=int, help="so many training images, to try the script out")
    parser.add_argument("--stop-after", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.stage = options.stage.split(",")
    if unknown := set(options.stage) - set(STAGES):
        parser.error(f"unknown stage {min(unknown)!r}; stages: {', '.join(STAGES)}")
    options.deadline = time.time() + options.stop_after
    return options


def main() -> None:
    options, began = read_options(), time.time()
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    if {"base", "near", "shifted"} & set(options.stage):
        cifar = open_cifar(options, folder)
        print(
            f"ready after {time.time() - began:.0f} s: {len(cifar.train)} images, {cifar.semantic.fingerprints}",
            flush=True,
        )
        if {"base", "near"} & set(options.stage):
            train_near(options, cifar, "cifar10", near_recipe(options), "near" in options.stage)
        if "shifted" in options.stage:
            train_shift(options, cifar)
    if "mnist" in options.stage:
        changes = {"network": "dcgan", "latent": 100, "steps": options.mnist_steps}
        train_near(options, open_digits(options, folder), "mnist", near_recipe(options, **changes), True)
    summary = {"seconds": time.time() - began, "stages": options.stage}
    (options.output / "run.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(f"ended after {summary['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
