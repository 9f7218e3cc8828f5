"""The page of outlier exposure on generated outliers: every sentence from the cells of ``generated_exposure.py``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from evg_cells import read

DATASETS = ("cifar10", "mnist")
COMMAND = "python benchmarks/generated_exposure.py DATASET --sets WORK/DATASET --output CELLS --minutes 20"
ARMS = ("none", "plain GAN", "generated near", "real")
CONTROL = "held-out ID"

STRUCK = {
    **dict.fromkeys((("generated near", "near"), ("plain GAN", "near")), "the generator whose images were shown"),
    **dict.fromkeys((("real", "clothes"), ("real", "tin")), "the data set whose images were shown"),
}
"""Arms and sets that say nothing of each other, and what they share."""
SEEDS = (0, 1, 2)

Cell = dict[str, Any]


def made_words(cells: Sequence[Cell]) -> list[str]:
    """One sentence for each way in which the generated outliers of these cells were made."""
    ways = {json.dumps(cell["made"], sort_keys=True): cell["made"] for cell in cells if "made" in cell}
    return [
        f"Generated near outliers: a {way['network']} of {way['steps']:,} steps of {way['batch_size']} images and "
        f"{way['fine_steps']:,} more for each λ_s of {', '.join(f'{each:g}' for each in way['lambdas'])}; window "
        f"{way['window'][0]:.2f} to {way['window'][1]:.2f} nats; the makers still see the class in "
        f"{100 * way['seen']:.1f} % of them. Plain GAN: the same generator before it was tuned. What judges say of "
        "both: [generated.md](generated.md)."
        for way in ways.values()
    ]


def pooled(found: dict[str, list[float]]) -> tuple[float, int]:
    """Standard deviation over seeds, pooled over the arms, and its degrees of freedom."""
    squares = [float(np.var(values, ddof=1)) * (len(values) - 1) for values in found.values() if len(values) > 1]
    degrees = sum(len(values) - 1 for values in found.values() if len(values) > 1)
    return (float(np.sqrt(sum(squares) / degrees)), degrees) if degrees else (float("nan"), 0)


def sentence(found: dict[str, list[float]], one: str, two: str, where: str) -> str:
    """Whether one arm is better than another, by t with the seed variance pooled over all arms."""
    deviation, degrees = pooled(found)
    if len(found.get(one, ())) < 2 or len(found.get(two, ())) < 2 or degrees < 3:
        return f"- {one} against {two}, {where}: cannot say (a training needs several seeds)."
    apart = float(np.mean(found[one]) - np.mean(found[two]))
    noise = deviation * np.sqrt(1 / len(found[one]) + 1 / len(found[two]))
    half = float(t.ppf(0.975, degrees)) * noise
    answer = "better" if apart > half else "worse" if apart < -half else "cannot say"
    ends = f"[{100 * (apart - half):+.1f}, {100 * (apart + half):+.1f}]"
    return f"- {one} against {two}, {where}: {100 * apart:+.1f} points {ends}: {answer}."


def answer(cells: Sequence[Cell], dataset: str) -> tuple[str, list[str]]:
    """What the generated near arm does against the others by energy, in one sentence, and pair by pair."""
    columns = sorted({key for cell in cells for key in cell["auroc"]})
    said = [
        sentence(by_arm(cells, key), "generated near", other, key)
        for key in columns
        for other in ("none", "plain GAN", "real")
        if key.startswith("ebo") and not any(is_struck(arm, key) for arm in ("generated near", other))
    ]
    counts = {word: sum(f": {word}" in each for each in said) for word in ("better", "worse", "cannot say")}
    words = ", ".join(f"{word} in {count}" for word, count in counts.items())
    return (
        f"{dataset}, generated near against each other arm, energy: {words} of {len(said)} pairs of arm and set.",
        said,
    )


def is_struck(arm: str, column: str) -> bool:
    """Whether a set, the end of a column's name, comes from what an arm was shown."""
    return (arm, column.split(" ", 1)[1]) in STRUCK


def by_arm(cells: Sequence[Cell], column: str) -> dict[str, list[float]]:
    """AUROCs of every seed of every arm that may be tested on it."""
    arms = [arm for arm in (*ARMS, CONTROL) if not is_struck(arm, column)]
    return {arm: [cell["auroc"][column] for cell in cells if cell["arm"] == arm] for arm in arms}


def control(cells: Sequence[Cell]) -> str:
    """Whether what is shown as an outlier reaches the loss: shown ID images, a network must be less sure of others."""
    found = {
        arm: [cell["msp of ID test"] for cell in cells if cell["arm"] == arm and "msp of ID test" in cell]
        for arm in (*ARMS, CONTROL)
    }
    deviation, degrees = pooled(found)
    if min(len(found["none"]), len(found[CONTROL])) < 2 or degrees < 3:
        return f"- Control ({CONTROL} against none): cannot say (a training needs several seeds)."
    apart = float(np.mean(found[CONTROL]) - np.mean(found["none"]))
    half = float(t.ppf(0.975, degrees)) * deviation * np.sqrt(1 / len(found[CONTROL]) + 1 / len(found["none"]))
    word = "as it must: what is shown reaches the loss" if apart > half else "NOT as it must"
    return (
        f"- Control: exposed to held-out ID images, the mean MSP score of ID test images rises by {apart:+.3f} "
        f"[{apart - half:+.3f}, {apart + half:+.3f}] against none: {word}."
    )


def spared(cells: Sequence[Cell]) -> list[str]:
    """What exposure costs in accuracy, arm by arm."""
    found = {arm: [cell["accuracy"] for cell in cells if cell["arm"] == arm] for arm in (*ARMS, CONTROL)}
    lines = [sentence(found, arm, "none", "accuracy") for arm in found if arm != "none" and found[arm]]
    return [line.replace(" against none, accuracy:", ", accuracy against none:") for line in lines]


def section(cells: Sequence[Cell], dataset: str) -> list[str]:
    """One data set: the table, pair by pair, and what was not run."""
    columns = sorted({key for cell in cells for key in cell["auroc"]})
    sizes = " or ".join(f"{count:,}" for count in sorted({cell["training images"] for cell in cells}))
    shown, epochs = ({cell[key] for cell in cells} for key in ("outliers", "epochs"))
    lines = [
        f"## {dataset}",
        "",
        f"{sizes} training images, {', '.join(map(str, sorted(epochs)))} epochs, {', '.join(map(str, sorted(shown)))} "
        "outliers in every arm, which learns from scratch. AUROC in percent, mean over seeds (lowest–highest).",
        "",
        *(line for each in made_words(cells) for line in (each, "")),
        "| arm | seeds | accuracy | " + " | ".join(columns) + " |",
        "| --- |" + " ---: |" * (len(columns) + 2),
    ]
    for arm in (*ARMS, CONTROL):
        own = [cell for cell in cells if cell["arm"] == arm]
        if not own:
            lines.append(f"| {arm} | 0 | not run |" + " |" * len(columns))
            continue
        found = [by_arm(cells, key) for key in columns]
        values = [
            f"{100 * np.mean(each[arm]):.1f} ({100 * min(each[arm]):.1f}–{100 * max(each[arm]):.1f})"
            if arm in each
            else "struck"
            for each in found
        ]
        accuracy = f"{100 * np.mean([cell['accuracy'] for cell in own]):.1f}"
        lines.append(f"| {arm} | {len(own)} | {accuracy} | " + " | ".join(values) + " |")
    shared = "; ".join(
        f"{arm} on {place}: {what}"
        for (arm, place), what in STRUCK.items()
        if any(key.endswith(f" {place}") for key in columns)
    )
    lines += ["", f"Struck, because a test would share it: {shared or 'nothing'}.", ""]
    return [*lines, *answer(cells, dataset)[1], *spared(cells), control(cells), ""]


def absent(cells: Sequence[Cell]) -> list[tuple[str, int]]:
    """Arms and seeds of one data set that were not trained."""
    done = {(cell["arm"], cell["seed"]) for cell in cells}
    return [(arm, seed) for arm in (*ARMS, CONTROL) for seed in SEEDS if (arm, seed) not in done]


def page(folder: Path) -> str:
    """The page, from the cells alone: a folder of them, or a file with one in each line."""
    cells = read(folder)
    named = {name: [cell for cell in cells if cell["dataset"] == name] for name in DATASETS}
    question = "Do generated near outliers help as outlier exposure, beside plain-GAN samples, real outliers and none?"
    answers = [answer(own, name)[0] for name, own in named.items() if own]
    machines, days = (", ".join(sorted({cell[key] for cell in cells})) or "none yet" for key in ("device", "date"))
    lines = ["# Outlier exposure on generated outliers", "", f"**Question.** {question}", ""]
    lines += [f"**Answer.** {' '.join(answers) or 'Cannot say yet: no arm was trained.'}", ""]
    lines += [
        f"**Command.** `{COMMAND}`, then `python benchmarks/generated_exposure.py --page CELLS` (cells of this page: "
        "`data/generated-exposure.jsonl`)",
        "",
    ]
    lines += [f"**Machine.** {machines}. **Date.** {days}.", ""]
    lines += [
        "Statements are about other trainings of the same recipe on these sets: t with the variance over seeds pooled "
        "over the arms, each pair by itself at 95 %.",
        "",
    ]
    for name, own in named.items():
        if own:
            lines += section(own, name)
    missing = {name: absent(own) for name, own in named.items() if absent(own)}
    if missing:
        every = len(SEEDS) * len((*ARMS, CONTROL))
        words = [
            f"{name}: {'all' if len(gone) == every else ', '.join(f'{arm} {seed}' for arm, seed in gone)}"
            for name, gone in missing.items()
        ]
        count = sum(len(gone) for gone in missing.values())
        lines += [f"**Not run yet** ({count} trainings): {'; '.join(words)}. Go on with `{COMMAND}`.", ""]
    return "\n".join([*lines, *DIFFERS]) + "\n"


DIFFERS = (
    "## What differs from the paper",
    "",
    "- The paper's appendix with this experiment is not in the text at hand: arms, tests and sizes are our own.",
    "- ResNet-18 on CIFAR-10 at 32 px and a small network on MNIST, trained with outliers from the first step on.",
    "- Real outliers are 1,000 images (Tiny ImageNet's validation list, or five classes of Fashion-MNIST), so every "
    "arm has that many.",
)
