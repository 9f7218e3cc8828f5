"""Does the clean value of an attack stand for the whole set, when the set is sorted by class?

    OODSCOPE_DATA=path/to/packs python benchmarks/attack_sources.py [--write docs/results/attack-sources.md]

25 classes of CIFAR-100's test images, sorted by class as folders are, scored by MSP, energy and KNN of the ResNet-18 of
CIFAR-10. 200 source images are drawn 200 times, and the interval of the clean AUROC is compared with the value of the
whole set; beside it, the first images of the set.
"""

import argparse
import os
import platform
from datetime import date
from pathlib import Path

import numpy as np
import torch

import oodscope as oods
from oodscope.metrics.interval import wilson_interval
from oodscope.metrics.ranking.minrank import outlier_ranks, source_interval
from oodscope.runs.attack.sources import source_order
from oodscope.runs.evaluation.scoring import fit_scorers
from openood_cifar import TRANSFORM, drawn, open_classifier, open_training, pack

CLASSES, CHAINS, DRAWS, BAR = 25, 200, 200, 0.91
DETECTORS = ("msp", "ebo", "knn")


def scores(folder: Path, train: int, test: int) -> tuple[oods.ImageSet, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """The sorted set, and what each detector says of ID test images and of it."""
    whole = pack(folder, "cifar100_test")
    rows = np.concatenate([np.flatnonzero(whole.labels == label) for label in range(CLASSES)])
    outliers, splits = whole.take(rows, "cifar100, 25 classes"), np.load(folder / "openood_v15_splits.npz")
    known = pack(folder, "cifar10_test")
    bench = oods.Benchmark(
        name="cifar10",
        version="1",
        transform=TRANSFORM["cifar10"],
        id_train=drawn(open_training(folder, "cifar10"), train),
        id_val=drawn(known.take(splits["cifar10_val_id"], "id_val"), 200),
        id_test=drawn(known.take(splits["cifar10_test_id"], "id_test"), test),
    )
    scorers = fit_scorers(open_classifier(folder, "cifar10"), bench, DETECTORS)
    return outliers, {name: (each.score(bench.id_test), each.score(outliers)) for name, each in scorers.items()}


def page(outliers: oods.ImageSet, found: dict[str, tuple[np.ndarray, np.ndarray]]) -> str:
    """The page; its answer is made from the counts."""
    rows, verdicts = [], []
    for name, (id_scores, ood_scores) in found.items():
        whole = outlier_ranks(id_scores, ood_scores).auroc
        hits = 0
        for seed in range(DRAWS):
            interval = source_interval(outlier_ranks(id_scores, ood_scores[source_order(outliers, seed=seed)[:CHAINS]]))
            hits += interval.low <= whole <= interval.high
        first = outlier_ranks(id_scores, ood_scores[:CHAINS])
        ends, share = source_interval(first), wilson_interval(hits, DRAWS)
        inside = "yes" if ends.low <= whole <= ends.high else "no"
        rows.append(
            f"| {name} | {100 * whole:.1f} | {hits} of {DRAWS} ({100 * hits / DRAWS:.1f} % "
            f"[{100 * share.low:.1f}–{100 * share.high:.1f}]) | {100 * first.auroc:.1f} "
            f"[{100 * ends.low:.1f}–{100 * ends.high:.1f}] | {inside} |"
        )
        verdicts.append(hits / DRAWS >= BAR)
    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{platform.machine()} processor"
    holds = "holds" if all(verdicts) else "does not hold"
    return (
        "\n".join(
            [
                "# Which images an attack starts from",
                "",
                "**Question.** Folders are sorted by class. Do 200 drawn source images stand for the whole set?",
                "",
                f"**Answer.** Intervals cover the whole set in at least {BAR:.0%} of {DRAWS} draws: {holds} "
                f"for {sum(verdicts)} of {len(verdicts)} detectors (25 classes of CIFAR-100, one network).",
                "",
                "**Command.** `python benchmarks/attack_sources.py --write docs/results/attack-sources.md`",
                "",
                f"**Machine.** {machine}. **Date.** {date.today()}. {len(outliers):,} outliers in "
                f"{CLASSES} classes, {len(next(iter(found.values()))[0]):,} ID test images, {CHAINS} chains.",
                "",
                "| detector | AUROC of the whole set | draws whose interval covers it | first 200 images | covers |",
                "| --- | ---: | ---: | ---: | --- |",
                *rows,
                "",
                "Intervals are over source images, the ID test images held as they are.",
            ]
        )
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--test", type=int, default=1000)
    options = parser.parse_args()
    text = page(*scores(Path(os.environ["OODSCOPE_DATA"]).resolve(), options.train, options.test))
    print(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
