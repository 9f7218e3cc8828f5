"""The page of samplers and temperatures, from the cells of ``evg_study.py``; ``evg_page.py`` writes it."""

from collections.abc import Sequence

import numpy as np

from evg_cells import COMMAND, Found, difference, differs, head, mark, marked_note, missing, of, percent
from evg_study import FEW, FORMED, FORMS, SAMPLERS
from oodscope.runs.attack.convergence import continued

COMPARED = ("choose", "report")
"""Stages that compare samplers."""

BAR = 0.01
"""Points of AUROC, as a share, that a change of the score may make."""


def common(found: Sequence[Found], stage: str, variation: str) -> list[str]:
    """Detectors that every sampler has attacked with every search seed of the others."""
    cells = {
        (sampler, detector): {
            each["seed"] for each in of(found, stage=stage, variation=variation, sampler=sampler, detector=detector)
        }
        for sampler in SAMPLERS
        for detector in FEW
    }
    whole = [name for name in FEW if len({frozenset(cells[each, name]) for each in SAMPLERS}) == 1]
    return [name for name in whole if cells[next(iter(SAMPLERS)), name]]


def sampler_table(found: Sequence[Found], stage: str, variation: str) -> list[str]:
    """Attacked AUROC by sampler (rows) and detector (columns), means over seeds; the mean over what all have."""
    shared = common(found, stage, variation)
    lines = [f"| samplers | {' | '.join(FEW)} | mean of {', '.join(shared) or 'none'} | seeds |"]
    lines.append("| --- |" + " ---: |" * (len(FEW) + 2))
    rows = []
    for sampler in SAMPLERS:
        own = {each: of(found, stage=stage, variation=variation, sampler=sampler, detector=each) for each in FEW}
        if any(own.values()):
            values = {name: float(np.mean([cell["auroc"] for cell in each])) for name, each in own.items() if each}
            mean = float(np.mean([values[name] for name in shared])) if shared else float("nan")
            old = mark(cell for each in own.values() for cell in each)
            rows.append((mean, sampler + old, values, min(len(each) for each in own.values() if each)))
    for mean, sampler, values, seeds in sorted(rows):
        shown = " | ".join(percent(values[each]) if each in values else "not run" for each in FEW)
        lines.append(f"| {sampler} | {shown} | {percent(mean) if shared else ''} | {seeds} |")
    return lines if rows else [f"Not run yet: {COMMAND}"]


def chosen_on_tin(found: Sequence[Found]) -> tuple[str, str] | None:
    """The single sampler, or the portfolio, that leaves detectors with least on Tiny ImageNet; and of what it is so."""
    shared = {name: common(found, "choose", name) for name in ("affine", "color")}
    if not any(shared.values()):
        return None
    means = {
        sampler: float(
            np.mean([
                cell["auroc"]
                for variation, detectors in shared.items()
                for detector in detectors
                for cell in of(found, stage="choose", variation=variation, detector=detector, sampler=sampler)
            ])
        )
        for sampler in SAMPLERS
    }  # fmt: skip
    what = "; ".join(f"{variation}: {', '.join(names)}" for variation, names in shared.items() if names)
    return min(means, key=lambda name: means[name]), what


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
    chosen = chosen_on_tin(found)
    if chosen is None:
        return "Cannot say yet: no detector was attacked by every sampler on Tiny ImageNet."
    best, what = chosen
    text = f"On Tiny ImageNet {best} leaves detectors with least on average (attacked by every sampler; {what})."
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
        *head(found, COMPARED),
    ]
    lines += marked_note(found, COMPARED)
    for stage, words in (("choose", "Tiny ImageNet (here samplers are chosen)"), ("report", "SVHN (reported)")):
        for variation in ("affine", "color"):
            lines += [f"## {words}, {variation}", "", "Attacked AUROC in percent, lowest mean first.", ""]
            lines += [*sampler_table(found, stage, variation), ""]
    compared = [each for each in found if each["stage"] in COMPARED]
    lines += ["## Seconds", "", _seconds(compared), ""]
    lines += ["## The same detector in other forms", "", forms_answer(found), "", *forms_table(found), ""]
    lines += ["## How far a curve foresees its end", "", _foreseen(compared), ""]
    lines += ["## What differs from the paper", "", *differs(), "", *missing(found, ("choose", "report", "forms"))]
    return "\n".join(lines) + "\n"


def _seconds(found: Sequence[Found]) -> str:
    """What equal evaluations cost: one with a gradient has a backward pass too."""
    own = {name: [each["seconds"] for each in found if each["sampler"] == name] for name in SAMPLERS}
    told = ", ".join(f"{name} {np.median(each):.1f}" for name, each in own.items() if each)
    if not told:
        return f"Not run yet: {COMMAND}"
    return f"Median of a search, side by side with others on one machine: {told}. Gradients cost a backward pass too."


ATTACKS = {"portfolio": "default", "mh T=1": "paper's"}
"""Samplers of the stage ``forms``, and what they are called."""


def forms(found: Sequence[Found]) -> dict[tuple[str, str, str], dict[str, float]]:
    """AUROC by form, for every sampler, detector and variation that has all of them."""
    cases = {}
    for sampler in ATTACKS:
        for detector in FORMED:
            for variation in ("affine", "color"):
                own = of(found, stage="forms", detector=detector, variation=variation, sampler=sampler)
                values = {cell["form"]: cell["auroc"] for cell in own}
                if set(values) == set(FORMS):
                    cases[sampler, detector, variation] = values
    return cases


def forms_answer(found: Sequence[Found]) -> str:
    """Whether a monotone change of a score changes what an attack finds, on CIFAR-10."""
    cases = forms(found)
    widths = {
        sampler: [
            max(values.values()) - min(values.values()) for (each, _, _), values in cases.items() if each == sampler
        ]
        for sampler in ATTACKS
    }
    ours, theirs = widths["portfolio"], widths["mh T=1"]
    if not ours:
        return f"On CIFAR-10 cannot say, not run yet: {COMMAND} --stages forms."
    below, whole = sum(width < BAR for width in ours), 2 * len(FORMED)
    word = "holds" if below == len(ours) == whole else "cannot say" if below == len(ours) else "does not hold"
    text = (
        f"On CIFAR-10 with SVHN as outliers less than 1 point under the default attack: {word}, {below} of {len(ours)} "
        f"cases run of {whole} ({', '.join(FORMED)} of one ResNet-18, affine and color, one search seed), at most "
        f"{100 * max(ours):.2f} points"
    )
    return text + (f"; under the paper's attack at most {100 * max(theirs):.2f}." if theirs else ".")


def forms_table(found: Sequence[Found]) -> list[str]:
    """AUROC of s, σ(s) and exp(s) under one attack; the range is what a monotone change of the score changes."""
    cases, own = forms(found), of(found, stage="forms")
    if not cases:
        return [f"Not run yet: {COMMAND} --stages forms"]
    sizes = sorted({(each["chains"], each["budget"], each["n_id"], each["n_train"], each["device"]) for each in own})
    effort = "; ".join(
        f"{chains:,} chains of {budget:,} evaluations, ranked among {n_id:,} ID test images, detectors fitted with "
        f"{n_train:,} training images, {device}"
        for chains, budget, n_id, n_train, device in sizes
    )
    lines = [
        f"{effort}. {', '.join(sorted({each['date'] for each in own}))}.",
        "",
        "| attack | detector | variation | s | σ(s) | exp(s) | range |",
        "| --- | --- | --- |" + " ---: |" * 4,
    ]
    for (sampler, detector, variation), values in cases.items():
        width = max(values.values()) - min(values.values())
        shown = " | ".join(f"{100 * values[form]:.2f}" for form in FORMS)
        lines.append(f"| {ATTACKS[sampler]} | {detector} | {variation} | {shown} | {100 * width:.2f} |")
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
