"""Train CIFAR networks by many methods, and score every detector on near, far and corrupted sets: a table per network.

    OODSCOPE_DATA=path/to/packs python benchmarks/training_table.py --output FOLDER [--minutes 9.5]

The lines of ``training_rows.py`` in their order, or those that ``--id`` and ``--methods`` name, in theirs. Each method
follows OpenOOD's recipe (100 epochs, batches of 128, learning rate .1) in bf16-mixed and keeps the epoch of the best ID
validation accuracy; the last epoch stands beside it. The seeds of a method are trained side by side and scored in the
same call. Called again, it goes on where it stopped, also in the middle of a training: a network whose scores are there
is not made again. ``--minutes`` ends the work in time; a method that would not end in time, by the speed of those
before it, is begun by the next call. A method that fails is reported and left out, the others are made. ``--earlier``
names a table of networks that count as done; ``--start CE=FILE`` gives methods that fine-tune a network of cross-
entropy the one in FILE, whatever their seed, and their rows name it. The rows that are not run yet are named at the
end. Several calls may work on one folder at a time if their methods differ: while one waits for its host, the GPU has
the others' steps.

FOLDER holds, for each ID set, ``scores/METHOD-SEED.parquet`` (a row for each test image, ``kept`` says of which epoch;
a column for each detector, or for MSP, the method's own scores and those that ``--stored`` names), ``rows/`` (accuracy
and AUROC of each network, all detectors), ``table.csv`` (all of these), ``seconds/`` (what each detector took), and the
cross-entropy networks of seeds 1 and 2 as float16 in pieces of at most 15 MiB (``weights/``). ``near`` and ``far`` are
against ID test images; ``fs-near`` and ``fs-far`` against those and their corrupted copies together (full spectrum);
``csid`` is ID against the copies. ``near-held`` are the near sets without the classes that exposed networks learn from:
what those are compared with. Trainings under way lie in ``--trainings``. Scores alone are computed here: intervals and
verdicts come from the tables (``training_page.py``). Activations stay in the memory of the device.
"""

import argparse
import copy
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score

import oodscope as oods
from oodscope.activations.activations import Activations
from oodscope.activations.extract import batch_columns
from oodscope.activations.probes.probe import Probe, SetProbe
from oodscope.base.files import write_text
from oodscope.data.imageset import ImageSet
from oodscope.detectors.base import Cost
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.execution.progress import Advance
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import evaluating
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import applicable, score_benchmark
from oodscope.training.loop.sets import check_apart
from oodscope.training.loop.streams import Stream
from oodscope.training.recipe import Recipe
from oodscope.training.registry import create_recipe
from oodscope.training.train import Trained, train_seeds
from training_rows import LINES, TF32, Line, lines_of
from training_sets import HELD, HELD_REMAINDER, exposed_sets, open_sets
from weight_pieces import write_pieces

KEPT_WEIGHTS = (("CE", 1), ("CE", 2))
"""Networks that other measurements go on with."""

_clock = time.monotonic


class TimeUpError(Exception):
    """The minutes are over; the training can go on in another call."""


class Watch:
    """An end at a given time, and what a unit of work has taken so far: 100 epochs of cross-entropy cost 100 units."""

    def __init__(self, minutes: float) -> None:
        self.end = _clock() + 60 * minutes
        self.seconds, self.units = 0.0, 0.0

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Advance]:
        def tick(done: int, remark: object = None, /) -> None:
            if _clock() > self.end:
                raise TimeUpError

        yield tick

    @contextmanager
    def measuring(self, units: float) -> Iterator[None]:
        begun = _clock()
        yield
        self.seconds, self.units = self.seconds + _clock() - begun, self.units + units

    def too_late_for(self, units: float) -> bool:
        """Whether so much work would not end in time; ``False`` as long as nothing was measured."""
        return bool(self.units) and _clock() + units * self.seconds / self.units > self.end


class InMemory(FromNetwork):
    """Activations that stay on the device: nothing is written, moved or hashed between network and detectors."""

    def __init__(self, classifier: Classifier, streams: dict[str, Stream]) -> None:
        super().__init__(classifier)
        self.streams, self.columns, self.seconds = streams, {}, 0.0

    def extract(self, images: ImageSet, probes: Iterable[Probe]) -> Activations:
        known = self.columns.setdefault(images.name, {})
        missing = [each for each in dict.fromkeys(probes) if each.column not in known]
        for probe in [each for each in missing if isinstance(each, SetProbe)]:
            missing.remove(probe)
            made = self.extract(probe.made_of(images), [])
            known[probe.column] = probe.of_made(made.logits, made.features if "features" in made else None)
        plain = "logits" not in known
        if plain or missing:
            if images.name not in self.streams:
                self.streams[images.name] = Stream(images, self.classifier.transform, self.classifier.device)
            stream, begun = self.streams[images.name], _clock()
            with evaluating(self.classifier.model):
                parts = [batch_columns(self.classifier, batch.images, plain, missing) for batch in stream.walk(1024)]
            known.update({name: torch.cat([part[name] for part in parts]) for name in parts[0]})
            if self.classifier.device.type == "cuda":
                torch.cuda.synchronize(self.classifier.device)
            self.seconds += _clock() - begun
        rest = {name: values for name, values in known.items() if name not in ("logits", "features")}
        named = {name: known.get(name) for name in ("logits", "features")}
        return Activations(**named, labels=images.labels, head=self.classifier.head, columns=rest)


def networks(trained: Trained) -> Iterator[tuple[str, torch.nn.Module]]:
    """The network of the best epoch, and that of the last."""
    yield "best", trained.model
    if trained.last is not None:
        last = copy.deepcopy(trained.model)
        last.load_state_dict(trained.last)
        yield "last", last


def area(known: np.ndarray, outliers: np.ndarray) -> float:
    return float(roc_auc_score(np.r_[np.zeros(len(known)), np.ones(len(outliers))], np.r_[known, outliers]))


def summary(frame: pd.DataFrame, method: str, seed: int) -> pd.DataFrame:
    """Accuracy and AUROC, percent, of one network's table of scores."""
    rows = []
    detectors = [name for name in frame.columns if frame[name].dtype == "float32"]
    for kept, part in frame.groupby("kept"):
        known, shifted = part[part["role"] == "id_test"], part[part["role"] == "csid"]
        accuracies = [100 * float((each["label"] == each["prediction"]).mean()) for each in (known, shifted)]
        both = pd.concat([known, shifted])
        pairs = [("near", "near", known), ("far", "far", known), ("csid", "csid", known)]
        pairs += [("fs-near", "near", both), ("fs-far", "far", both)] if len(shifted) else []
        for detector in detectors:
            if part[detector].isna().any():
                continue
            for group, role, negatives in pairs:
                for name, outliers in part[part["role"] == role].groupby("set", observed=True):
                    value = 100 * area(negatives[detector].to_numpy(), outliers[detector].to_numpy())
                    rows.append([method, seed, kept, *accuracies, detector, group, name, value])
            for name, outliers in held_sets(part).items():
                value = 100 * area(known[detector].to_numpy(), outliers[detector].to_numpy())
                rows.append([method, seed, kept, *accuracies, detector, "near-held", name, value])
    columns = ["method", "seed", "kept", "accuracy", "csid_accuracy", "detector", "group", "set", "auroc"]
    return pd.DataFrame(rows, columns=columns)


def held_sets(part: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The near sets without the classes that exposed networks learn from; nothing where those are left out already."""
    near = {str(name): own for name, own in part[part["role"] == "near"].groupby("set", observed=True)}
    if "tin" not in near:
        return {}
    tin = near.pop("tin")
    return {**near, HELD: tin[tin["own_class"] % 2 == HELD_REMAINDER]}


def write_table(folder: Path) -> None:
    """All networks' rows together; those of scores that came alone are made from them, for the stored detectors."""
    for path in (folder / "scores").glob("*.parquet"):
        rows = folder / "rows" / f"{path.stem}.csv"
        if not rows.exists():
            method, _, seed = path.stem.rpartition("-")
            rows.parent.mkdir(exist_ok=True)
            write_text(rows, summary(pd.read_parquet(path), method, int(seed)).to_csv(index=False))
    parts = [pd.read_csv(path) for path in sorted((folder / "rows").glob("*.csv"))]
    if parts:
        write_text(folder / "table.csv", pd.concat(parts, ignore_index=True).to_csv(index=False))


class Work:
    """The networks of one ID set, from their trainings to their tables of scores."""

    def __init__(self, known: str, options: argparse.Namespace, watch: Watch, sets: Callable[..., oods.Benchmark]):
        self.known, self.options, self.watch = known, options, watch
        self.folder, self.trainings = options.output / known, options.trainings / known
        self.scores = self.folder / "scores"
        self.scores.mkdir(parents=True, exist_ok=True)
        self.bench = sets(Path(os.environ.get("OODSCOPE_DATA", ".")), known, options.images, options.device)
        self.streams: dict[str, Stream] = {}

    def path(self, method: str, seed: int) -> Path:
        return self.scores / f"{method}-{seed}.parquet"

    def recipe(self, line: Line) -> Recipe:
        epochs = max(1, round(line.share * self.options.epochs))
        settings = {"precision": self.options.precision, "keep": "best", **line.settings}
        return create_recipe(line.recipe, **settings, epochs=epochs)

    def make(self, line: Line, seeds: Sequence[int]) -> bool:
        """Train and score these networks; ``False`` where the time is too short to begin."""
        recipe = self.recipe(line)
        units = len(seeds) * recipe.epochs * (recipe.cost or 1.0)
        if self.watch.too_late_for(units) and not self.options.begin:
            return False
        bench = exposed_sets(self.bench) if line.exposed else self.bench
        if bench.ood_train is not None:
            check_apart(bench.ood_train, [(role, each) for role, each in bench.members() if role != "ood_train"])
        with self.watch.measuring(units):
            trained = self.train(line, recipe, seeds, bench)
            for seed, each in zip(seeds, trained):
                self.score(line, seed, each, bench)
        return True

    def train(self, line: Line, recipe: Recipe, seeds: Sequence[int], bench: oods.Benchmark) -> list[Trained]:
        classes = len(bench.id_train.class_names)

        def build() -> torch.nn.Module:
            return oods.create_model(self.options.network, num_classes=classes)[0]

        starts: list[object] = [build] * len(seeds)
        given = start_of(self.options, line)
        if given is not None:
            model = oods.create_model(self.options.network, num_classes=classes, weights=given)[0]
            starts = [model] * len(seeds)
        elif line.after is not None:
            before = lines_of(self.known)[line.after]
            starts = [each.model for each in self.train(before, self.recipe(before), seeds, bench)]
        begun = _clock()
        trained = train_seeds(
            starts,
            recipe,
            seeds,
            bench.id_train,
            bench.transform,
            val=bench.id_val,
            ood_train=bench.ood_train,
            folders=[self.trainings / f"{line.method}-{seed}" for seed in seeds],
            device=self.options.device,
            progress=self.watch,
        )
        print(f"{self.known} {line.method} {list(seeds)}: {_clock() - begun:.0f} s to train", flush=True)
        return trained

    def score(self, line: Line, seed: int, trained: Trained, bench: oods.Benchmark) -> None:
        begun, method, given = _clock(), line.method, start_of(self.options, line)
        frame, seconds = self.scored(trained, bench)
        found = summary(frame, method, seed).assign(start=given.stem if given else "")
        for name, rows in (("rows", found), ("seconds", seconds)):
            (self.folder / name).mkdir(exist_ok=True)
            write_text(self.folder / name / f"{method}-{seed}.csv", rows.to_csv(index=False))
        if self.options.stored is not None:
            stored = {"msp", *trained.recipe.detectors, *self.options.stored.split(",")}
            scores = [name for name in frame.columns if frame[name].dtype == "float32"]
            frame = frame.drop(columns=[name for name in scores if name not in stored])
        partial = self.path(method, seed).with_suffix(".tmp")
        frame.to_parquet(partial, compression="zstd", index=False)
        if (method, seed) in KEPT_WEIGHTS:
            write_pieces(trained.model.state_dict(), self.folder / "weights", f"{method}-{seed}")
        partial.replace(self.path(method, seed))
        best = 100 * max(epoch.val_accuracy or 0 for epoch in trained.history)
        slow = ", ".join(f"{each.detector} {each.seconds:.1f}" for each in seconds.nlargest(3, "seconds").itertuples())
        words = f"{_clock() - begun:.0f} s to score (slowest: {slow}), validation accuracy {best:.2f} %"
        print(f"{self.known} {method} {seed}: {words}", flush=True)

    def scored(self, trained: Trained, bench: oods.Benchmark) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Scores of all detectors that apply, of the last epoch those of MSP and of the method's own; their seconds."""
        frames, seconds = [], []
        own = dict.fromkeys(["msp", *trained.recipe.detectors])
        for kept, model in networks(trained):
            classifier = Classifier(model, bench.transform, device=self.options.device, name="ResNet-18")
            names = own if kept == "last" else dict.fromkeys([*own, *self.options.detectors])
            asked = [create_detector(name) for name in names]
            if self.options.cheap:
                asked = [each for each in asked if each.cost is not Cost.PASSES or each.name in own]
            extraction = InMemory(classifier, self.streams)
            usable, _ = applicable(asked, extraction, bench)
            table = score_benchmark(extraction, bench, usable, track="default")
            frames.append(table.frame.astype(dict.fromkeys(table.detectors, "float32")).assign(kept=kept))
            seconds.append([kept, "passes", extraction.seconds])
            for name, record in table.context.detectors.items():
                scoring = 1e-6 * (record.microseconds_per_image or 0.0) * len(table.frame)
                seconds.append([kept, name, (record.fit_seconds or 0.0) + scoring])
        return pd.concat(frames, ignore_index=True), pd.DataFrame(seconds, columns=["kept", "detector", "seconds"])


def start_of(options: argparse.Namespace, line: Line) -> Path | None:
    """The file of weights that a line goes on from, where one was given."""
    files = dict(each.split("=", 1) for each in options.start)
    return Path(files[line.after]) if line.after in files else None


def earlier(path: Path | None) -> set[tuple[str, int]]:
    """Methods and seeds of a table that was made before."""
    if path is None:
        return set()
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return {(str(method), int(seed)) for method, seed in table[["method", "seed"]].drop_duplicates().to_numpy()}


def chosen_lines(options: argparse.Namespace) -> list[Line]:
    """The lines that are asked for, in their order."""
    lines = [line for line in LINES if options.id in ("all", line.known)]
    if options.methods:
        names = options.methods.split(",")
        unknown = sorted(set(names) - {line.method for line in lines})
        if unknown:
            raise SystemExit(f"unknown method {unknown[0]!r}; known: {', '.join(line.method for line in lines)}")
        lines = sorted((line for line in lines if line.method in names), key=lambda line: names.index(line.method))
    return lines


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--trainings", type=Path, help="folder of trainings under way; by default in the output folder")
    parser.add_argument("--id", choices=["all", "cifar10", "cifar100"], default="all")
    parser.add_argument("--methods", help=f"separated by commas; CE,{TF32} is the comparison of precisions")
    parser.add_argument("--seeds", help="by default those of the line")
    parser.add_argument("--earlier", type=Path, help="table of CIFAR-10 networks that count as done")
    parser.add_argument("--start", action="append", default=[], metavar="METHOD=FILE", help="weights to go on from")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--precision", default="bf16-mixed")
    parser.add_argument("--network", default="resnet18_32")
    parser.add_argument("--detectors", default=",".join(DETECTORS))
    parser.add_argument("--stored", help="detectors whose scores are written beside MSP's and the own; by default all")
    parser.add_argument("--images", type=int, help="images of each set, for a try")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument(
        "--begin", action="store_true", help="also begin what will not end in time: the next call ends it"
    )
    parser.add_argument("--cheap", action="store_true", help="leave out detectors that take passes of their own")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    options.trainings = options.trainings or options.output / "trainings"
    options.detectors = options.detectors.split(",")
    for each in options.start:
        method, _, file = each.partition("=")
        if method not in {line.after for line in LINES} or not Path(file).is_file():
            raise SystemExit(f"--start {each}: give METHOD=FILE, a method that others go on from and its weights")
    return options


def main(arguments: Sequence[str] | None = None, sets: Callable[..., oods.Benchmark] = open_sets) -> list[str]:
    """Work until the lines or the minutes are over; the networks that are not yet run.

    Parameters
    ----------
    sets : opens the benchmark of an ID set; see ``open_sets``.
    """
    options = parse(arguments)
    watch, lines, opened = Watch(options.minutes), chosen_lines(options), {}
    done = {("cifar10", *each) for each in earlier(options.earlier)}
    missing: list[str] = []
    stopped = False
    for line in lines:
        seeds = [int(seed) for seed in options.seeds.split(",")] if options.seeds else line.seeds
        scores = options.output / line.known / "scores"
        todo = [
            seed
            for seed in seeds
            if (line.known, line.method, seed) not in done and not (scores / f"{line.method}-{seed}.parquet").exists()
        ]
        if todo and not stopped:
            if line.known not in opened:
                opened[line.known] = Work(line.known, options, watch, sets)
            try:
                stopped = not opened[line.known].make(line, todo)
            except TimeUpError:
                stopped = True
            except Exception:  # one method's fault must not cost the others their time
                print(f"{line.known} {line.method} {todo}: failed", flush=True)
                traceback.print_exc()
                if torch.cuda.is_available():
                    torch.cuda.synchronize()  # raises where the device itself is lost to this process
            todo = [seed for seed in todo if not (scores / f"{line.method}-{seed}.parquet").exists()]
        missing += [f"{line.known} {line.method} {seed}" for seed in todo]
    for known in {line.known for line in lines}:
        write_table(options.output / known)
    if stopped:
        print("the minutes are over; call again to go on")
    print(f"not yet run: {', '.join(missing) or 'nothing'}")
    return missing


if __name__ == "__main__":
    main()
