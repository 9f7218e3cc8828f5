"""Why running prototypes stand near chance on Tiny ImageNet: what the best axis between two means could do.

    python benchmarks/stream_axis.py FOLDER docs/results/stream-axis.md

FOLDER is that of ``stream_activations.py``; sets may hold fewer images.
"""

import sys
import time
from pathlib import Path

import numpy as np

from oodscope.metrics.ranking.delong import auroc_interval
from oodscope.metrics.ranking.ranking import Ranking

SETS = {"tin": "Tiny ImageNet", "svhn": "SVHN"}


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length one."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def auroc(known: np.ndarray, foreign: np.ndarray) -> tuple[float, float, float]:
    """The value with its interval, in percent."""
    ranking = Ranking(known, foreign)
    ends = auroc_interval(ranking)
    return 100 * ranking.auroc, 100 * ends.low, 100 * ends.high


def measured(folder: Path) -> dict[str, dict[str, tuple[float, float, float]]]:
    """By set: the base score of the detector, and axes between two means that no stream is needed for."""
    train = dict(np.load(folder / "id_train.npz"))
    rows, labels = unit(train["features"].astype(float)), train["labels"]
    means = unit(np.stack([rows[labels == each].mean(axis=0) for each in np.unique(labels)]))
    known = unit(np.load(folder / "id_test.npz")["features"].astype(float))
    found = {}
    for name in SETS:
        foreign = unit(np.load(folder / f"{name}.npz")["features"].astype(float))
        axis = unit(foreign.mean(axis=0)) - unit(known.mean(axis=0))
        nearest = [each @ unit(foreign.mean(axis=0)) - (each @ means.T).max(axis=1) for each in (known, foreign)]
        found[name] = {
            "base score: cosine to the nearest class mean": auroc(
                *(-(each @ means.T).max(axis=1) for each in (known, foreign))
            ),
            "axis between the true means of all ID and of all OOD images": auroc(known @ axis, foreign @ axis),
            "the true OOD mean against the nearest class mean": auroc(*nearest),
        }
    return found


def answer(found: dict[str, dict[str, tuple[float, float, float]]]) -> str:
    """The sentence, from the numbers."""
    said, below = [], []
    for name, values in found.items():
        (base, *_), (best, low, high), (split, split_low, _) = values.values()
        word = "below" if high < base else "above" if low > base else "not shown to differ from"
        said.append(f"{SETS[name]} {best:.1f} ({low:.1f} to {high:.1f}), {word} the base score's {base:.1f}")
        if high < base:
            more = f"the OOD mean against the nearest class mean has {split:.1f}" if split_low > high else ""
            below.append(f"{SETS[name]}{f' ({more})' if more else ''}")
    end = (
        f"There no update of the means and no turned sign can mend the form: {'; '.join(below)}."
        if below
        else "The axis itself is not what costs."
    )
    return f"AUROC of the axis between the *true* means, which no stream can know: {'; '.join(said)}. {end}"


def page(found: dict[str, dict[str, tuple[float, float, float]]], counts: str) -> str:
    """The page."""
    lines = []
    for form in next(iter(found.values())):
        cells = (found[name][form] for name in found)
        lines.append(f"| {form} | " + " | ".join(f"{v:.1f} ({low:.1f}–{high:.1f})" for v, low, high in cells) + " |")
    return "\n".join(
        [
            "# What could an axis between two means do?",
            "",
            "**Question.** `running_prototypes` (after the abstract of DART, unverified form) stands near chance on",
            "Tiny ImageNet in [streams](streams.md). Is that a fault of the running means?",
            "",
            f"**Answer.** {answer(found)}",
            "",
            "**Command.** `python benchmarks/stream_axis.py FOLDER docs/results/stream-axis.md`, FOLDER by",
            "`stream_activations.py`",
            "",
            "**Machine.** 2 cores shared with other work, CPU",
            "",
            f"**Date.** {time.strftime('%Y-%m-%d')}",
            "",
            f"{counts}: penultimate features of the shared CIFAR-10 ResNet-18 at unit length. AUROC in percent, 95 %",
            "intervals for other images, one network.",
            "",
            f"| score | {' | '.join(SETS[name] for name in found)} |",
            "|---" * (1 + len(found)) + "|",
            *lines,
            "",
        ]
    )


def main() -> None:
    folder = Path(sys.argv[1])
    sizes = {name: len(np.load(folder / f"{name}.npz")["features"]) for name in ("id_train", "id_test", *SETS)}
    counts = f"{sizes['id_train']:,} images for class means, {sizes['id_test']:,} CIFAR-10 test images"
    counts += "".join(f", {sizes[name]:,} of {words}" for name, words in SETS.items())
    Path(sys.argv[2]).write_text(page(measured(folder), counts), encoding="utf-8")


if __name__ == "__main__":
    main()
