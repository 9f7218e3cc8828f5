"""One CIFAR-100 network at several training accuracies: how thresholds from training images drift, where ranks flip.

    OODSCOPE_DATA=path/to/packs python benchmarks/checkpoints_study.py --output FOLDER [--minutes 9] [--device cuda]
    python benchmarks/checkpoints_study.py --output FOLDER --write docs/results/checkpoints.md

The first call trains one ResNet-18 by the recipe ``cross_entropy`` (on a GPU with recorded steps), keeps its weights
when the accuracy on all training images, shown as they are, first reaches 70, 85, 95 and 99.97 % (the last epoch stands
in for what was not reached), and writes the scores of each checkpoint as a table (``scores/``). A call that was stopped
goes on where it was. The second measures the tables on a CPU and writes the page. ``--figures FILE`` keeps the
measured figures, from which ``--write`` makes the page where the tables are not at hand.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from scipy.stats import t as student
from torch import nn

import oodscope as oods
from cifar_scores import POPULATIONS, few
from oodscope.base.files import atomic_path, write_text
from oodscope.execution.progress import Advance
from oodscope.metrics.comparison.influence import Estimates
from oodscope.metrics.comparison.simultaneous import compare_pairs
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.compare import source_of
from oodscope.runs.comparison.sources import Scored
from oodscope.runs.evaluation.scoring import score_benchmark
from oodscope.training.loop.streams import Stream, Streams
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import Recipe
from oodscope.training.train import train_seeds
from openood_cifar import open_benchmark, pack
from training_sets import FAR
from training_table import InMemory, TimeUpError
from verdict_page import table

LEVELS = (0.70, 0.85, 0.95, 0.9997)
DETECTORS = ("msp", "mls", "ebo", "gen", "knn", "mds", "rmds", "vim", "fdbd")
SAMPLE, NEARLY, AT_ONCE = 10, 0.02, 1000
"""Every so many training images are looked at after an epoch, all of them once these come so near to a level."""


def named(level: float) -> str:
    """``0.9997`` as ``99.97``."""
    return f"{100 * level:g}"


def accuracy(model: nn.Module, stream: Stream, step: int = 1) -> float:
    """On every so many training images, as they are."""
    rows = np.arange(0, len(stream), step)
    parts = stream.serve(np.array_split(rows, -(-rows.size // AT_ONCE)))
    with torch.inference_mode():
        hits = [(model(stream.normalise(raw.pixels)).argmax(1) == raw.labels).sum() for raw in parts]
    return int(torch.stack(hits).sum()) / rows.size


def keeping(folder: Path, levels: Sequence[float], **settings: Any) -> Recipe:
    """Cross-entropy that keeps the weights when a level is first reached, and at the end for the highest."""

    def path(level: float) -> Path:
        return folder / f"at-{named(level)}.safetensors"

    def keep(model: nn.Module, level: float, reached: float, epoch: int) -> None:
        weights = {key: value.detach().contiguous().cpu() for key, value in model.state_dict().items()}
        with atomic_path(path(level)) as place:
            save_file(weights, place, metadata={"epoch": str(epoch), "accuracy": str(reached)})

    class AtLevels(CrossEntropy):
        """Looks at the training images before every epoch."""

        def start_epoch(self, model: nn.Module, epoch: int, streams: Streams) -> None:
            wanted = [level for level in levels if not path(level).exists()]
            if wanted and accuracy(model, streams.train, SAMPLE) >= wanted[0] - NEARLY:
                reached = accuracy(model, streams.train)
                for level in wanted:
                    if reached >= level:
                        keep(model, level, reached, epoch)

        def finish(self, model: nn.Module, streams: Streams) -> None:
            for level in (each for each in levels if not path(each).exists()):
                keep(model, level, accuracy(model, streams.train), self.epochs)

    folder.mkdir(parents=True, exist_ok=True)
    return AtLevels(**settings)


class Until:
    """Notified of every step; ends the training when the time is over."""

    def __init__(self, minutes: float) -> None:
        self.end = time.monotonic() + 60.0 * minutes

    @property
    def over(self) -> bool:
        return time.monotonic() > self.end

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Advance]:
        def tick(done: int, remark: object = None, /) -> None:
            if self.over:
                raise TimeUpError

        yield tick


def score(weights: Path, model: nn.Module, bench: oods.Benchmark, detectors: Sequence[str], device: str) -> ScoreTable:
    """One checkpoint on all sets, training images among them."""
    model.load_state_dict(load_file(weights))
    classifier = oods.Classifier(model, bench.transform, device=device, name=weights.stem)
    made = [oods.create_detector(name) for name in detectors]
    with safe_open(weights, "pt") as file:
        said = file.metadata()
    context = {"benchmark": "cifar100", "run": f"{said['accuracy']} after {said['epoch']}", "seed": 0}
    roles = ("id_train", "id_val")
    return score_benchmark(InMemory(classifier, {}), bench, made, track="default", roles=roles, context=context)


def study(
    build: Any,
    recipe: Recipe,
    bench: oods.Benchmark,
    folder: Path,
    until: Until,
    detectors: Sequence[str],
    device: str,
) -> bool:
    """Train, then score what has no table yet; ``False`` where the time was over before the end."""
    begun = time.monotonic()
    try:
        (trained,) = train_seeds(
            [build], recipe, [0], bench.id_train, bench.transform, folders=[folder / "training"], device=device,
            progress=until,
        )  # fmt: skip
    except TimeUpError:
        return False
    print(f"trained: {time.monotonic() - begun:.0f} s", flush=True)
    for weights in sorted(folder.glob("at-*.safetensors")):
        place = folder / "scores" / f"{weights.stem}.parquet"
        if place.exists():
            continue
        if until.over:
            return False
        place.parent.mkdir(exist_ok=True)
        score(weights, trained.model, bench, detectors, device).save(place)
        print(f"{weights.stem}: {time.monotonic() - begun:.0f} s", flush=True)
    return True


WANTED = {
    "frr95_train_correct": ("human_centric", "id_test"),
    "frr95_val_correct": ("human_centric", "id_test"),
    "der95_train_correct": ("human_centric", "all"),
    "der95_val_correct": ("human_centric", "all"),
    "auroc": ("standard", "near"),
}
"""Metrics of the page: the protocol, and the set or the group whose mean is shown."""

COMPARED = ("der95_train_correct", "der95_val_correct", "auroc")
STILL = 0.005
"""A drift that falls by less between two checkpoints does not count as falling."""

MOST = 3000
"""Images of each set that are measured."""


def thinned(scores: ScoreTable, most: int = MOST) -> ScoreTable:
    """At most so many images of each set, evenly along its order."""
    places = [
        rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)]
        for rows in scores.frame.groupby("set", sort=False, observed=True).indices.values()
    ]
    return ScoreTable(scores.frame.iloc[np.sort(np.concatenate(places))], scores.context)


def measured(scores: ScoreTable) -> dict[str, Any]:
    """By metric and detector the value with its interval, accuracies, and which pairs a paired test holds apart."""
    small, names = thinned(scores), list(scores.detectors)
    found: dict[str, Any] = {"apart": {}}
    for metric, (protocol, where) in WANTED.items():
        source = source_of([Scored(name, small, name) for name in names], protocol, metric)
        sets = list(source.groups.get(where, [where]))
        estimates = source.images(sets)
        found[metric] = {name: bounded(estimates, row) for row, name in enumerate(names)}
        if metric in COMPARED:
            found["apart"][metric] = apart(names, estimates if source.refusal(sets) else source.classes(sets))
    known = (scores.frame["role"] == "id_test").to_numpy()
    reached, _, epoch = scores.context.run.partition(" after ")
    return {
        **found,
        "accuracy id_test": float(scores.correct()[known].mean()),
        "reached": float(reached),
        "epoch": int(epoch),
    }


def bounded(estimates: Estimates, row: int) -> list[float]:
    """A value, and its interval within 0 and 1."""
    value, noise = float(estimates.values[row]), estimates.noise(row)
    reach = float(student.isf(0.025, min(noise.freedom, 1e6))) * noise.error
    return [value, max(value - reach, 0.0), min(value + reach, 1.0)]


def apart(names: Sequence[str], estimates: Estimates) -> list[list[str]]:
    """The pairs (larger, smaller) that differ at 5 % over all pairs."""
    pairs = list(combinations(range(len(names)), 2))
    compared = compare_pairs(estimates, pairs=pairs)
    return [
        [names[a], names[b]] if difference > 0.0 else [names[b], names[a]]
        for (a, b), difference, p in zip(pairs, compared.difference, compared.p_adjusted)
        if p < 0.05
    ]


def flips(done: dict[str, dict[str, Any]], metric: str) -> list[str]:
    """Pairs whose order turns between two checkpoints, the paired test holding them apart at both."""
    seen: dict[frozenset[str], dict[str, str]] = {}
    for level, own in done.items():
        for larger, smaller in own["apart"][metric]:
            seen.setdefault(frozenset((larger, smaller)), {})[level] = larger
    return [
        f"{' and '.join(sorted(pair))} ({', '.join(f'{name} larger at {level}' for level, name in by_level.items())})"
        for pair, by_level in seen.items()
        if len(set(by_level.values())) > 1
    ]


def drifts(done: dict[str, dict[str, Any]]) -> dict[str, float]:
    """By checkpoint, what a threshold of training images rejects beyond one of validation, mean over detectors."""
    return {
        level: float(
            np.mean([own["frr95_train_correct"][name][0] - own["frr95_val_correct"][name][0] for name in own["auroc"]])
        )
        for level, own in done.items()
    }


def answer(done: dict[str, dict[str, Any]]) -> str:
    """What the page found, as a function of its numbers."""
    if len(done) < 2:
        return "Cannot say: fewer than two checkpoints have been scored."
    drift = list(drifts(done).values())
    first, *_, last = done
    grows = "grows" if all(b > a - STILL for a, b in pairwise(drift)) else "changes, not always upwards"
    counts = {metric: len(flips(done, metric)) for metric in COMPARED}
    return (
        f"With training, what a threshold from training images rejects of correct test images beyond one from "
        f"validation images {grows}: {100 * drift[0]:+.1f} points at {first} %, {100 * drift[-1]:+.1f} at {last} % "
        f"(mean of {len(done[first]['auroc'])} detectors). Pairs of detectors whose order turns, with the paired test "
        f"holding them apart both times: {counts['auroc']} by near AUROC, {counts['der95_train_correct']} by DER with "
        f"the threshold from training images, {counts['der95_val_correct']} with the one from validation images."
    )


def section(done: dict[str, dict[str, Any]]) -> list[str]:
    """The tables, and what they say."""
    if not done:
        return ["No checkpoint has been scored yet."]
    detectors = list(next(iter(done.values()))["auroc"])
    facts = [
        ["accuracy on training images", *(f"{100 * own['reached']:.2f}" for own in done.values())],
        ["epochs", *(str(own["epoch"]) for own in done.values())],
        ["accuracy on test images", *(f"{100 * own['accuracy id_test']:.2f}" for own in done.values())],
    ]
    lines = [*table(("", *done), facts), ""]
    for metric in WANTED:
        lines += [f"## {metric}, percent", ""]
        rows = [[name, *(cell(own[metric][name]) for own in done.values())] for name in detectors]
        lines += [*table(("detector", *done), rows), ""]
    said = ", ".join(f"{100 * value:+.1f} at {level}" for level, value in drifts(done).items())
    lines += ["## What turns", ""]
    lines += [
        f"- Correct test images that a threshold from training images rejects beyond one from validation: {said}."
    ]
    for metric in COMPARED:
        lines += [f"- Order by {metric} that turns: {'; '.join(flips(done, metric)) or 'none'}."]
    return lines


def cell(value: Sequence[float]) -> str:
    """A value with its interval, in percent."""
    own, low, high = (100 * each for each in value)
    return f"{own:.1f} [{low:.1f}–{high:.1f}]"


def page(done: dict[str, dict[str, Any]], missing: Sequence[str], machine: str) -> str:
    """The whole page."""
    head = HEAD.format(machine=machine, date=f"{datetime.now(UTC):%Y-%m-%d}", answer=answer(done), most=MOST)
    tail = f"Not yet run: {', '.join(f'training accuracy {each}' for each in missing) or 'nothing'}."
    return "\n\n".join([head, "\n".join(section(done)), DIFFERS, tail]) + "\n"


HEAD = """# One network at several training accuracies

**Question.** A threshold that keeps 95 % of the correct training images rejects more of the correct test images the
longer a network was trained. How does that drift, and where do ranks of detectors flip?

**Answer.** {answer}

**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/checkpoints_study.py --output FOLDER` (a GPU), then the same
with `--write docs/results/checkpoints.md` (a CPU); both go on where they stopped

**Machine.** {machine}.

**Date.** {date}

One CIFAR-100 ResNet-18, seed 0, so everything here is about this network. Columns are checkpoints by the accuracy on
all training images, shown as they are, that was asked for; the first rows say what it was. At most {most:,} images of
each set are measured. Intervals (95 %) are for other images of these classes; orders are compared pair by pair for
other OOD classes (step-down max-T over all pairs of a checkpoint, 5 %). DER: the mean over all OOD sets and ID test
images."""

DIFFERS = """## What differs from the paper

The paper (human-centric evaluation) compares finished networks; it has no checkpoints of one training. Far sets are not
the published ones, Tiny ImageNet is the validation half by OpenOOD's list, and the network is small."""


def open_sets(folder: Path, count: int | None) -> oods.Benchmark:
    """CIFAR-100 with near and far sets; 10,000 training images, as many of each class, are scored."""
    bench = open_benchmark(folder, "cifar100")

    def cut(images: oods.ImageSet, name: str | None = None) -> oods.ImageSet:
        return few(images, count or len(images), name)

    near = tuple(map(cut, bench.near))
    far = tuple(cut(pack(folder, file), name) for file, name in FAR.items() if (folder / f"{file}.npz").exists())
    known = {role: cut(getattr(bench, role)) for role in ("id_train", "id_val", "id_test")}
    scored = few(known["id_train"], 10_000, "id_train_scored")
    names = {images.name: POPULATIONS[images.name] for images in (*near, *far)}
    return replace(bench, near=near, far=far, ood_val=None, populations=names, scored_train=scored, **known)


def figures(folder: Path, levels: Sequence[float]) -> dict[str, dict[str, Any]]:
    """What the tables of a folder say, by level; measured once and kept beside them."""
    done = {}
    for level in levels:
        name = f"at-{named(level)}"
        scores, kept = folder / "scores" / f"{name}.parquet", folder / f"{name}.json"
        if scores.exists() and not kept.exists():
            write_text(kept, json.dumps(measured(ScoreTable.load(scores))))
        if kept.exists():
            done[named(level)] = json.loads(kept.read_text())
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--images", type=int, help="of each set, for a try")
    parser.add_argument("--network", default="resnet18_32")
    parser.add_argument("--precision", default="bf16-mixed")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--machine", default=f"one GPU (training, scores); {platform.machine()}, CPU (figures)")
    parser.add_argument("--figures", type=Path, help="where the page's figures are kept")
    parser.add_argument("--write", type=Path, help="measure what is there and write the page; nothing is trained")
    options = parser.parse_args()
    if options.write is None:
        bench = open_sets(Path(os.environ["OODSCOPE_DATA"]).resolve(), options.images)
        recipe = keeping(options.output, LEVELS, epochs=options.epochs, precision=options.precision)

        def build() -> nn.Module:
            return oods.create_model(options.network, num_classes=100)[0]

        ended = study(build, recipe, bench, options.output, Until(options.minutes), DETECTORS, options.device)
        print("finished" if ended else "the minutes are over; call again to go on")
        return
    done = figures(options.output, LEVELS)
    if options.figures:
        if not done and options.figures.exists():
            done = json.loads(options.figures.read_text())
        write_text(options.figures, json.dumps(done, indent=1) + "\n")
    missing = [named(level) for level in LEVELS if named(level) not in done]
    write_text(options.write, page(done, missing, options.machine))


if __name__ == "__main__":
    main()
