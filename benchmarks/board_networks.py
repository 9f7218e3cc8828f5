"""Which of our own rows may stand on the leaderboard as computed again? Entries, receipts and tiers of CIFAR networks.

    OODSCOPE_DATA=path/to/packs python benchmarks/board_networks.py OUT --trainings FOLDER [--minutes 4]
    python benchmarks/board_networks.py OUT --write

Cross-entropy networks of the seeds 0, 1, 2 (those that ``training_table.py`` left in FOLDER; a missing one is trained
by its recipe) are judged on OpenOOD's near sets; ``--given`` takes the one trained network beside the packs instead, a
single run. Every detector of every network is handed in as an entry, the network's activations are published, and the
detector is fitted and run again on them in three orders by another process: ``leaderboard submit``, ``publish`` and
``rerun``. OUT/BENCHMARK.jsonl holds an entry, its receipt and its numbers in each line, as far as the board then
believes them. Called again it goes on where it stopped. ``--write`` takes the lines into the package, where they stand
beside the published tables; scores and activations stay in OUT.
"""

import argparse
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev

import torch

import oodscope as oods
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import OodscopeError
from oodscope.base.files import write_text
from oodscope.leaderboard.published.own import PREFIX, identity, own_folder
from oodscope.leaderboard.records.keeping import Receipt, read_receipt, write_receipt
from oodscope.leaderboard.records.standing import Standing
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.leaderboard.verify.about import About
from oodscope.leaderboard.verify.publishing import pin_lists, publish_activations
from oodscope.leaderboard.verify.rerunning import rerun
from oodscope.leaderboard.verify.submitting import submit
from oodscope.leaderboard.verify.verifying import verify_all
from oodscope.metrics.metric import MEAN
from openood_cifar import open_classifier
from training_rows import lines_of
from training_sets import open_sets
from training_table import TimeUpError, Watch, Work
from training_table import parse as parse_training

BENCHMARKS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
VERSION = "openood-1.5"
SEEDS = (0, 1, 2)
DETECTORS = (
    *("msp", "temp_scaling", "mls", "ebo", "gen", "entropy", "knn", "rmds", "mds", "vim"),
    *("react", "she", "fdbd", "relation", "scale", "dice"),
)
"""Those that read logits and features alone, which is what published activations hold, and fit in seconds."""

METRICS = ("auroc", "fpr95_id_positive", "accuracy")
"""The numbers that the package keeps of an entry."""

KEPT = (
    *("run", "benchmark", "benchmark_version", "model", "detector", "protocol", "set", "group", "metric", "value"),
    *("low", "high", "interval", "level", "class_value", "class_low", "class_high", "n_id", "n_ood"),
)
"""What it keeps of each number."""


def work_of(known: str, options: argparse.Namespace, watch: Watch) -> Work:
    """The sets of a benchmark and the trainings of its networks."""
    asked = ["--output", str(options.out / "trained"), "--trainings", str(options.trainings), "--id", known]
    asked += ["--epochs", str(options.epochs), "--network", options.network, "--device", options.device]
    asked += ["--precision", options.precision] + (["--images", str(options.images)] if options.images else [])
    return Work(known, parse_training(asked), watch, open_sets)


def networks(work: Work, options: argparse.Namespace) -> Iterator[tuple[int, oods.Classifier]]:
    """The networks of a benchmark and their seeds, trained where they are not yet."""
    name = f"oodscope {BENCHMARKS[work.known]} ResNet-18 cross-entropy"
    if options.given:
        given = open_classifier(Path(os.environ["OODSCOPE_DATA"]), work.known, options.device)
        yield 0, oods.Classifier(given.model, work.bench.transform, device=options.device, name=name)
        return
    line = lines_of(work.known)["CE"]
    for seed, trained in zip(SEEDS, work.train(line, work.recipe(line), SEEDS, work.bench)):
        yield seed, oods.Classifier(trained.model, work.bench.transform, device=options.device, name=name)


def near_part(work: Work, images: int | None) -> oods.Benchmark:
    """The near half of OpenOOD's benchmark: its images, lists and order; our far sets are not the published ones."""
    version = f"{VERSION}-first-{images}" if images else VERSION
    return replace(work.bench, name=work.known, version=version, far=(), csid=(), ood_val=None)


def hand_in(work: Work, seed: int, classifier: oods.Classifier, options: argparse.Namespace) -> list[Path]:
    """Judge one network and write an entry for each detector that is not handed in yet."""
    known, board = work.known, options.out / "board"
    run = options.out / "runs" / f"{known}-{seed}"
    bench = near_part(work, options.images)
    store = ActivationStore(options.out / "store")
    if not run.exists():
        recipe = f"cross-entropy, {options.epochs} epochs"
        oods.evaluate(classifier, bench, options.detectors, "standard", store=store, recipe=recipe).save(run)
    if not (options.out / "activations" / f"{known}-{seed}").exists():
        publish_activations(classifier, bench, options.out / "activations" / f"{known}-{seed}", store=store)
    board.mkdir(parents=True, exist_ok=True)
    pin_lists(board, run)
    return [entry(known, seed, detector, run, board) for detector in options.detectors]


def entry(known: str, seed: int, detector: str, run: Path, board: Path) -> Path:
    name = re.sub(r"[^a-z0-9]+", "", detector)
    folder = board / f"{known}-{name}-{seed}"
    if folder.exists():
        return folder
    method, paper = identity(detector)
    about = About(paper=paper, training_seed=seed, trained_on=(f"{BENCHMARKS[known]} training images",))
    group = f"{known}-{name}"
    return submit(
        run, board, id=folder.name, method=method, track="post-hoc", detector=detector, group=group, about=about
    )


def again(folder: Path, activations: Path) -> Receipt | str:
    """The receipt of one entry, or why there is none; in a process of its own, on one processor."""
    torch.set_num_threads(2)
    try:
        return rerun(folder, activations)
    except OodscopeError as error:
        return f"{folder.name}: {error}"


def rerun_all(folders: Sequence[Path], activations: Path, workers: int) -> None:
    """Run the detectors of entries without a receipt again, several at a time."""
    todo = [folder for folder in folders if read_receipt(folder.parent, folder.name) is None]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for found in pool.map(again, todo, [activations] * len(todo)):
            if isinstance(found, str):
                print(found, flush=True)
                continue
            write_receipt(todo[0].parent, found)
            ways = ", ".join(f"{way} {getattr(found, way):.0e}" for way in ("in_order", "shuffled", "one_by_one"))
            print(f"{found.entry}: {found.verdict} ({ways}) {found.reason}", flush=True)


def write_lines(board: Path, out: Path) -> None:
    """What the board believes of every entry, a line for each, by benchmark."""
    standings = [each for each in verify_all(board).standings if each.ranked]
    for known in BENCHMARKS:
        own = [each for each in standings if each.entry.benchmark.name == known]
        if own:
            write_text(out / f"{known}.jsonl", "".join(f"{line(each, board)}\n" for each in own))
            print("\n".join(table(own)), flush=True)


def line(standing: Standing, board: Path) -> str:
    """An entry as the package keeps it: under a name of its own, without what its scores say again."""
    receipt = read_receipt(board, standing.entry.id)
    assert receipt is not None, "a ranked entry has a receipt"
    entry = standing.entry
    kept = entry.model_copy(
        update={
            "id": f"{PREFIX}-{entry.id}",
            "claims": (),
            "thresholds": (),
            "model": entry.model.model_copy(update={"architecture": "ResNet-18"}),  # recorded is the class, ResNet
            "execution": entry.execution.model_copy(update={"hardware": NOT_KNOWN}),
        }
    )
    rows = [asdict(row) for row in standing.measurements if row.metric in METRICS]
    content = {
        "tier": standing.tier,
        "entry": kept.model_dump(mode="json", exclude_defaults=True),
        "receipt": receipt.model_dump(mode="json"),
        "measurements": [{name: row[name] for name in KEPT if row[name] not in (None, "")} for row in rows],
    }
    return json.dumps(content, ensure_ascii=False, sort_keys=True)


def table(standings: Sequence[Standing]) -> Iterator[str]:
    """Mean near-OOD AUROC over the networks of each method, highest first."""
    groups: dict[str, list[float]] = {}
    for each in standings:
        rows = each.measurements.filter(protocol="standard", metric="auroc", group="near", set=MEAN)
        groups.setdefault(each.entry.method, []).append(100 * rows[0].value)
    for method, values in sorted(groups.items(), key=lambda item: -fmean(item[1])):
        spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
        yield f"{standings[0].entry.benchmark.name} {method}: {fmean(values):.2f}{spread} ({len(values)} networks)"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--trainings", type=Path, help="as of training_table.py; by default in OUT")
    parser.add_argument("--benchmarks", nargs="*", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--detectors", nargs="*", default=list(DETECTORS))
    parser.add_argument("--given", action="store_true", help="only the trained network beside the packs, as seed 0")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no network is begun after them")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--network", default="resnet18_32")
    parser.add_argument("--precision", default="bf16-mixed")
    parser.add_argument("--images", type=int, help="images of each set, for a try")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--write", action="store_true", help="take the lines of OUT into the package")
    options = parser.parse_args()
    options.trainings = options.trainings or options.out / "trainings"
    return options


def main() -> None:
    """Judge, hand in and run again until the networks or the minutes are over."""
    options = parse()
    if options.write:
        for path in sorted(options.out.glob("*.jsonl")):
            write_text(own_folder() / path.name, path.read_text(encoding="utf-8"))
            print(f"{path.name}: {len(path.read_text(encoding='utf-8').splitlines())} entries")
        return
    watch, missing = Watch(options.minutes), []
    for known in options.benchmarks:
        work = work_of(known, options, watch)
        try:
            found = list(networks(work, options))
        except TimeUpError:
            missing += [f"{known} {seed}" for seed in SEEDS]
            continue
        for seed, classifier in found:
            if time.monotonic() > watch.end:
                missing.append(f"{known} {seed}")
                continue
            begun = time.monotonic()
            folders = hand_in(work, seed, classifier, options)
            rerun_all(folders, options.out / "activations" / f"{known}-{seed}", options.workers)
            print(f"{known} {seed}: {len(folders)} entries in {time.monotonic() - begun:.0f} s", flush=True)
    write_lines(options.out / "board", options.out)
    print(f"not yet run: {', '.join(missing) or 'nothing'}")


if __name__ == "__main__":
    main()
