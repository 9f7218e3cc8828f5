"""What the pages of ``evg_study.py`` share: its cells, differences of them, and words about how they were found."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from evg_study import cells

Found = dict[str, Any]
COMMAND = "OODSCOPE_DATA=packs python benchmarks/evg_study.py --output CELLS --minutes 30 --generator G --judge J"
SEEDS = 3
"""Fewest search seeds by which one attacked AUROC may be called lower than another."""


ENDS = "gradient at ends"
"""Key of cells whose gradient searches had a gradient at the ends of a range, with every torch."""

OLD = "‡"
BY_GRADIENTS = ("gradient starts", "portfolio", "white box")
"""Samplers with gradients, alone or among others."""


def understated(cell: Found) -> bool:
    """Whether a search with gradients was made before it had one at the ends of a range."""
    return cell["sampler"] in BY_GRADIENTS and not cell.get(ENDS, False)


def mark(cells_: Iterable[Found]) -> str:
    """Behind a number that such a search has part in."""
    return OLD if any(understated(each) for each in cells_) else ""


def marked_note(found: Iterable[Found], stages: Sequence[str]) -> list[str]:
    """What the mark means, where a page has it."""
    own = [each for each in found if each["stage"] in stages]
    old = [each for each in own if understated(each)]
    if not old:
        return []
    return [
        f"{OLD}: {len(old)} of {len(own)} searches use gradients and were made before they had one at the ends of a "
        "range (dark pixels, the start of a chain), which torch 2.15 gives none by itself; their versions of torch "
        "were not recorded. Such a search finds no more than it would today, so attacked AUROC may be lower than shown "
        "and what is said of other samplers against it may change.",
        "",
    ]


def read(folder: Path) -> list[Found]:
    """All finished cells: of a folder, or the lines of a file of them."""
    if folder.is_file():
        return [json.loads(line) for line in folder.read_text(encoding="utf-8").splitlines()]
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def of(found: Iterable[Found], **wanted: Any) -> list[Found]:
    """Cells with these values."""
    return [each for each in found if all(each[key] == value for key, value in wanted.items())]


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def shares(cells_: Sequence[Found]) -> np.ndarray[Any, Any]:
    """Ranks of the same source images as shares of the ID images, averaged over search seeds: ``[chains]``."""
    return np.mean([np.array(each["ranks"]) / each["n_id"] for each in cells_], axis=0)


@dataclass(frozen=True)
class Difference:
    """One attacked AUROC less another, on the same source images and among the same ID images.

    Parameters
    ----------
    mean, low, high : the difference and its interval at 95 %: source images and search seeds are random.
    p : of no difference, two-sided.
    seeds : of the search with fewer of them.
    """

    mean: float
    low: float
    high: float
    p: float
    seeds: int

    @property
    def verdict(self) -> str:
        """``lower``, ``higher`` or ``cannot say``, by the interval alone."""
        return self.judged(0.05)

    def judged(self, level: float) -> str:
        """The same at another level, such as Holm's."""
        if self.seeds < SEEDS or self.p >= level:
            return "cannot say"
        return "lower" if self.mean < 0 else "higher"


def difference(one: Sequence[Found], two: Sequence[Found]) -> Difference:
    """Paired over source images; ranks are means over search seeds, whose own variance is added (Satterthwaite)."""
    n = min(len(shares(one)), len(shares(two)))
    apart = shares(one)[:n] - shares(two)[:n]
    parts = [(float(apart.var(ddof=1)) / n, n - 1)]
    seeds = min(len(one), len(two))
    if seeds > 1:
        by_seed = [a["auroc"] - b["auroc"] for a, b in zip(one, two)]
        parts.append((float(np.var(by_seed, ddof=1)) / seeds, seeds - 1))
    variance = max(sum(part for part, _ in parts), 1e-18)
    freedom = variance**2 / max(sum(part**2 / count for part, count in parts), 1e-300)
    noise, mean = float(np.sqrt(variance)), float(apart.mean())
    half = float(t.ppf(0.975, freedom)) * noise
    return Difference(mean, mean - half, mean + half, float(2 * t.sf(abs(mean) / noise, freedom)), seeds)


def holm(found: Sequence[Difference]) -> list[str]:
    """Verdicts of a family, wrong in any of them with at most 5 %."""
    answers, going = ["cannot say"] * len(found), True
    for place, number in enumerate(sorted(range(len(found)), key=lambda each: found[each].p)):
        going = going and found[number].p < 0.05 / (len(found) - place)
        if going:
            answers[number] = found[number].judged(0.05)
    return answers


def cell_text(cells_: Sequence[Found]) -> str:
    """Mean AUROC over seeds and its interval over source images."""
    if not cells_:
        return "not run"
    mean = float(np.mean([cell["auroc"] for cell in cells_]))
    low, high = (float(np.mean([cell[end] for cell in cells_])) for end in ("low", "high"))
    return f"{percent(mean)}{mark(cells_)} [{percent(low)}–{percent(high)}]"


def head(found: Sequence[Found], stages: Sequence[str]) -> list[str]:
    """Command, machine, effort and population of a page."""
    own = [each for each in found if each["stage"] in stages]
    machines = sorted({each["device"] for each in own}) or ["not run yet"]
    sizes = sorted({(each["chains"], each["budget"]) for each in own})
    effort = "; ".join(f"{chains:,} chains of {budget:,} evaluations" for chains, budget in sizes)
    days = sorted({each["date"] for each in own}) or ["not run yet"]
    fitted = " or ".join(f"{count:,}" for count in sorted({each["n_train"] for each in own}))
    ranked = " or ".join(f"{count:,}" for count in sorted({each["n_id"] for each in own}))
    spent = sum(each["seconds"] for each in own)
    return [
        f"**Command.** `{COMMAND}`, then `python benchmarks/evg_page.py CELLS` (cells of this page: "
        "`data/evg-cells.jsonl`)",
        "",
        f"**Machine.** {', '.join(machines)}, {len(own)} searches, {spent:,.0f} s of searching side by side. **Date.** "
        f"{', '.join(days)}. **Effort.** {effort or 'none yet'}.",
        "",
        f"Population: one ResNet-18 of CIFAR-10 with 95 % accuracy; detectors fitted with {fitted or 'no'} training "
        f"images and ranked among {ranked or 'no'} ID test images of OpenOOD's split, which are held as they are; "
        "source images drawn with every class in its share. Intervals are about other images of the outliers' set, not "
        "about other networks.",
        "",
    ]


def differs() -> list[str]:
    """What differs from the paper."""
    return [
        "- Detectors of one trained ResNet-18 instead of 14 published detectors with networks of their own.",
        "- The first state is the image as it is, so an attack never helps; the paper starts at random.",
        "- Steps reflect at the walls (the paper's code clamps); affine is bilinear (the paper: nearest).",
        "- Scores are ranked among ID validation and source images before they are weighed; the paper "
        "divides by a standard "
        "deviation. `--preset paper` is the paper's.",
        "- The default is a portfolio at equal evaluations; the paper's is Metropolis-Hastings at T = 1.",
        "- Source images are drawn by class from 5,000 SVHN test digits; the paper takes the first 5,000. "
        "CelebA is missing.",
        "- The generator is smaller than the paper's StyleGAN2 and learnt from 5,000 digits.",
    ]


def missing(found: Sequence[Found], stages: Sequence[str]) -> list[str]:
    """Cells that were not run, and the command that runs them."""
    keys = ("stage", "outliers", "detector", "variation", "sampler", "seed", "form", "energy")
    done = {tuple(each[key] for key in keys) for each in found}
    wanted = [each for each in cells(True) if each.stage in stages]
    absent = [each for each in wanted if tuple(getattr(each, key) for key in keys) not in done]
    if not absent:
        return ["All cells were run."]
    counts = {
        (each.stage, each.seed): sum((other.stage, other.seed) == (each.stage, each.seed) for other in absent)
        for each in absent
    }
    named = "; ".join(f"{stage}, search seed {seed}: {count}" for (stage, seed), count in sorted(counts.items()))
    return [f"**Not run yet** ({len(absent)} cells): {named}. Go on with `{COMMAND}`."]
