"""Do metrics on the CPU have the digits of version 0.1, and where a reduction is added per shard, how far are they?

    git worktree add --detach BEFORE 3cadf47
    python benchmarks/metric_digits.py BEFORE [--data FOLDER] [--train 20000 4000] [--test 3000] [--detectors LIST]

Both checkouts evaluate one network on real images (CIFAR-10 against CIFAR-100 and MNIST) with one thread and empty
caches, once for each size of the training set: more than 16,384 images, so that reductions have more than one shard,
and fewer, so that they have one. The network is a ``small_cnn``
with random filters and a head of class means: digits need no training. Scores, metrics and ends of
intervals are compared to the bit; what differs is listed with its size as a share of the spread (of scores: their
standard deviation). docs/results/metric-digits.md holds what came out.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).parents[1]
DETECTORS = "msp,ebo,gen,knn,mds,rmds,vim,residual,neco,dice,fdbd,nci,react,ash,she,nnguide"
KEY = ("detector", "protocol", "group", "set", "metric")
BAR = 1e-6
"""Of the spread: the most that a reduction per shard may move a score."""

INTERVALS = 1e-12

REASONS = {
    "vim": "the lengths of training residuals, of which alpha takes the mean, are computed in float32",
}
"""Detectors of which more than the order of a sum is another."""

CHANGED = {"nnguide": "its number of neighbours was 100 and is now a fifth of the smallest class in its bank"}
"""Detectors whose defaults are others since 0.1, and how: their scores say nothing of digits."""

MANIFEST = """
name: digits
version: "1"
transform: {size: 32}
sets:
  id_train: {source: npz, path: id_train.npz}
  id_test: {source: npz, path: id_test.npz}
  near: {cifar100: {source: npz, path: cifar100.npz}}
  far: {mnist: {source: npz, path: mnist.npz}}
"""


def prepare(asked: argparse.Namespace, home: Path, train: int) -> None:
    """The benchmark's files and the network's weights, with so many training images."""
    import torch
    from safetensors.torch import save_file

    sys.path.insert(0, str(HERE))
    from tests.realdata.packs import pack

    from oodscope.data.images.decoding import as_rgb
    from oodscope.data.preprocess import Preprocess
    from oodscope.models.small.cnn import SmallCNN

    packs = {"id_train": "cifar10_train", "id_test": "cifar10_test", "cifar100": "cifar100_test", "mnist": "mnist_test"}
    for name, file in packs.items():
        place = next(folder for folder in asked.data if (folder / f"{file}.npz").exists())
        images = pack(asked.data[0], file, place)
        count = train if name == "id_train" else asked.test
        pixels = np.stack([as_rgb(image) for image in images.images(range(count))])
        np.savez(home / f"{name}.npz", images=pixels, labels=np.asarray(images.labels[:count]))
    (home / "bench.yaml").write_text(MANIFEST, encoding="utf-8")
    with np.load(home / "id_train.npz") as content:
        batch = Preprocess(size=32)(list(content["images"][:2000]))
        labels = torch.from_numpy(content["labels"][:2000].astype(np.int64))
    torch.manual_seed(0)
    model = SmallCNN(10)
    with torch.no_grad():
        model.train()(batch)
        features = model.pool(model.eval().body(batch)).flatten(1)
        centre = features.mean(dim=0)
        apart = torch.stack([features[labels == each].mean(dim=0) for each in range(10)]) - centre
        weight = 4 * apart / apart.norm(dim=1, keepdim=True).square()
        model.fc.weight.copy_(weight)
        model.fc.bias.copy_(-weight @ centre)
    save_file(model.state_dict(), home / "weights.safetensors")


def evaluate(checkout: Path, asked: argparse.Namespace, home: Path, name: str) -> Path:
    """The run folder of one checkout."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "OODSCOPE_CACHE": str(home / name / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    command = (
        f"-m oodscope evaluate --model small_cnn --weights {home / 'weights.safetensors'} --device cpu "
        f"--benchmark {home / 'bench.yaml'} --detectors {asked.detectors} --output {home / name / 'run'}"
    )
    subprocess.run([sys.executable, *command.split()], env=environment, check=True, stdout=subprocess.DEVNULL)
    return next((home / name).rglob("scores.parquet")).parent


def scores_apart(before: Path, now: Path) -> dict[str, float]:
    """For each detector whose scores differ, the largest difference as a share of their spread."""
    a, b = (pq.read_table(folder / "scores.parquet") for folder in (before, now))
    assert a["sample_id"].equals(b["sample_id"]), "the same images in the same order"
    apart = {}
    for name in a.schema.names:
        if a.schema.field(name).type in ("float", "double") and name in b.schema.names:
            one, other = a[name].to_numpy(), b[name].to_numpy()
            difference = float(np.nanmax(np.abs(one - other)))
            apart[name] = difference / float(np.nanstd(one)) if difference else 0.0
    return apart


def rows_of(folder: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(row[key] for key in KEY): row for row in pq.read_table(folder / "measurements.parquet").to_pylist()}


def compare(before: Path, now: Path) -> dict[str, Any]:
    """What differs, by detector."""
    a, b = rows_of(before), rows_of(now)
    scores = scores_apart(before, now)
    shared = [key for key in a if key in b]
    values = [(key, abs(a[key]["value"] - b[key]["value"])) for key in shared]
    ends: dict[str, list[float]] = {}
    replaced: dict[tuple[str, str, str], tuple[tuple[str, ...], str]] = {}
    for key in shared:
        one, other = a[key], b[key]
        if one["low"] is None or other["low"] is None:
            continue
        if one["interval"] == other["interval"] and scores.get(key[0]):
            continue  # of other scores there are other intervals
        if one["interval"] == other["interval"]:
            far = max(abs(one["low"] - other["low"]), abs(one["high"] - other["high"]))
            ends.setdefault(one["interval"], []).append(far)
        else:
            kind = (key[4], one["interval"], other["interval"])
            shown = f"[{one['low']:.5f}, {one['high']:.5f}] / [{other['low']:.5f}, {other['high']:.5f}]"
            replaced.setdefault(kind, (key, shown))
    return {
        "scores": scores,
        "rows": len(shared),
        "only_one": len(set(a) ^ set(b)),
        "values": values,
        "ends": ends,
        "replaced": replaced,
    }


def counts(found: dict[str, Any]) -> tuple[dict[str, float], dict[str, float], list[tuple[tuple[str, ...], float]]]:
    """Of detectors whose defaults are those of 0.1: shares of the spread, those not 0, and distances of metrics."""
    scores = {name: share for name, share in found["scores"].items() if name not in CHANGED}
    values = [(key, far) for key, far in found["values"] if key[0] not in CHANGED]
    return scores, {name: share for name, share in scores.items() if share}, values


def in_one_shard(found: dict[str, Any], train: int) -> str:
    """What differs where the training set is a single shard, in one sentence."""
    scores, moved, values = counts(found)
    same = sum(not far for _, far in values)
    ends = [far for each in found["ends"].values() for far in each]
    worst = max(moved, key=lambda name: moved[name], default="")
    others = f", the others within {moved[worst]:.1e} of the spread ({worst})" if worst else ""
    every = "nothing differs" if same == len(values) and not moved else "not everything is equal"
    return (
        f"Where the training set is one shard ({train:,} images), {every}: {len(scores) - len(moved)} of {len(scores)} "
        f"detectors have the scores of 0.1 to the bit{others}; {same} of {len(values)} metric values are equal to the "
        f"bit, and ends of {len(ends)} intervals differ by at most {max(ends, default=0.0):.1e}."
    )


def page(found: dict[str, Any], single: dict[str, Any] | None, asked: argparse.Namespace) -> str:
    """The results page, every sentence from the numbers."""
    scores, moved, values = counts(found)
    changed = [(key, far) for key, far in values if far]
    worst = max(moved.values(), default=0.0)
    verdict = "within" if worst <= BAR else "ABOVE"
    ends = max((max(far) for far in found["ends"].values()), default=0.0)
    same = len(values) - len(changed)
    furthest = max(moved, key=lambda name: moved[name], default="")
    answer = (
        f"Metric values: {same} of {len(values)} are those of 0.1 to the bit. Scores: "
        f"{len(scores) - len(moved)} of {len(scores)} detectors have those of 0.1 to the bit, the others differ by at "
        f"most {worst:.1e} of the spread{f' ({furthest})' if furthest else ''}, {verdict} what is allowed; ends of "
        f"intervals of one kind differ by at most {ends:.1e}, {'within' if ends <= INTERVALS else 'ABOVE'} it."
    )
    lines = [
        "# Metrics on the CPU against version 0.1",
        "",
        "**Question.** Are metric values on the CPU those of 0.1 to the bit, except where a reduction is now added per "
        f"shard? How far are those (at most {BAR:g} of the spread), and bootstrap intervals (at most {INTERVALS:g})?",
        "",
        f"**Command.** `python benchmarks/metric_digits.py BEFORE --train {' '.join(map(str, asked.train))} "
        f"--test {asked.test}`",
        "",
        f"**Answer.** {answer}",
        "",
        f"**What.** A small network with random filters and a head of class means, on {asked.train[0]:,} training "
        f"images of CIFAR-10 (more than one shard of 16,384) and {asked.test:,} each of CIFAR-10, CIFAR-100 and MNIST.",
        "",
        f"**Machine.** {platform.machine()}, one thread, Python {platform.python_version()}. "
        f"**Date.** {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"{len(scores) - len(moved)} of {len(scores)} detectors have the scores of 0.1 to the bit; "
        f"{same} of {len(values)} metric values are equal to the bit "
        f"({found['only_one']} rows stand in only one of the two).",
        "",
    ]
    if moved:
        lines += ["| detector | largest difference of a score, share of the spread | metric values that differ | by |"]
        lines += ["|---|---|---|---|"]
        for name, share in moved.items():
            own = [far for key, far in changed if key[0] == name]
            lines.append(f"| {name} | {share:.1e} | {len(own)} | {max(own, default=0.0):.1e} |")
        lines += ["", f"The largest difference is {worst:.1e} of the spread, {verdict} what is allowed.", ""]
        lines += [f"Not the order of a sum alone: {name}, {why}." for name, why in REASONS.items() if name in moved]
        lines += [""]
    lines += [f"Not compared: {name}, {why}." for name, why in CHANGED.items() if name in found["scores"]] + [""]
    lines += ["Intervals of detectors whose scores are equal to the bit:", ""]
    lines += ["| interval | how many | largest difference of an end |", "|---|---|---|"]
    lines += [f"| {kind} | {len(far):,} | {max(far):.1e} |" for kind, far in found["ends"].items()]
    if found["replaced"]:
        lines += ["", "Where another kind of interval stands now, each once, before / now:", ""]
        lines += ["| metric | before | now | example | interval |", "|---|---|---|---|---|"]
        for (metric, one, other), (key, shown) in found["replaced"].items():
            lines.append(f"| {metric} | {one} | {other} | {key[0]}, {key[3]} | {shown} |")
    else:
        lines += ["", "Each interval is of the kind that 0.1 gave: no analytic one stands where a bootstrap one stood."]
    if single is not None:
        lines += ["", in_one_shard(single, asked.train[1])]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of version 0.1")
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        default=[Path("../shared/data")],
        help="where packs and their reader lie, others",
    )
    parser.add_argument(
        "--train", type=int, nargs="+", default=[20_000, 4_000], help="training images: several shards, then one"
    )
    parser.add_argument("--test", type=int, default=3_000)
    parser.add_argument("--detectors", default=DETECTORS)
    parser.add_argument("--results", type=Path, default=HERE / "docs" / "results")
    asked = parser.parse_args()
    compared = []
    for train in asked.train[:2]:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            prepare(asked, home, train)
            checkouts = {"before": asked.before.resolve(), "now": HERE}
            compared.append(compare(*(evaluate(place, asked, home, name) for name, place in checkouts.items())))
    written = page(compared[0], compared[1] if len(compared) > 1 else None, asked)
    (asked.results / "metric-digits.md").write_text(written, encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
