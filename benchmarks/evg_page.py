"""Make the pages of evaluation via generation from the cells of ``evg_study.py``; every sentence is made from numbers.

    python benchmarks/evg_page.py CELLS [--samplers docs/results/attack-samplers.md] [--table docs/results/evg.md]

Without names of files the pages are printed. What was not run is named on the page, with the command that goes on.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr, t

from evg_study import DETECTORS, FEW, SAMPLERS, cells
from oodscope.runs.attack.convergence import continued

Found = dict[str, Any]
COMMAND = "OODSCOPE_DATA=packs python benchmarks/evg_study.py --output CELLS --minutes 30 --generator G --judge J"


def read(folder: Path) -> list[Found]:
    """All finished cells."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def of(found: Iterable[Found], **wanted: Any) -> list[Found]:
    """Cells with these values."""
    return [each for each in found if all(each[key] == value for key, value in wanted.items())]


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def shares(cells_: Sequence[Found]) -> np.ndarray[Any, Any]:
    """Ranks of the same source images as shares of the ID images, averaged over search seeds: ``[chains]``."""
    return np.mean([np.array(each["ranks"]) / each["n_id"] for each in cells_], axis=0)


def difference(one: Sequence[Found], two: Sequence[Found]) -> tuple[float, float, float]:
    """Mean paired difference of two attacked AUROCs over source images, and its 95 % interval.

    The ranks are means over search seeds; the variance of the difference over seeds is added where there are two.
    """
    n = min(len(shares(one)), len(shares(two)))
    apart = shares(one)[:n] - shares(two)[:n]
    variance, degrees = apart.var(ddof=1) / n, n - 1.0
    seeds = min(len(one), len(two))
    if seeds > 1:
        by_seed = [a["auroc"] - b["auroc"] for a, b in zip(one, two)]
        variance += np.var(by_seed, ddof=1) / seeds
    half = float(t.ppf(0.975, degrees)) * float(np.sqrt(variance))
    mean = float(apart.mean())
    return mean, mean - half, mean + half


def verdict(mean: float, low: float, high: float, seeds: int) -> str:
    """Whether one attacked AUROC is below another."""
    if seeds < 3:
        return "cannot say (fewer than 3 search seeds)"
    return "lower" if high < 0 else "higher" if low > 0 else "cannot say"


def sampler_table(found: Sequence[Found], stage: str, variation: str) -> list[str]:
    """Attacked AUROC by sampler (rows) and detector (columns), means over seeds."""
    lines = [f"| samplers | {' | '.join(FEW)} | mean | seeds |", "| --- |" + " ---: |" * (len(FEW) + 2)]
    rows = []
    for sampler in SAMPLERS:
        own = [of(found, stage=stage, variation=variation, sampler=sampler, detector=each) for each in FEW]
        if all(own):
            values = [float(np.mean([cell["auroc"] for cell in each])) for each in own]
            rows.append((float(np.mean(values)), sampler, values, min(map(len, own))))
    for mean, sampler, values, seeds in sorted(rows):
        lines.append(f"| {sampler} | {' | '.join(map(percent, values))} | {percent(mean)} | {seeds} |")
    return lines if rows else [f"Not run yet: {COMMAND}"]


def chosen_on_tin(found: Sequence[Found]) -> str | None:
    """The single sampler, or the portfolio, that leaves detectors with least on Tiny ImageNet, over both variations."""
    means = {}
    for sampler in SAMPLERS:
        own = of(found, stage="choose", sampler=sampler)
        if len({(cell["detector"], cell["variation"]) for cell in own}) == 2 * len(FEW):
            means[sampler] = float(np.mean([cell["auroc"] for cell in own]))
    return min(means, key=lambda name: means[name]) if means else None


def sampler_answer(found: Sequence[Found]) -> str:
    """One generated sentence: what was chosen on Tiny ImageNet, and whether SVHN agrees."""
    best = chosen_on_tin(found)
    if best is None:
        return "Cannot say yet: no sampler has all cells on Tiny ImageNet."
    pairs = []
    for variation in ("affine", "color"):
        for detector in FEW:
            one, two = (
                of(found, stage="report", variation=variation, detector=detector, sampler=each)
                for each in ("portfolio", "mh T=1")
            )
            if one and two:
                pairs.append((difference(one, two), min(len(one), len(two))))
    text = f"On Tiny ImageNet {best} leaves the four detectors with least (mean over detectors and variations)."
    if not pairs:
        return text + " SVHN was not run yet."
    words = [verdict(*each, seeds) for each, seeds in pairs]
    mean = float(np.mean([each[0] for each, _ in pairs]))
    return (
        f"{text} On SVHN, which no choice has seen, the portfolio ends {percent(abs(mean))} points "
        f"{'lower' if mean < 0 else 'higher'} than Metropolis-Hastings at T = 1 on average, with the same "
        "evaluations: lower "
        f"in {words.count('lower')}, higher in {words.count('higher')} and undecided in "
        f"{len(words) - words.count('lower') - words.count('higher')} of {len(words)} pairs of detector and variation "
        "(95 % intervals over source images and search seeds)."
    )


def samplers_page(found: Sequence[Found]) -> str:
    lines = ["# Which search finds the worst outliers", ""]
    lines += [
        "**Question.** At equal evaluations of the detector, which sampler leaves it with least, and is a portfolio of "
        "several the better default (figure 2 of evaluation via generation, with real data)?",
        "",
        f"**Answer.** {sampler_answer(found)}",
        "",
        *_head(found, ("choose", "report")),
    ]
    for stage, words in (("choose", "Tiny ImageNet (here samplers are chosen)"), ("report", "SVHN (reported)")):
        for variation in ("affine", "color"):
            lines += [f"## {words}, {variation}", "", "Attacked AUROC in percent, lowest mean first.", ""]
            lines += [*sampler_table(found, stage, variation), ""]
    lines += ["## The same detector in other forms", "", *_forms(found), ""]
    lines += ["## How far a curve foresees its end", "", _foreseen(found), ""]
    lines += ["## What differs from the paper", "", *_differs(), "", *_missing(found, ("choose", "report", "forms"))]
    return "\n".join(lines) + "\n"


def _forms(found: Sequence[Found]) -> list[str]:
    lines = [
        "AUROC of s, σ(s) and exp(s) under one attack; the range is what a monotone change of the score changes.",
        "",
    ]
    lines += ["| detector | variation | attack | s | σ(s) | exp(s) | range |", "| --- | --- | --- |" + " ---: |" * 4]
    ranges: dict[str, list[float]] = {}
    for sampler in ("mh T=1", "portfolio"):
        for detector in ("ebo", "knn"):
            for variation in ("affine", "color"):
                own = of(found, stage="forms", detector=detector, variation=variation, sampler=sampler)
                values = {cell["form"]: cell["auroc"] for cell in own}
                if len(values) == 3:
                    width = max(values.values()) - min(values.values())
                    ranges.setdefault(sampler, []).append(width)
                    shown = " | ".join(percent(values[form]) for form in ("s", "sigmoid(s)", "exp(s)"))
                    name = "paper's (standardised)" if sampler == "mh T=1" else "portfolio (canonical)"
                    lines.append(f"| {detector} | {variation} | {name} | {shown} | {percent(width)} |")
    if not ranges:
        return [f"Not run yet: {COMMAND}"]
    for sampler, widths in ranges.items():
        bar = " Bar: below 1 point: " + ("holds." if max(widths) < 0.01 else "does not hold.")
        name = "The paper's attack" if sampler == "mh T=1" else "The default attack"
        lines += ["", f"{name}: at most {percent(max(widths))} points over {len(widths)} cases."]
        lines[-1] += bar if sampler == "portfolio" else ""
    return lines


def _foreseen(found: Sequence[Found]) -> str:
    """Of the curve up to an eighth of the budget, the AUROC at the whole budget was foreseen so well."""
    errors, plain = [], []
    for cell in found:
        curve = {int(key): value for key, value in cell["curve"].items()}
        end = max(curve)
        points = [min(curve, key=lambda each, want=end / 2**power: abs(each - want)) for power in (6, 5, 4, 3)]
        if len(set(points)) == 4:
            _, steep, flat = continued(np.array([curve[each] for each in points]))
            ahead = (steep + flat) / 2
            errors.append(abs(ahead - curve[end]))
            plain.append(abs(curve[points[-1]] - curve[end]))
    if not errors:
        return f"Not run yet: {COMMAND}"
    return (
        f"Continued from an eighth of the budget, curves end {percent(float(np.median(errors)))} points (median of "
        f"{len(errors)} searches) from where they ended; taken as they stood there, {percent(float(np.median(plain)))}."
    )


def main_table(found: Sequence[Found], variations: Sequence[str]) -> list[str]:
    lines = [f"| detector | clean | {' | '.join(variations)} | any |", "| --- |" + " ---: |" * (len(variations) + 2)]
    rows = []
    for detector in DETECTORS:
        own = {name: of(found, stage="main", detector=detector, variation=name) for name in variations}
        if any(own.values()):
            clean = next(cells_[0]["clean"] for cells_ in own.values() if cells_)
            rows.append((clean, detector, own))
    for clean, detector, own in sorted(rows, key=lambda each: -each[0]):
        values = [_cell(cells_) for cells_ in own.values()]
        images = [shares(cells_) for name, cells_ in own.items() if cells_ and name != "gan"]
        worst = percent(float(np.min(images, axis=0).mean())) if len(images) == len(variations) - ("gan" in own) else ""
        lines.append(f"| {detector} | {percent(clean)} | {' | '.join(values)} | {worst} |")
    return lines if rows else [f"Not run yet: {COMMAND}"]


def _cell(cells_: Sequence[Found]) -> str:
    if not cells_:
        return "not run"
    mean = float(np.mean([cell["auroc"] for cell in cells_]))
    low, high = (float(np.mean([cell[end] for cell in cells_])) for end in ("low", "high"))
    return f"{percent(mean)} [{percent(low)}–{percent(high)}]"


def orders(found: Sequence[Found], variations: Sequence[str]) -> list[str]:
    """Which orders change: Spearman's correlation, and pairs whose clean order is reversed beyond noise."""
    lines = []
    for name in variations:
        own = {each: of(found, stage="main", detector=each, variation=name) for each in DETECTORS}
        known = [each for each in DETECTORS if own[each]]
        if len(known) < 3:
            continue
        clean = {each: own[each][0]["clean"] for each in known}
        attacked = {each: float(np.mean([cell["auroc"] for cell in own[each]])) for each in known}
        rho = float(spearmanr([clean[each] for each in known], [attacked[each] for each in known]).statistic)
        seeds = min(len(own[each]) for each in known)
        turned, kept, open_ = 0, 0, 0
        for place, one in enumerate(known):
            for two in known[place + 1 :]:
                better, worse = (one, two) if clean[one] > clean[two] else (two, one)
                mean, low, high = difference(own[better], own[worse])
                answer = verdict(mean, low, high, seeds)
                turned, kept, open_ = (
                    turned + (answer == "lower"),
                    kept + (answer == "higher"),
                    open_ + ("cannot" in answer),
                )
        lines.append(
            f"- **{name}**: Spearman's correlation of clean and attacked AUROC over {len(known)} detectors "
            f"{rho:.2f}; of "
            f"{turned + kept + open_} pairs the clean order holds in {kept}, is reversed in {turned} and "
            "cannot be said "
            f"in {open_} ({seeds} search seed{'s' * (seeds != 1)})."
        )
    return lines or [f"Not run yet: {COMMAND}"]


def validity(found: Sequence[Found]) -> list[str]:
    own = [each for each in of(found, stage="main") if "valid" in each]
    if not own:
        return [f"Not run yet: {COMMAND}"]
    lines = ["| detector | " + " | ".join(sorted({each["variation"] for each in own})) + " |"]
    names = sorted({each["variation"] for each in own})
    lines.append("| --- |" + " ---: |" * len(names))
    for detector in DETECTORS:
        shown = []
        for name in names:
            some = [each["valid"] for each in own if (each["detector"], each["variation"]) == (detector, name)]
            shown.append(f"{percent(some[0][0])} [{percent(some[0][1])}–{percent(some[0][2])}]" if some else "not run")
        lines.append(f"| {detector} | {' | '.join(shown)} |")
    curves = [each["truncation"] for each in own if "truncation" in each]
    if curves:
        parts = [f"{key}: {percent(value[0])} %" for key, value in curves[0].items()]
        lines += ["", f"Plain draws of the generator that the judge accepts, by truncation: {', '.join(parts)}."]
    return lines


def table_answer(found: Sequence[Found], variations: Sequence[str]) -> str:
    rows = {}
    for detector in DETECTORS:
        own = [of(found, stage="main", detector=detector, variation=name) for name in variations if name != "gan"]
        if own and all(own):
            rows[detector] = float(np.min([shares(cells_) for cells_ in own], axis=0).mean())
    if not rows:
        return "Cannot say yet: no detector has all its cells."
    best = max(rows, key=lambda name: rows[name])
    return (
        f"Of {len(rows)} detectors of this network, {best} is left with most under the worst of affine, color "
        "and both: "
        f"{percent(rows[best])} % AUROC on SVHN; the others with {percent(min(rows.values()))} to "
        f"{percent(sorted(rows.values())[-2]) if len(rows) > 1 else percent(rows[best])} %. This is one "
        "network and one "
        "set of outliers."
    )


def table_page(found: Sequence[Found]) -> str:
    variations = [
        name for name in ("affine", "color", "affine+color", "gan") if of(found, stage="main", variation=name)
    ]
    wanted = variations or ["affine", "color", "affine+color", "gan"]
    lines = ["# The worst outliers of twelve detectors", ""]
    lines += [
        "**Question.** How much of a detector's AUROC is left when the outliers of one set may be varied in "
        "natural ways and "
        "a search picks the variation that the detector takes for in-distribution most confidently (evaluation via "
        "generation, arXiv 2208.10940, table 2)?",
        "",
        f"**Answer.** {table_answer(found, wanted)}",
        "",
        *_head(found, ("main", "linf")),
        "## Main table",
        "",
        "AUROC in percent, larger = the detector holds; intervals: 95 % over source images; *any*: the worst "
        "of affine, color "
        "and both for each image.",
        "",
        *main_table(found, wanted),
        "",
        "## Which orders change",
        "",
        *orders(found, wanted),
        "",
        "## Are they still digits?",
        "",
        "Share of found images that a classifier of digits accepts (it accepts 95 % of real ones), in percent.",
        "",
        *validity(found),
        "",
        "## In the l-inf ball",
        "",
        *_ball(found),
        "",
        "## How far the searches are from their end",
        "",
        *_ends(found),
        "",
        "## What differs from the paper",
        "",
        *_differs(),
        "",
        *_missing(found, ("main", "linf")),
    ]
    return "\n".join(lines) + "\n"


def _ball(found: Sequence[Found]) -> list[str]:
    own = of(found, stage="linf")
    if not own:
        return [f"Not run yet: {COMMAND} --stages linf"]
    lines = [
        "| detector | clean | black box, the paper's 20,000 steps | white box, Auto-PGD |",
        "| --- | ---: | ---: | ---: |",
    ]
    for detector in FEW:
        shown = [_cell(of(own, detector=detector, sampler=each)) for each in ("paper", "white box")]
        clean = [each["clean"] for each in of(own, detector=detector)]
        lines.append(f"| {detector} | {percent(clean[0]) if clean else ''} | {' | '.join(shown)} |")
    return [*lines, "", "Robustness in the ball is read from the white box."]


def _ends(found: Sequence[Found]) -> list[str]:
    own = [each for each in of(found, stage="main") if "eightfold" in each]
    if not own:
        return [f"Not run yet: {COMMAND}"]
    falls = [each["auroc"] - each["eightfold"][2] for each in own]
    doubted = sum(fall > 0.01 for fall in falls)
    return [
        f"The last doubling of the budget took {percent(float(np.median([each['fall'] for each in own])))} "
        "points (median "
        f"of {len(own)} searches). In {doubted} of them eight times the budget would take a point or more beyond noise."
    ]


def _head(found: Sequence[Found], stages: Sequence[str]) -> list[str]:
    own = [each for each in found if each["stage"] in stages]
    machines = sorted({each["device"] for each in own}) or ["not run yet"]
    sizes = sorted({(each["chains"], each["budget"]) for each in own})
    effort = "; ".join(f"{chains:,} chains of {budget:,} evaluations" for chains, budget in sizes)
    return [
        f"**Command.** `{COMMAND}`, then `python benchmarks/evg_page.py CELLS`",
        "",
        f"**Machine.** {', '.join(machines)}. **Date.** {date.today()}. **Effort.** {effort or 'none yet'}.",
        "",
        "Population: the ResNet-18 of CIFAR-10 (one network); ID validation and test of OpenOOD's split; "
        "source images drawn "
        "with every class in its share; statements are about other images of these sets, not about other networks.",
        "",
    ]


def _differs() -> list[str]:
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


def _missing(found: Sequence[Found], stages: Sequence[str]) -> list[str]:
    keys = ("stage", "outliers", "detector", "variation", "sampler", "seed", "form", "energy")
    done = {tuple(each[key] for key in keys) for each in found}
    wanted = [each for each in cells(True) if each.stage in stages]
    missing = [each for each in wanted if tuple(getattr(each, key) for key in keys) not in done]
    if not missing:
        return ["All cells were run."]
    counts = {
        (each.stage, each.seed): sum((other.stage, other.seed) == (each.stage, each.seed) for other in missing)
        for each in missing
    }
    named = "; ".join(f"{stage}, search seed {seed}: {count}" for (stage, seed), count in sorted(counts.items()))
    return [f"**Not run yet** ({len(missing)} cells): {named}. Go on with `{COMMAND}`."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", type=Path)
    parser.add_argument("--samplers", type=Path, help="write the page of samplers here")
    parser.add_argument("--table", type=Path, help="write the page of the main table here")
    options = parser.parse_args()
    found = read(options.cells)
    for path, text in ((options.samplers, samplers_page(found)), (options.table, table_page(found))):
        if path is None:
            print(text)
        else:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
