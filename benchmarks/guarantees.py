"""Do the guarantees in operation hold on real scores, and what are they worth?

    python benchmarks/guarantees.py FOLDER [docs/results/guarantees.md]

FOLDER holds the arrays that ``stream_activations.py`` wrote. Every draw takes calibration images *and* batch or stream
anew from the scores of 6,000 CIFAR-10 test images, without replacement, so that they are exchangeable by construction.
"""

import os
import sys
from datetime import UTC, datetime
from math import inf, sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np

import oodscope as oods
from oodscope.metrics.interval import wilson_interval
from oodscope.metrics.rejection.conformal import calibrate
from oodscope.metrics.rejection.exchangeability import first_alarm, log_mixture
from oodscope.metrics.rejection.fdr import select_outliers
from oodscope.metrics.rejection.precision import measure_precision

DETECTORS = ("msp", "knn")
OOD = ("cifar100", "tin", "svhn")
DRAWS = int(os.environ.get("DRAWS", "1000"))
STREAMS = int(os.environ.get("STREAMS", "3000"))
CALIBRATION, BATCH, OUTLIERS = 1000, 200, 40
DISTANCE, SHIFT = 4.0, 0.5
"""Of simulated outliers and of covariate-shifted images from ID scores, in standard deviations."""


def scores_of(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """Scores of every detector on every set that is there."""
    sets = {path.stem: dict(np.load(path, allow_pickle=False)) for path in sorted(folder.glob("*.npz"))}
    arrays = {
        name: oods.Activations(
            logits=each["logits"], features=each["features"].astype(np.float32), labels=each["labels"]
        )
        for name, each in sets.items()
    }
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in DETECTORS:
        detector = oods.create_detector(name).fit(arrays["id_train"])
        found[name] = {each: detector.score(rows).numpy() for each, rows in arrays.items() if each != "id_train"}
    return found


def fdr_rows(scores: dict[str, np.ndarray], target: float, confidence: float | None, ood: str, shifted: str) -> tuple:
    """Over draws: the mean share of false discoveries with its standard error, and of outliers that are flagged."""
    rng, false, caught = np.random.default_rng(0), [], []
    truth = np.arange(BATCH) < OUTLIERS
    known = scores["id_test"]
    for _ in range(DRAWS):
        order = rng.permutation(len(known))
        calibration = calibrate(known[order[:CALIBRATION]], 0.1)
        rest = known[order[CALIBRATION:]] if not shifted else scores[shifted]
        batch = np.append(rng.choice(scores[ood], OUTLIERS, False), rng.choice(rest, BATCH - OUTLIERS, False))
        flagged = select_outliers(calibration, batch, target, confidence).flagged
        false.append((flagged & ~truth).sum() / max(1, flagged.sum()))
        caught.append(flagged[truth].mean())
    return np.mean(false), np.std(false) / np.sqrt(DRAWS), np.mean(caught)


def fixed_alarm(calibration: np.ndarray, stream: np.ndarray, alpha: float) -> float:
    """The alarm on p-values against the calibration images alone, which is no martingale."""
    p_values = calibrate(calibration, 0.1).p_values(stream)
    evidence = log_mixture(np.arange(1, len(stream) + 1), -np.log(p_values).cumsum())
    crossed = np.flatnonzero(evidence >= -np.log(alpha))
    return float(crossed[0] + 1) if len(crossed) else inf


def alarm_rows(scores: np.ndarray, alpha: float, length: int) -> tuple[int, int]:
    """False alarms in streams of ID images: online, and with fixed p-values."""
    rng, online, fixed = np.random.default_rng(1), 0, 0
    for _ in range(STREAMS):
        order = rng.permutation(len(scores))[: CALIBRATION + length]
        calibration, stream = scores[order[:CALIBRATION]], scores[order[CALIBRATION:]]
        online += first_alarm(calibration, stream, alpha, rng) < inf
        fixed += fixed_alarm(calibration, stream, alpha) < inf
    return online, fixed


def power_rows(scores: dict[str, np.ndarray], ood: str, share: float, alpha: float, length: int = 1500) -> tuple:
    """Share of 200 streams with an alarm, and the median image of it."""
    rng, times = np.random.default_rng(2), []
    for _ in range(200):
        order = rng.permutation(len(scores["id_test"]))
        stream = scores["id_test"][order[CALIBRATION : CALIBRATION + length]].copy()
        foreign = rng.random(length) < share
        stream[foreign] = rng.choice(scores[ood], int(foreign.sum()))
        times.append(first_alarm(scores["id_test"][order[:CALIBRATION]], stream, alpha, rng))
    return np.isfinite(times).mean(), np.median(times)


def normal_scores() -> dict[str, np.ndarray]:
    """Pools of a detector whose scores are normal, and ID images shifted."""
    rng = np.random.default_rng(3)
    known, foreign, shifted = (rng.normal(size=count) for count in (6000, 1500, 1000))
    return {"id_test": known, "normal": foreign + DISTANCE, "csid": shifted + SHIFT}


def fdr_section(scores: dict[str, dict[str, np.ndarray]], sets: list[str]) -> tuple[list[str], str]:
    """The table, and what it says."""
    lines = [
        "## False discovery rate",
        "",
        f"{DRAWS:,} draws of {CALIBRATION:,} calibration images and a batch of {BATCH}, {OUTLIERS} of it outliers.",
        "Target 10 %; rates in percent. csID: CIFAR-10 test images under Gaussian noise, severity 2. `normal`: ",
        f"simulated, AUROC {100 * NormalDist().cdf(DISTANCE / sqrt(2)):.1f}, csID shifted by {SHIFT:g} standard "
        "deviations.",
        "",
        "| detector | outliers | form | FDR ± 2 se | outliers flagged | FDR with csID in place of ID |",
        "|---|---|---|---|---|---|",
    ]
    broken, idle, told = 0, 0, 0
    pairs = [(name, ood, scores[name]) for name in DETECTORS for ood in sets] + [("normal", "normal", normal_scores())]
    for name, ood, known in pairs:
        for form, confidence in (("marginal", None), ("conditional, 90 %", 0.9)):
            mean, error, caught = fdr_rows(known, 0.1, confidence, ood, "")
            shifted = fdr_rows(known, 0.1, confidence, ood, "csid")[0]
            broken += mean - 2 * error > 0.1
            idle += caught < 0.01
            told += caught >= 0.01
            shown = f"{100 * mean:.2f} ± {200 * error:.2f} | {100 * caught:.1f} | {100 * shifted:.1f}"
            lines.append(f"| {name} | {ood} | {form} | {shown} |")
    verdict = "does not hold" if broken else "holds"
    answer = (
        f"FDR at most 10 % over draws of calibration images and batch: {verdict} in the {told} rows that flag at "
        f"least 1 % of the outliers; {idle} rows flag fewer, and their low FDR says nothing."
    )
    return [*lines, ""], answer


def alarm_section(scores: dict[str, dict[str, np.ndarray]]) -> tuple[list[str], str]:
    """The table, and what it says."""
    lines = [
        "## False alarms of the monitor",
        "",
        f"{STREAMS:,} streams of ID images after {CALIBRATION:,} calibration images, α = 1 %. In percent, Wilson 95 %.",
        "",
        "| detector | images | online p-values | p-values against the calibration images alone |",
        "|---|---|---|---|",
    ]
    held = []
    for name, length in (("msp", 1000), ("knn", 1000), ("knn", 2000)):
        cells = []
        for count in alarm_rows(scores[name]["id_test"], 0.01, length):
            each = wilson_interval(count, STREAMS)
            cells.append(
                f"{100 * count / STREAMS:.2f} ({100 * each.low:.2f} to {100 * each.high:.2f}), {count} streams"
            )
            held.append(each.low <= 0.01)
        lines.append(f"| {name} | {length:,} | {cells[0]} | {cells[1]} |")
    online, fixed = all(held[::2]), all(held[1::2])
    answer = (
        f"False alarms at most 1 % over whole streams (lower 95 % bound): {'holds' if online else 'does not hold'} for "
        f"online p-values, {'holds' if fixed else 'does not hold'} for p-values against the calibration images alone."
    )
    return [*lines, ""], answer


def power_section(scores: dict[str, np.ndarray], sets: list[str]) -> list[str]:
    """How soon outliers raise the alarm."""
    shares = (0.5, 0.1, 0.05, 0.01)
    lines = [
        "## Power of the monitor",
        "",
        "200 streams of 1,500 images, α = 1 %, KNN: share of streams with an alarm in percent, and its median image.",
        "",
        "| outliers | " + " | ".join(f"{100 * share:g} %" for share in shares) + " |",
        "|---|---|---|---|---|",
    ]
    for ood in sets:
        cells = []
        for share in shares:
            caught, median = power_rows(scores, ood, share, 0.01)
            cells.append(f"{100 * caught:.0f}, " + (f"{median:.0f}" if np.isfinite(median) else "none"))
        lines.append(f"| {ood} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def precision_section(scores: dict[str, dict[str, np.ndarray]], sets: list[str]) -> list[str]:
    """What an operator sees."""
    lines = [
        "## Precision where outliers are rare",
        "",
        "Of the images above the threshold with 5 % false alarms, the share that is OOD, in percent; 95 % interval.",
        "",
        "| detector | outliers | caught | prevalence 50 % | 10 % | 1 % |",
        "|---|---|---|---|---|---|",
    ]
    for name in DETECTORS:
        for ood in sets:
            found = [measure_precision(scores[name]["id_test"], scores[name][ood], share) for share in (0.5, 0.1, 0.01)]
            cells = [f"{100 * p.value:.1f} ({100 * p.interval.low:.1f} to {100 * p.interval.high:.1f})" for p in found]
            lines.append(f"| {name} | {ood} | {100 * found[0].tpr:.1f} | " + " | ".join(cells) + " |")
    return lines


def page(scores: dict[str, dict[str, np.ndarray]]) -> str:
    """The page, its answer computed from its numbers."""
    sets = [name for name in OOD if name in scores["msp"]]
    (rates, about_rates), (alarms, about_alarms) = fdr_section(scores, sets), alarm_section(scores)
    head = [
        "# Do the guarantees in operation hold, and what are they worth?",
        "",
        "**Question.** FDR of flagged batches, false alarms and power of the monitor, and precision at a prevalence,",
        "on scores of the shared CIFAR-10 ResNet-18.",
        "",
        f"**Answer.** {about_rates} {about_alarms} Population: draws from one pool of scores of one network;",
        "covariate-shifted images are covered by neither, and stand beside.",
        "",
        "**Command.** `python benchmarks/stream_activations.py TRAIN FOLDER`, then",
        "`python benchmarks/guarantees.py FOLDER docs/results/guarantees.md`",
        "",
        "**Machine.** 2 cores shared with other work, CPU",
        "",
        f"**Date.** {datetime.now(UTC):%Y-%m-%d}",
        "",
    ]
    return (
        "\n".join([*head, *rates, *alarms, *power_section(scores["knn"], sets), *precision_section(scores, sets)])
        + "\n"
    )


def main() -> None:
    text = page(scores_of(Path(sys.argv[1])))
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
