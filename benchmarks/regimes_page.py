"""Write the page of the human-centric study's Figures 4 to 7: architectures and training regimes on CIFAR-100.

    python benchmarks/regimes_page.py FOLDER/rows docs/results/regimes-cifar100.md

Every verdict is a function of the rows of ``regimes_study.py``. DER is decided at thresholds from correct validation
images, where all detectors reject about the same share of correct images, and at the accuracy of the plain network:
:math:`a_0 F_{rr} + (1-a_0) F_{ar}` for sets of known classes, with each network's own rates; on OOD sets every
prediction is wrong and the accuracy does not count. Values are means over all sets. The population of a comparison is
other seeds of both regimes, by the variance between seeds pooled over all rows that have several; one seed gives
"cannot say".
"""

import argparse
from collections.abc import Sequence
from datetime import date
from math import isnan, nan, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t

from oodscope.base.files import write_text
from regimes_study import ARCHITECTURES, DETECTORS, PLAIN, RADII, REGIMES, ROWS

ALPHA = 0.05
HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot say here"
SOURCES = ("val_correct", "train_correct")


def read_rows(folder: Path) -> pd.DataFrame:
    """The rows of every network that is there."""
    parts = [pd.read_csv(path, keep_default_na=False, na_values=[""]) for path in sorted(folder.glob("*.csv"))]
    columns = ["detector", "metric", "set", "group", "value", "low", "high", "rejected_correct", "name", "seed"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def accuracies(rows: pd.DataFrame) -> pd.Series:
    """On id_test, by network."""
    own = rows[(rows["metric"] == "accuracy") & (rows["set"] == "id_test")]
    return own.set_index(["name", "seed"])["value"]


def matched(rows: pd.DataFrame, keep: int, source: str) -> pd.Series:
    """DER at the plain network's accuracy on each set, mean over sets, by network and detector; percent."""
    plain = rows[(rows["name"] == PLAIN) & (rows["metric"] == "accuracy")].groupby("set")["value"].mean()
    rates = rows[rows["metric"].isin([f"{kind}{keep}_{source}" for kind in ("frr", "far")]) & (rows["set"] != "mean")]
    wide = rates.assign(kind=rates["metric"].str[:3]).pivot_table(
        index=["name", "seed", "detector", "set"], columns="kind", values="value"
    )
    if wide.empty or plain.empty:
        return pd.Series(index=pd.MultiIndex.from_arrays([[], [], []], names=["name", "seed", "detector"]), dtype=float)
    accuracy = wide.index.get_level_values("set").map(plain).fillna(0.0).to_numpy(dtype=float)
    frr = wide["frr"].fillna(0.0) if "frr" in wide else 0.0
    value = 100 * (accuracy * frr + (1 - accuracy) * wide["far"].fillna(0.0))
    return value.groupby(level=["name", "seed", "detector"]).mean()


def published(rows: pd.DataFrame, keep: int, source: str) -> pd.Series:
    """DER as it is, mean over all sets, by network and detector; percent."""
    own = rows[(rows["metric"] == f"der{keep}_{source}") & (rows["set"] == "mean") & (rows["group"] == "all")]
    return 100 * own.set_index(["name", "seed", "detector"])["value"]


def pooled(values: pd.Series) -> tuple[float, int]:
    """Variance between seeds over all rows that have several, and its degrees of freedom."""
    groups = values.groupby(level=[level for level in values.index.names if level != "seed"])
    variances, counts = groups.var(ddof=1), groups.count() - 1
    several = counts[counts > 0]
    freedom = int(several.sum())
    return (float((variances[several.index] * several).sum() / freedom) if freedom else nan), freedom


def compared(values: pd.Series, first: str, second: str, noise: tuple[float, int]) -> tuple[float, float]:
    """The difference of two regimes and its half-width for other seeds; ``nan`` where there are too few."""
    own, other = (values.xs(name, level="name") if name in values.index.get_level_values("name") else None
                  for name in (first, second))  # fmt: skip
    if own is None or other is None:
        return nan, nan
    difference = float(own.mean() - other.mean())
    variance, freedom = noise
    if not freedom or min(len(own), len(other)) < 2:
        return difference, nan
    return difference, float(t.isf(ALPHA / 2, freedom)) * sqrt(variance * (1 / len(own) + 1 / len(other)))


def verdict(difference: float, half: float, sign: int) -> str:
    """Whether a difference has a sign beyond the noise of seeds."""
    if isnan(difference):
        return "not yet run"
    if isnan(half) or abs(difference) <= half:
        return OPEN
    return HOLDS if np.sign(difference) == sign else FAILS


def told(difference: float, half: float) -> str:
    if isnan(difference):
        return "not yet run"
    return f"{difference:+.2f}" + ("" if isnan(half) else f" ± {half:.2f}")


def components(values: pd.Series, names: Sequence[str]) -> dict[str, float]:
    """Standard deviations of network kind, detector, their interaction and seed, in points, by the method of moments.

    Kinds (architectures or regimes) and detectors are crossed; seeds lie within kinds. A component that comes out
    below zero is zero.
    """
    part = values[values.index.get_level_values("name").isin(names)]
    seeds, _ = pooled(part)
    table = part.groupby(level=["name", "detector"]).mean().unstack("detector")
    rows, columns = table.shape if len(table) else (0, 0)
    if rows < 2 or columns < 2:
        return {}
    counts = part.groupby(level=["name", "detector"]).count()
    per_cell = float((1 / counts).mean())
    centred = table.sub(table.mean(axis=1), axis=0).sub(table.mean(axis=0), axis=1) + table.to_numpy().mean()
    inner = float((centred**2).to_numpy().sum() / ((rows - 1) * (columns - 1)))
    kinds, detectors = float(table.mean(axis=1).var(ddof=1)), float(table.mean(axis=0).var(ddof=1))
    found = {
        "kind": kinds - inner / columns,
        "detector": detectors - inner / rows,
        "kind × detector": inner - (0.0 if isnan(seeds) else seeds * per_cell),
        "seed": seeds,
    }
    return {name: nan if isnan(each) else sqrt(max(0.0, each)) for name, each in found.items()}


def der_table(rows: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """DER95 at matched accuracy, both sources of thresholds beside each other, and what is rejected of correct ones."""
    accuracy = accuracies(rows)
    tables = {source: matched(rows, 95, source) for source in SOURCES}
    lines = [
        f"| network | seeds | accuracy | {' | '.join(DETECTORS)} | rejected correct, val / train |",
        f"|---|---|---|{'---|' * (len(DETECTORS) + 1)}",
    ]
    for name in names:
        if name not in accuracy.index.get_level_values("name"):
            lines.append(f"| {name} | 0 | not yet run |{' |' * (len(DETECTORS) + 1)}")
            continue
        own = accuracy.xs(name, level="name")
        cells = []
        for detector in DETECTORS:
            both = [_mean(tables[source], name, detector) for source in SOURCES]
            cells.append(" ‖ ".join("–" if isnan(each) else f"{each:.1f}" for each in both))
        shares = [_rejected(rows, name, source) for source in SOURCES]
        lines.append(f"| {name} | {len(own)} | {100 * own.mean():.2f} | {' | '.join(cells)} | {' / '.join(shares)} |")
    return lines


def robust_line(rows: pd.DataFrame) -> str:
    """Accuracy on images attacked at each network's own radius."""
    own = rows[rows["metric"] == "robust_accuracy"]
    if own.empty:
        return "Accuracy under attack at the own radius (20 steps): not yet run."
    means = 100 * own.groupby("name")["value"].mean()
    said = ", ".join(f"{name} {means[name]:.1f}" for name in ROWS if name in means)
    return f"Accuracy under attack at the own radius (20 steps), percent: {said}."


def _mean(values: pd.Series, name: str, detector: str) -> float:
    try:
        return float(values.xs((name, detector), level=("name", "detector")).mean())
    except KeyError:
        return nan


def _rejected(rows: pd.DataFrame, name: str, source: str) -> str:
    own = rows[(rows["name"] == name) & (rows["metric"] == f"der95_{source}") & (rows["set"] == "id_test")]
    share = 100 * own["rejected_correct"].astype(float)
    return f"{share.min():.1f}–{share.max():.1f}" if len(share) else "–"


def best(values: pd.Series, name: str) -> str:
    """The detector with the lowest mean DER on a network."""
    own = values.xs(name, level="name").groupby(level="detector").mean() if _there(values, name) else None
    return "not yet run" if own is None else str(own.idxmin())


def _there(values: pd.Series, name: str) -> bool:
    return len(values) > 0 and name in values.index.get_level_values("name")


def claims(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    """The paper's observations, each with a verdict and its reason."""
    values = {keep: matched(rows, keep, "val_correct") for keep in (95, 99)}
    found = []

    def against(first: str, detector: str, keep: int = 95) -> tuple[float, float]:
        every = values[keep]
        own = every[every.index.get_level_values("detector") == detector].droplevel("detector")
        return compared(own, first, PLAIN, pooled(own))

    wide, small = against("l2-0.75", "msp", 99), against("l2-0.125", "msp")
    found.append(("A large radius ruins detection: MSP's DER99 rises", verdict(*wide, 1), told(*wide)))
    word = "not yet run" if isnan(small[0]) else OPEN
    if not isnan(small[1]):
        word = HOLDS if abs(small[0]) + small[1] < 2.0 else FAILS if abs(small[0]) - small[1] > 2.0 else OPEN
    found.append(("A small radius changes little: MSP's DER95 by less than 2 points", word, told(*small)))
    for detector in ("msp", "knn"):
        pair = against("distilled", detector)
        found.append((f"{detector} is better on the distilled network", verdict(*pair, -1), told(*pair)))
    for name, lower, higher in (("ant", "gradnorm", "vim"), ("autoaugment", "vim", "gradnorm")):
        found.append((f"{lower} before {higher} with {name}", *_ordered(values[95], name, lower, higher)))
    winners = {name: best(values[95], name) for name in ROWS if _there(values[95], name)}
    l2 = [winners[f"l2-{radius:g}"] for radius in RADII if f"l2-{radius:g}" in winners]
    most = OPEN if len(l2) < 4 else HOLDS if l2.count("msp") > len(l2) / 2 else FAILS
    found.append(("MSP is best on most adversarially trained networks", "not yet run" if not l2 else most,
                  ", ".join(l2) or ""))  # fmt: skip
    return found


def _ordered(values: pd.Series, name: str, lower: str, higher: str) -> tuple[str, str]:
    """Two detectors on the same networks, paired by seed."""
    if not _there(values, name):
        return "not yet run", ""
    own = values.xs(name, level="name").unstack("detector")
    apart = (own[lower] - own[higher]).dropna()
    if len(apart) < 2:
        return OPEN, f"{apart.mean():+.2f}, one seed"
    half = float(t.isf(ALPHA / 2, len(apart) - 1)) * float(apart.std(ddof=1)) / sqrt(len(apart))
    return verdict(float(apart.mean()), half, -1), told(float(apart.mean()), half)


def component_lines(rows: pd.DataFrame) -> list[str]:
    values = matched(rows, 95, "val_correct")
    lines = ["| kinds | kind | detector | kind × detector | seed |", "|---|---|---|---|---|"]
    for title, names in (("architectures", ARCHITECTURES), ("regimes", (PLAIN, *REGIMES))):
        found = components(values, names) if len(values) else {}
        if not found:
            lines.append(f"| {title} | not yet run | | | |")
            continue
        shown = " | ".join("–" if isnan(each) else f"{each:.2f}" for each in found.values())
        lines.append(f"| {title} ({sum(_there(values, name) for name in names)}) | {shown} |")
    return lines


def answer(rows: pd.DataFrame, stated: list[tuple[str, str, str]]) -> str:
    """One line for the top of the page."""
    if rows.empty:
        return "no network of this study is trained yet; every row is named below."
    counts = {word: sum(verdict == word for _, verdict, _ in stated) for word in (HOLDS, FAILS, OPEN, "not yet run")}
    return (
        "of the study's observations " + ", ".join(f"{count} {word}" for word, count in counts.items() if count) + "."
    )


def page(rows: pd.DataFrame, measured: str) -> str:
    """The page as Markdown."""
    stated = claims(rows)
    seen = set(zip(rows["name"], rows["seed"])) if len(rows) else set()
    missing = [f"{row.name} {seed}" for row in ROWS.values() for seed in row.seeds if (row.name, seed) not in seen]
    sweep = (PLAIN, *(f"l2-{radius:g}" for radius in RADII))
    lines = [
        "# Architectures and training regimes under human-centric evaluation, CIFAR-100",
        "",
        "**Question.** Which of the observations behind Figures 4 to 7 of the human-centric study (arXiv 2211.16778)",
        "on architectures, adversarial radius, augmentation and distillation hold for networks trained here?",
        "",
        f"**Answer.** {answer(rows, stated)}",
        "",
        "**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/regimes_study.py --output FOLDER --minutes 9.5`",
        "on one NVIDIA H200, again and again (it goes on where it stopped), then",
        "`python benchmarks/regimes_page.py FOLDER/rows docs/results/regimes-cifar100.md`.",
        "",
        f"**Date.** {measured if len(rows) else 'nothing is measured yet'}",
        "",
        "DER95 in percent, mean over the other CIFAR, SVHN, textures, scenes, clean and corrupted test images, at the",
        "accuracy of the plain network; thresholds from correct validation images ‖ from correct training images (the",
        "paper's). The last column is the share of correct test images that the thresholds reject, least to most of",
        "all detectors. Verdicts are at validation thresholds, for other seeds of both sides, each at 5 % by itself;",
        "`klm` learns from the validation images.",
        "",
        *(f"## {title}\n\n" + "\n".join(der_table(rows, names)) + "\n" for title, names in (
            ("Architectures (Figure 4)", ARCHITECTURES), ("Adversarial radius (Figure 5)", sweep),
            ("Regimes (Figure 6)", (PLAIN, *REGIMES)), ("Distillation (Figure 7)", (PLAIN, "distilled")))),
        robust_line(rows),
        "",
        "## Observations",
        "",
        "| observation | verdict | points |",
        "|---|---|---|",
        *(f"| {claim} | {word} | {reason} |" for claim, word, reason in stated),
        "",
        "## Variance components",
        "",
        "Standard deviations in points of DER95 at matched accuracy (method of moments; kinds and detectors crossed,",
        "seeds within kinds):",
        "",
        *component_lines(rows),
        "",
        "## What differs from the paper",
        "",
        "- CIFAR-100 and ResNet-18 at 32 px in the place of ImageNet-1K and ResNet-50 at 224 px; radii are scaled by",
        "  √(3072/150528) = 1/7, so that the root mean square of a pixel is the paper's.",
        "- Stylised images need paintings and a network that are not here: `style` is an exchange of Fourier",
        "  amplitudes within a batch. AutoAugment is the policy of CIFAR-10, not Fast AutoAugment. Distilled networks",
        "  learn from three plain seeds of themselves, not from larger teachers; DeiT and ResMLP are not trained.",
        "- The paper's thresholds are those from training images.",
        f"- Not yet run: {', '.join(missing) or 'nothing'}.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--measured", default=str(date.today()), help="date of the measurements")
    options = parser.parse_args(arguments)
    write_text(options.output, page(read_rows(options.rows), options.measured))


if __name__ == "__main__":
    main()
