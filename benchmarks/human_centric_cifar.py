"""Human-centric evaluation of nine detectors on CIFAR: the paper's threshold beside one at matched false rejection.

    OODSCOPE_DATA=path/to/packs python benchmarks/human_centric_cifar.py OUTPUT [--device cuda]
    python benchmarks/human_centric_cifar.py OUTPUT --show

The networks are ResNet-18s trained on CIFAR-10 (5 % errors) and CIFAR-100 (22 % errors). Detectors are fitted on all
training images that the packs hold (50,000 and 25,000); thresholds come from these and from OpenOOD's validation split
(1,000 images).
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import oodscope as oods
from oodscope.metrics.rejection.rejection import Rejection
from oodscope.metrics.rejection.threshold import ThresholdSample
from oodscope.metrics.resampling.bootstrap import percentile_interval
from oodscope.metrics.resampling.draws import resamples
from oodscope.protocols.human_centric.protocol import HumanCentric
from oodscope.protocols.human_centric.rows import selective_estimates
from oodscope.protocols.human_centric.sets import labelled_sets, rows_of
from oodscope.report.paper.human import conventional_twice
from oodscope.report.paper.style import save_figure
from oodscope.results.scoretable import ScoreTable
from openood_cifar import open_classifier
from shifted_cifar import open_shifted

DETECTORS = ("msp", "mds", "klm", "ebo", "react", "gradnorm", "knn", "vim", "dice")
NETWORKS = ("cifar100", "cifar10")
REPLICATES = 200


def judge(folder: Path, network: str, split: bool, device: str) -> oods.Result:
    bench, clf = open_shifted(folder, network), open_classifier(folder, network, device)
    if split:  # only the rejection of id_test is shown
        bench = replace(bench, near=(), far=(), csid=())
    options = HumanCentric(threshold_split=split)
    return oods.evaluate(clf, bench, DETECTORS, options)


def show(network: str, plain: oods.Result, split: oods.Result) -> None:
    accuracy = {row.set: row for row in plain.measurements.filter(metric="accuracy")}
    told = ", ".join(f"{name} {100 * row.value:.2f}" for name, row in accuracy.items())
    print(f"\n## {network}\n\nAccuracy in percent: {told}.")
    show_false_rejection(plain, split)
    for source in ("train_correct", "val_correct"):
        show_der(plain, source)
    show_selective(plain)
    show_conventional(plain, "svhn_test_10k")
    show_against_msp(plain)


def show_false_rejection(plain: oods.Result, split: oods.Result) -> None:
    print('\nShare of the correctly classified images of id_test that are rejected at "95" (nominal 5), percent.\n')
    print("| detector | train_correct | train_correct, split | train_all | val_correct |\n|---|---|---|---|---|")
    for detector in DETECTORS:
        cells = [
            told(plain, detector, "frr95_train_correct", "id_test"),
            told(split, detector, "frr95_train_correct", "id_test"),
            told(plain, detector, "frr95_train_all", "id_test"),
            told(plain, detector, "frr95_val_correct", "id_test"),
        ]
        print(f"| {detector} | {' | '.join(cells)} |")


def show_der(result: oods.Result, source: str) -> None:
    sets = [row.set for row in result.measurements.filter(detector="msp", metric=f"der95_{source}")]
    names = [name for name in dict.fromkeys(sets) if name != "mean"]
    print(f"\nDER99 ‖ DER95 in percent, threshold {source}; 95 % intervals of DER95 for the means.\n")
    print(f"| detector | {' | '.join(names)} | all | label shift | input shift |\n|---|{'---|' * (len(names) + 3)}")
    for detector in DETECTORS:
        cells = []
        for name in names:
            both = [one(result, detector, f"der{keep}_{source}", name) for keep in (99, 95)]
            cells.append(" ‖ ".join(f"{100 * row.value:.2f}" for row in both))
        for group in ("all", "label_shift", "input_shift"):
            loose = one(result, detector, f"der99_{source}", "mean", group)
            cells.append(f"{100 * loose.value:.2f} ‖ {told(result, detector, f'der95_{source}', 'mean', group)}")
        print(f"| {detector} | {' | '.join(cells)} |")
    for metric in ("der_accept_all", "der_reject_all"):
        cells = [f"{100 * one(result, '', metric, name).value:.2f}" for name in names]
        cells += [
            f"{100 * one(result, '', metric, 'mean', g).value:.2f}" for g in ("all", "label_shift", "input_shift")
        ]
        print(f"| *{metric[4:].replace('_', ' ')}* | {' | '.join(cells)} |")


def show_selective(result: oods.Result) -> None:
    metrics = ("augrc", "aurc", "e_aurc", "auroc_failure", "coverage_at_risk5", "der_oracle")
    print("\nWithout a threshold, percent: means over all sets, and id_test alone.\n")
    print(f"| detector | {' | '.join(metrics)} | augrc, id_test |\n|---|{'---|' * (len(metrics) + 1)}")
    for detector in DETECTORS:
        cells = [told(result, detector, metric, "mean", "all") for metric in metrics]
        print(f"| {detector} | {' | '.join(cells)} | {told(result, detector, 'augrc', 'id_test')} |")


def show_conventional(result: oods.Result, foreign: str) -> None:
    print(f"\nConventional metrics against {foreign}, percent: all of id_test as ID, and its correct images only.\n")
    print("| detector | FPR95, all ID | FPR95, correct ID | AUROC, all ID | AUROC, correct ID |\n|---|---|---|---|---|")
    metrics = ("fpr95_id_positive", "fpr95_id_positive_correct_id", "auroc", "auroc_correct_id")
    for detector in DETECTORS:
        print(f"| {detector} | {' | '.join(told(result, detector, metric, foreign) for metric in metrics)} |")


def show_against_msp(result: oods.Result) -> None:
    """Paired: both detectors meet the same resampled images, thresholds included."""
    augrc = selective_estimates(result.scores, labelled_sets(result.scores), seed=0)
    columns = [(keep, source) for source in ("train_correct", "val_correct") for keep in (0.99, 0.95)]
    values = {c: der_replicates(result.scores, *c) for c in columns}
    print("\nDifference to MSP, mean over all sets, points (negative: better than MSP); paired bootstrap, 95 %.\n")
    heads = [f"DER{100 * keep:.0f} {source}" for keep, source in columns]
    print(f"| detector | {' | '.join(heads)} | AUGRC |\n|---|{'---|' * (len(heads) + 1)}")
    for detector in DETECTORS[1:]:
        cells = [
            difference(points[detector] - points["msp"], draws[detector] - draws["msp"])
            for points, draws in values.values()
        ]
        sets = augrc[detector]["augrc"]
        point = np.mean([sets[name].value - augrc["msp"]["augrc"][name].value for name in sets])
        drawn = np.mean([sets[name].replicates - augrc["msp"]["augrc"][name].replicates for name in sets], axis=0)
        print(f"| {detector} | {' | '.join(cells)} | {difference(float(point), drawn)} |")


def der_replicates(scores: ScoreTable, keep: float, source: str) -> tuple[dict[str, float], dict[str, Any]]:
    """The mean DER over all sets, and the same from resamples that all detectors share."""
    part = rows_of(scores, f"id_{source.split('_')[0]}")
    part = part[scores.correct()[part]]
    sets = labelled_sets(scores)
    points, draws = {}, {detector: np.empty(REPLICATES) for detector in scores.detectors}
    streams = [resamples(len(part), seed=0), *(resamples(len(each), seed=0, ood_set=each.name) for each in sets)]
    columns = {detector: scores.scores(detector) for detector in scores.detectors}
    for detector, column in columns.items():
        gamma = ThresholdSample(column[part]).threshold(keep).value
        points[detector] = float(np.mean([Rejection(column[e.rows], e.correct).at(gamma).der for e in sets]))
    for replicate in range(REPLICATES):
        sample, *drawn = (next(stream) for stream in streams)
        for detector, column in columns.items():
            gamma = ThresholdSample(column[part[sample]]).threshold(keep).value
            mistakes = [
                np.mean((column[each.rows[rows]] >= gamma) == each.correct[rows]) for each, rows in zip(sets, drawn)
            ]
            draws[detector][replicate] = np.mean(mistakes)
    return points, draws


def difference(value: float, replicates: Any) -> str:
    interval = percentile_interval(replicates)
    return f"{100 * value:+.2f} [{100 * interval.low:+.2f}, {100 * interval.high:+.2f}]"


def one(result: oods.Result, detector: str, metric: str, name: str, group: str | None = None) -> Any:
    wanted = {"detector": detector, "metric": metric, "set": name, **({"group": group} if group else {})}
    (row,) = result.measurements.filter(**wanted)
    return row


def told(result: oods.Result, detector: str, metric: str, name: str, group: str | None = None) -> str:
    row = one(result, detector, metric, name, group)
    return f"{100 * row.value:.2f} [{100 * row.low:.1f}, {100 * row.high:.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    for network in NETWORKS:
        for split in (False, True):
            home = options.output / f"{network}{'-split' * split}"
            if not options.show and not (home / "run.json").exists():
                folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
                judge(folder, network, split, options.device).save(home)
        plain, halved = (oods.Result.load(options.output / f"{network}{end}") for end in ("", "-split"))
        show(network, plain, halved)
        save_figure(conventional_twice(plain.measurements), options.output / f"human-centric-{network}", ["png"])


if __name__ == "__main__":
    main()
