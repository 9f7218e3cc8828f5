"""Do the detectors of the registry come out again from published activations, in any order and one by one?

    python benchmarks/leaderboard_reruns.py OUT [--images-per-class 100] [--epochs 4]

The embedded benchmark and the demo's network: every detector that applies is judged once and handed in as an entry;
the network's activations are published; every entry is verified and its detector run again on them. The table that is
printed is that of ``docs/results/leaderboard-reruns.md``.
"""

import argparse
import re
from pathlib import Path

import oodscope as oods
from oodscope.base.errors import OodscopeError
from oodscope.execution.progress import SILENT
from oodscope.jobs.job import read_job
from oodscope.jobs.run import find_job
from oodscope.leaderboard.records.keeping import write_receipt
from oodscope.leaderboard.verify.publishing import publish_activations
from oodscope.leaderboard.verify.rerunning import rerun
from oodscope.leaderboard.verify.submitting import submit
from oodscope.leaderboard.verify.verifying import verify


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--images-per-class", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    job = read_job(find_job("demo")).model_copy(update={"images_per_class": options.images_per_class})
    assert job.model.train is not None, "the demo trains its network"
    recipe = job.model.train.model_copy(update={"epochs": options.epochs})
    model = job.model.model_copy(update={"train": recipe})
    job = job.model_copy(update={"model": model, "device": "cpu"})
    bench = job.open_benchmark(SILENT)
    classifier, name, _ = job.build(bench, SILENT)

    result = oods.evaluate(classifier, bench, "all", "standard", recipe=name)
    run = result.save(options.out / "run")
    print(f"judged: {len(result.scores.detectors)} detectors")
    published = publish_activations(classifier, bench, options.out / "activations")
    size = sum(path.stat().st_size for path in published.iterdir()) / 2**20
    print(f"published: {size:.1f} MiB\n")

    print("| detector | entry, KiB | in order | shuffled | one by one | verdict |")
    print("|---|---|---|---|---|---|")
    left_out = {}
    for detector in result.scores.detectors:
        slug = re.sub(r"[^a-z0-9_]+", "-", detector.lower()).strip("-")
        folder = submit(run, options.out / "board", id=slug, method=detector, detector=detector)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**10
        verify(folder)
        try:
            receipt = rerun(folder, published)
        except OodscopeError as error:
            left_out[detector] = str(error)
            continue
        write_receipt(folder.parent, receipt)
        ways = (receipt.in_order, receipt.shuffled, receipt.one_by_one)
        shown = " | ".join(f"{value:.0e}" if value else "0" for value in ways)
        print(f"| {detector} | {size:.0f} | {shown} | {receipt.verdict} |", flush=True)
    print()
    for detector, reason in left_out.items():
        print(f"- {detector}: {reason}")


if __name__ == "__main__":
    main()
