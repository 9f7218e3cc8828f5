"""The page of samplers and temperatures, from the cells of ``evg_study.py``; ``evg_page.py`` writes it."""

from collections.abc import Sequence

import numpy as np

from evg_cells import COMMAND, Found, difference, differs, head, missing, of, percent
from evg_study import FEW, SAMPLERS
from oodscope.runs.attack.convergence import continued


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


def against(found: Sequence[Found], one: str, other: str) -> str | None:
    """A sentence about two samplers on SVHN, over all detectors and variations that have both; None without any."""
    pairs = []
    for variation in ("affine", "color"):
        for detector in FEW:
            cells = [
                of(found, stage="report", variation=variation, detector=detector, sampler=each) for each in (one, other)
            ]
            if all(cells):
                pairs.append(difference(*cells))
    if not pairs:
        return None
    words, mean = [each.verdict for each in pairs], float(np.mean([each.mean for each in pairs]))
    return (
        f"{one} ends {percent(abs(mean))} points {'lower' if mean < 0 else 'higher'} than {other} on average: lower in "
        f"{words.count('lower')}, higher in {words.count('higher')} and undecided in {words.count('cannot say')} of "
        f"{len(words)} pairs of detector and variation"
    )


def sampler_answer(found: Sequence[Found]) -> str:
    """What was chosen on Tiny ImageNet, and whether SVHN agrees."""
    best = chosen_on_tin(found)
    if best is None:
        return "Cannot say yet: no sampler has all cells on Tiny ImageNet."
    text = f"On Tiny ImageNet {best} leaves the four detectors with least (mean over detectors and variations)."
    said = [against(found, best, other) for other in dict.fromkeys(("portfolio", "mh T=1")) if other != best]
    said = [each for each in said if each is not None]
    if not said:
        return text + " SVHN was not run yet."
    if best != "portfolio" and (kept := against(found, "portfolio", "mh T=1")):
        said.append(kept)
    return (
        f"{text} On SVHN, which no choice has seen, with the same evaluations: {'; '.join(said)} (95 % intervals over "
        "source images and search seeds, each pair by itself)."
    )


def samplers_page(found: Sequence[Found]) -> str:
    lines = ["# Which search finds the worst outliers", ""]
    lines += [
        "**Question.** At equal evaluations of the detector, which sampler leaves it with least, and is a portfolio of "
        "several the better default (figure 2 of evaluation via generation, with real data)?",
        "",
        f"**Answer.** {sampler_answer(found)}",
        "",
        *head(found, ("choose", "report")),
    ]
    for stage, words in (("choose", "Tiny ImageNet (here samplers are chosen)"), ("report", "SVHN (reported)")):
        for variation in ("affine", "color"):
            lines += [f"## {words}, {variation}", "", "Attacked AUROC in percent, lowest mean first.", ""]
            lines += [*sampler_table(found, stage, variation), ""]
    lines += ["## The same detector in other forms", "", *_forms(found), ""]
    lines += ["## How far a curve foresees its end", "", _foreseen(found), ""]
    lines += ["## What differs from the paper", "", *differs(), "", *missing(found, ("choose", "report", "forms"))]
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
