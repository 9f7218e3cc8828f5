"""One CIFAR-100 network at several training accuracies: how thresholds from training images drift, where ranks flip.

    OODSCOPE_DATA=path/to/packs python benchmarks/checkpoints_study.py --output FOLDER [--minutes 20] [--device cuda]
        [--write docs/results/checkpoints.md]

Trains one ResNet-18 (SGD with Nesterov momentum, cosine from .1, batches of 128, crops and flips) and keeps its weights
when the accuracy on training images, measured without augmentation, first reaches 70, 85, 95 and 99.97 %. A call that
was stopped goes on with the next epoch. Each checkpoint is scored on at most ``--images`` images of each set.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

import oodscope as oods
from cifar_scores import open_sets
from oodscope.base.files import atomic_path, write_text
from oodscope.models.zoo.zoo import create_model
from oodscope.protocols.registry import create_protocol
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import score_benchmark
from openood_cifar import TRANSFORM, open_benchmark
from verdict_page import table

LEVELS = (0.70, 0.85, 0.95, 0.9997)
DETECTORS = ("msp", "ebo", "gen", "knn", "mds", "vim")
RATE, BATCH = 0.1, 128


def augmented(images: Tensor, draws: torch.Generator) -> Tensor:
    """A crop of 4 padded pixels for the batch, and flips of half of its images."""
    size = images.shape[-1]
    top, left = torch.randint(9, (2,), generator=draws).tolist()
    moved = pad(images, (4, 4, 4, 4))[:, :, top : top + size, left : left + size]
    flip = (torch.rand(len(images), generator=draws) < 0.5).to(images.device)
    return torch.where(flip[:, None, None, None], moved.flip(3), moved)


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """On images as they are."""
    model.eval()
    with torch.inference_mode():
        parts = [model(part).argmax(1) for part in images.split(500)]
    return float((torch.cat(parts) == labels).float().mean())


class Training:
    """One network on its way through the levels; its state lies in a file after every epoch."""

    def __init__(self, model: nn.Module, images: Tensor, labels: Tensor, folder: Path, epochs: int) -> None:
        self.model, self.images, self.labels, self.folder, self.epochs = model, images, labels, folder, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4, nesterov=True)
        self.epoch, self.reached = 0, 0.0
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "state.pt").exists():
            state = torch.load(folder / "state.pt", map_location=images.device, weights_only=True)
            model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.epoch, self.reached = state["epoch"], state["reached"]

    def run(self, levels: Sequence[float], until: Callable[[], bool]) -> None:
        """Epochs until every level is reached, the epochs are over, or ``until`` says so."""
        while self.epoch < self.epochs and any(not self.kept(level).exists() for level in levels) and not until():
            self.step()
            for level in levels:
                if self.reached >= level and not self.kept(level).exists():
                    weights = {key: value.contiguous().cpu() for key, value in self.model.state_dict().items()}
                    with atomic_path(self.kept(level)) as path:
                        save_file(weights, path, metadata={"epoch": str(self.epoch), "accuracy": str(self.reached)})
            state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            with atomic_path(self.folder / "state.pt") as path:
                torch.save({**state, "epoch": self.epoch, "reached": self.reached}, path)

    def kept(self, level: float) -> Path:
        """The weights of a level."""
        return self.folder / f"at-{100 * level:g}.safetensors"

    def step(self) -> None:
        """One epoch; its randomness depends on its number alone."""
        draws = torch.Generator().manual_seed(self.epoch)
        order = torch.randperm(len(self.images), generator=draws)
        self.model.train()
        for number, rows in enumerate(order.split(BATCH)):
            done = (self.epoch + number * BATCH / len(order)) / self.epochs
            for group in self.optimizer.param_groups:
                group["lr"] = RATE * (1.0 + cos(pi * done)) / 2.0
            loss = cross_entropy(self.model(augmented(self.images[rows], draws)), self.labels[rows])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        self.epoch += 1
        self.reached = accuracy(self.model, self.images, self.labels)


def judged(weights: Path, model: nn.Module, bench: oods.Benchmark, detectors: Sequence[str]) -> dict[str, Any]:
    """What thresholds reject and what detectors separate, of one checkpoint."""
    model.load_state_dict(load_file(weights))
    classifier = oods.Classifier(model, bench.transform, device="cpu", name=weights.stem)
    roles = ("id_train", "id_val")
    made = [oods.create_detector(name) for name in detectors]
    scores = score_benchmark(
        FromNetwork(classifier, oods.ActivationStore()), bench, made, track="default", roles=roles, context={"seed": 0}
    )
    return measured(scores)


WANTED = {
    "frr95_train_correct": "id_test", "frr95_val_correct": "id_test",
    "der95_train_correct": "mean", "der95_val_correct": "mean", "auroc": "mean",
}  # fmt: skip


def measured(scores: ScoreTable) -> dict[str, Any]:
    """By metric and detector: the value, and its interval; the test accuracy beside."""
    found: dict[str, Any] = {name: {} for name in WANTED}
    rows = create_protocol("human_centric").measure(scores) + create_protocol("standard").measure(scores)
    for row in rows:
        group = {"auroc": ("near", "standard"), "der95_train_correct": ("all", "human_centric")}
        wanted = group.get(row.metric, group["der95_train_correct"] if row.metric.startswith("der95") else None)
        if WANTED.get(row.metric) == row.set and (wanted is None or (row.group, row.protocol) == wanted):
            found[row.metric][row.detector] = [row.value, row.low, row.high]
        if row.metric == "accuracy" and row.set in ("id_test", "id_train"):
            found[f"accuracy {row.set}"] = row.value
    return found


def flips(done: dict[str, dict[str, Any]], metric: str) -> list[str]:
    """Pairs of detectors whose order turns between two checkpoints with intervals that do not overlap at either."""
    found = []
    names = list(next(iter(done.values()))[metric]) if done else []
    for a, b in ((a, b) for n, a in enumerate(names) for b in names[n + 1 :]):
        signs = {
            level: np.sign(own[metric][a][0] - own[metric][b][0])
            for level, own in done.items()
            if own[metric][a][1] > own[metric][b][2] or own[metric][b][1] > own[metric][a][2]
        }
        if len(set(signs.values())) > 1:
            found.append(f"{a} and {b}")
    return found


def section(done: dict[str, dict[str, Any]]) -> list[str]:
    """The tables, and what they say."""
    if not done:
        return ["No checkpoint has been scored yet."]
    detectors = list(next(iter(done.values()))["auroc"])
    lines = []
    for metric in WANTED:
        lines += [f"## {metric}, percent", ""]
        rows = [[name, *(f"{100 * own[metric][name][0]:.1f}" for own in done.values())] for name in detectors]
        lines += [*table(("detector", *done), rows), ""]
    drift = {
        level: np.mean([own["frr95_train_correct"][name][0] - own["frr95_val_correct"][name][0] for name in detectors])
        for level, own in done.items()
    }
    said = ", ".join(f"{100 * value:+.1f} at {level}" for level, value in drift.items())
    lines += [f"Correct test images that a threshold from training images rejects beyond one from validation: {said}."]
    for metric in ("der95_train_correct", "der95_val_correct", "auroc"):
        lines += [f"Order by {metric} that turns beyond its intervals: {'; '.join(flips(done, metric)) or 'none'}."]
    return lines


def page(done: dict[str, dict[str, Any]], missing: Sequence[str]) -> str:
    """The whole page."""
    about = {"machine": platform.machine(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    tail = f"Not yet run: {', '.join(f'training accuracy {each}' for each in missing) or 'nothing'}."
    return "\n\n".join([HEAD.format(**about), "\n".join(section(done)), tail]) + "\n"


HEAD = """# One network at several training accuracies

**Question.** A threshold that keeps 95 % of the correct training images rejects more of the correct test images the
longer a network was trained. How does that drift, and where do ranks of detectors flip?

**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/checkpoints_study.py --output FOLDER --write
docs/results/checkpoints.md`, which goes on where it stopped

**Machine.** {machine}.

**Date.** {date}

One CIFAR-100 ResNet-18; columns are checkpoints, by the accuracy on its training images in percent."""


def study(
    training: Training,
    bench: oods.Benchmark,
    levels: Sequence[float],
    until: Callable[[], bool],
    detectors: Sequence[str],
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Train on, score the checkpoints that are there, and name those that are not."""
    training.run(levels, until)
    done, missing = {}, []
    for level in levels:
        name, path = f"{100 * level:g}", training.folder / f"at-{100 * level:g}.json"
        if training.kept(level).exists() and not path.exists():
            write_text(path, json.dumps(judged(training.kept(level), training.model, bench, detectors)))
        if path.exists():
            done[name] = json.loads(path.read_text())
        else:
            missing.append(name)
    return done, missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    train = open_benchmark(folder, "cifar100").id_train
    pixels = TRANSFORM["cifar100"](train.images(np.arange(len(train)))).to(options.device)
    torch.manual_seed(0)
    model = create_model("resnet18_32", num_classes=100)[0].to(options.device)
    labels = torch.from_numpy(train.labels).to(options.device)
    training = Training(model, pixels, labels, options.output, options.epochs)
    end = time.monotonic() + 60.0 * options.minutes
    bench = replace(open_sets(folder, "cifar100", options.images), ood_val=None)
    done, missing = study(training, bench, LEVELS, lambda: time.monotonic() > end, DETECTORS)
    text = page(done, missing)
    if options.write:
        write_text(options.write, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
