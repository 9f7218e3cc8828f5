"""The page of ``verdict_simulation.py``: tables and sentences, all of them functions of the numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import beta

Piece = Mapping[str, Any]


def percent(share: float) -> str:
    """``0.0512`` as ``5.1``."""
    return f"{100 * share:.1f}"


def bounds(count: int, of: int) -> tuple[float, float]:
    """One-sided 95 % bounds of a rate, either side (Clopper & Pearson)."""
    low = float(beta.ppf(0.05, count, of - count + 1)) if count else 0.0
    return low, float(beta.ppf(0.95, count + 1, of - count)) if count < of else 1.0


def verdict(claim: str, failing: Sequence[str], rows: int) -> str:
    """The claim, and where it fails; nothing where there is no row."""
    if not rows:
        return "Not run yet."
    return f"{claim} in every row." if not failing else f"{claim}, but not here: {'; '.join(failing)}."


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of Markdown."""
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


def chosen(done: Mapping[str, Piece], kind: str) -> dict[str, Piece]:
    """The pieces of one kind, by what stands behind it."""
    return {name.partition(": ")[2]: each for name, each in done.items() if name.startswith(f"{kind}: ")}


def cells(done: Mapping[str, Piece]) -> list[str]:
    """The twelve cells, and whether they meet the bars."""
    found = chosen(done, "cell")
    heads = ("cell", "false, one pair", "upper 95 % bound", "power, one pair", "oracle", "power / oracle")
    rows, wrong, weak = [], [], []
    for name, own in found.items():
        bound, ratio = bounds(own["false"], own["pairs"])[1], own["power"] / own["oracle"]
        wrong += [name] * (bound > 0.065)
        weak += [name] * (ratio < (0.65 if name.startswith("5 ") else 0.8))
        rates = [percent(each) for each in (own["false"] / own["pairs"], bound, own["power"], own["oracle"])]
        family = f"{percent(own['family_false'] / own['families'])} of {own['families']}"
        rows.append([name, *rates, f"{ratio:.2f}", family, percent(own["family_power"])])
    return [
        *table((*heads, "false, family of six", "power in the family"), rows),
        "",
        verdict("The upper bound of false verdicts is at most 6.5 %", wrong, len(rows)),
        verdict("Power of one pair is at least 0.80 of the oracle's (0.65 with 5 classes)", weak, len(rows)),
    ]


def fpr(done: Mapping[str, Piece]) -> list[str]:
    """FPR95 among many detectors."""
    found = chosen(done, "fpr")
    rows, weak, wrong = [], [], []
    for name, own in found.items():
        count, low = int(name), bounds(own["false"], own["tables"])[0]
        weak += [f"{name} detectors"] * (own["power"] < 0.8)
        wrong += [f"{name} detectors"] * (low > 0.05)
        false = "–" if count < 3 else f"{percent(own['false'] / own['tables'])}"
        rows.append([name, str(count * (count - 1) // 2), percent(own["power"]), false, str(own["tables"])])
    return [
        "One detector is better by 1.3 times the difference that an oracle would detect among all pairs, the others",
        "are equal; 800 ID and 800 OOD images. False: a pair of equal ones is held apart. The noise comes from what",
        "each image contributes, with the ratio of the densities at the threshold from a local logistic regression.",
        "With a bootstrap, which knows its own noise within 12 % only, the same simulation had 72 % power among 60",
        "detectors.",
        "",
        *table(("detectors", "pairs", "power at 1.3 x, all pairs adjusted", "false tables", "tables"), rows),
        "",
        verdict("Power at 1.3 times the oracle's detectable difference is at least 80 %", weak, len(rows)),
        verdict("False tables are not significantly more than 5 %", wrong, len(rows)),
    ]


def answer(done: Mapping[str, Piece], missing: Sequence[str]) -> str:
    """What the page found, as a function of its numbers."""
    twelve, many, best = (chosen(done, kind) for kind in ("cell", "fpr", "chosen"))
    parts = []
    if twelve:
        worst = max(bounds(own["false"], own["pairs"])[1] for own in twelve.values())
        least = min(own["power"] / own["oracle"] for name, own in twelve.items() if not name.startswith("5 "))
        held = worst <= 0.065 and least >= 0.8
        parts.append(
            f"{'They do' if held else 'They do not'} in {len(twelve)} cells: false verdicts have an upper bound of at "
            f"most {percent(worst)} % (bar 6.5), power is at least {least:.2f} of the oracle's from 10 classes on "
            "(bar 0.80)"
        )
    if many:
        weakest = min(own["power"] for own in many.values())
        counts = " to ".join(str(each) for each in (min(map(int, many)), max(map(int, many))))
        parts.append(f"FPR95 among {counts} detectors: power of at least {percent(weakest)} % (bar 80)")
    if best:
        least = min(own["held"] / own["tables"] for own in best.values())
        parts.append(f"the interval of a recommended detector holds in at least {percent(least)} % (bar 93)")
    return "; ".join(parts) + (f"; {len(missing)} pieces are not run." if missing else ".")


def selected(done: Mapping[str, Piece]) -> list[str]:
    """The value of a detector that was chosen because it looked best."""
    found = chosen(done, "chosen")
    heads = ("OOD classes", "cross-fitted interval holds", "interval around the best value holds")
    rows, failing = [], []
    for name, own in found.items():
        failing += [f"{name} classes"] * (own["held"] / own["tables"] < 0.93)
        shares = [percent(own[each] / own["tables"]) for each in ("held", "naive")]
        rows.append([name, *shares, f"{own['bias']:+.2f}", f"{own['apparent_bias']:+.2f}", str(own["tables"])])
    claim = "The interval of the best of 46 equal detectors holds the truth in at least 93 % of tables"
    return [
        "These tables took no part in the design of the interval.",
        "",
        *table((*heads, "bias, cross-fitted", "bias of the best value", "tables"), rows),
        "",
        verdict(claim, failing, len(rows)),
    ]


def statements(done: Mapping[str, Piece], names: Sequence[str]) -> list[str]:
    """How often other statements hold."""
    found = chosen(done, "statements")
    rows = [
        [name, *(percent(own[each] / own["tables"]) for each in names), str(own["tables"])]
        for name, own in found.items()
    ]
    low = [
        f"{each} with {name} classes"
        for name, own in found.items()
        for each in names
        if bounds(own[each], own["tables"])[1] < 0.95
    ]
    claim = "No share is significantly below 95 %"
    return [*table(("OOD classes", *names, "tables"), rows), "", verdict(claim, low, len(rows))]


NAMES = ("class interval", "paired interval", "all rank intervals", "best is a candidate")


def page(done: Mapping[str, Piece], missing: Sequence[str], about: Piece, refused: Sequence[str]) -> str:
    """The whole page."""
    seconds = sum(each["seconds"] for each in done.values())
    parts = [
        [
            HEAD.format(**about, pairs=3 * about["tables"], answer=answer(done, missing)),
            "## Twelve cells",
            "",
            *cells(done),
        ],
        ["Cells that are refused:", "", *refused],
        ["## FPR95 among many detectors", "", *fpr(done)],
        ["## The value of a chosen detector", "", *selected(done)],
        ["## How often other statements hold, six unequal detectors", "", *statements(done, NAMES)],
        [f"Not yet run: {', '.join(missing) or 'nothing'}. Processor time: {seconds:.0f} s."],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


HEAD = """# Verdicts under simulation

**Question.** Detectors that do not differ over OOD classes should get a false verdict in 5 % of tables; a difference
that an oracle (which knows the variance) sees in 80 % of tables should be seen nearly as often. Do the verdicts of
oodscope hold that?

**Answer.** {answer}

**Command.** `python benchmarks/verdict_simulation.py --tables {tables} --write docs/results/verdicts.md`

**Machine.** {machine}.

**Date.** {date}

An OOD score is 1 + effect of its class (sd 0.4, shared by detectors) + the detector's own effect of it (sd 0.3) +
noise of the image (sd 1, 80 % shared); 400 ID images, 20 OOD images a class (40 with 5 classes, 10 with 200). Skewed
effects are exponential. Networks move a method by sd {luck}. {tables} tables of six detectors a cell, a quarter as
many for power; one pair: the three pairs of a table that share no detector, {pairs} in all; every 16th table is a
family of six. Rates in percent.
"""
