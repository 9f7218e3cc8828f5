"""Make the pages of evaluation via generation from the cells of ``evg_study.py``; every sentence is made from numbers.

    python benchmarks/evg_page.py CELLS [--samplers docs/results/attack-samplers.md] [--table docs/results/evg.md]

Without names of files the pages are printed. What was not run is named on the page, with the command that goes on.
"""

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from evg_cells import (
    COMMAND,
    SEEDS,
    Found,
    cell_text,
    difference,
    differs,
    head,
    holm,
    mark,
    marked_note,
    missing,
    of,
    percent,
    read,
    shares,
)
from evg_samplers_page import samplers_page
from evg_study import DETECTORS, FEW
from oodscope.runs.attack.validity import LEAST

RESULTS = Path(__file__).parent.parent / "docs" / "results"
FORMER = RESULTS / "evg" / "all.csv"
JUDGE = RESULTS / "data" / "svhn-judge.json"
"""What the last judge of ``svhn_judge.py`` says of itself."""


def main_table(found: Sequence[Found], variations: Sequence[str]) -> list[str]:
    lines = [f"| detector | clean | {' | '.join(variations)} | any |", "| --- |" + " ---: |" * (len(variations) + 2)]
    rows = []
    for detector in DETECTORS:
        own = {name: of(found, stage="main", detector=detector, variation=name) for name in variations}
        if any(own.values()):
            clean = next(cells_[0]["clean"] for cells_ in own.values() if cells_)
            rows.append((clean, detector, own))
    for clean, detector, own in sorted(rows, key=lambda each: -each[0]):
        values = [cell_text(cells_) for cells_ in own.values()]
        images = [shares(cells_) for name, cells_ in own.items() if cells_ and name != "gan"]
        whole = images and len(images) == len(variations) - ("gan" in own)
        worst = percent(float(np.min(images, axis=0).mean())) if whole else "not run"
        worst += mark(cell for name, each in own.items() for cell in each if name != "gan") if whole else ""
        lines.append(f"| {detector} | {percent(clean)} | {' | '.join(values)} | {worst} |")
    return lines if rows else [f"Not run yet: {COMMAND}"]


def min_rank_table(found: Sequence[Found], variations: Sequence[str]) -> list[str]:
    """MinRank of clean and attacked images: mean and standard error over the runs of the first search seed."""
    own = of(found, stage="main", seed=0)
    if not own:
        return [f"Not run yet: {COMMAND}"]
    runs, chains = len(own[0]["min_rank"]), own[0]["chains"] // len(own[0]["min_rank"])
    lines = [
        f"How many of {own[0]['n_id']:,} ID test images look more in-distribution than the worst outlier: mean over "
        f"{runs} runs of {chains} chains ± standard error, the same images in every column but the generator's.",
        "",
        f"| detector | clean | {' | '.join(variations)} |",
        "| --- |" + " ---: |" * (len(variations) + 1),
    ]

    def shown(ranks: Sequence[int]) -> str:
        return f"{np.mean(ranks):,.0f} ± {np.std(ranks, ddof=1) / np.sqrt(len(ranks)):,.0f}"

    for detector in DETECTORS:
        cells = {name: of(own, detector=detector, variation=name) for name in variations}
        known = [each for found_cells in cells.values() for each in found_cells]
        if known:
            values = [shown(each[0]["min_rank"]) if each else "not run" for each in cells.values()]
            lines.append(f"| {detector} | {shown(known[0]['clean_min_rank'])} | {' | '.join(values)} |")
    return lines


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
        pairs = [
            (one, two) if clean[one] > clean[two] else (two, one)
            for place, one in enumerate(known)
            for two in known[place + 1 :]
        ]
        answers = holm([difference(own[better], own[worse]) for better, worse in pairs])
        seeds = min(len(own[each]) for each in known)
        few = f"; with fewer than {SEEDS} search seeds nothing can be said of a pair" if seeds < SEEDS else ""
        lines.append(
            f"- **{name}**: Spearman's correlation of clean and attacked AUROC over {len(known)} detectors {rho:.2f}; "
            f"of {len(pairs)} pairs the clean order holds in {answers.count('higher')}, is reversed in "
            f"{answers.count('lower')} and cannot be said in {answers.count('cannot say')} (Holm over the pairs; "
            f"{seeds} search seed{'s' * (seeds != 1)}{few})."
        )
    return lines or [f"Not run yet: {COMMAND}"]


def new_judge(file: Path) -> str:
    """What the judge can do that searches will be asked about next."""
    if not file.exists():
        return "Train one by `benchmarks/svhn_judge.py`."
    told = json.loads(file.read_text(encoding="utf-8"))
    accuracy = float(told["accuracy"])
    word = "knows enough" if accuracy >= LEAST else "does not know enough"
    return (
        f"The judge of `benchmarks/svhn_judge.py` ({told['architecture']}, {told['date']}, a processor) recognises "
        f"{percent(accuracy)} % of {int(told['unseen']):,} unseen digits, which {word}; no search was made since."
    )


def validity(found: Sequence[Found]) -> list[str]:
    judged = [each for each in of(found, stage="main") if "valid" in each]
    own = [each for each in judged if each.get("judge_accuracy", 0.0) >= LEAST]
    if not own:
        if not judged:
            return [f"Not run yet: {COMMAND}"]
        known = sorted({f"{percent(each['judge_accuracy'])} %" for each in judged if "judge_accuracy" in each})
        said = f"it recognises {', '.join(known)} of unseen digits" if known else "what it recognises was not recorded"
        return [
            f"Cannot say: a judge must recognise at least {percent(LEAST)} % of the source images, and {said} "
            f"({len(judged)} searches). {new_judge(JUDGE)} Go on with `{COMMAND}`."
        ]
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
    wanted = ["affine", "color", "affine+color", "gan"]
    lines = ["# The worst outliers of twelve detectors", ""]
    lines += [
        "**Question.** How much of a detector's AUROC is left when the outliers of one set may be varied in "
        "natural ways and "
        "a search picks the variation that the detector takes for in-distribution most confidently (evaluation via "
        "generation, arXiv 2208.10940, table 2)?",
        "",
        f"**Answer.** {table_answer(found, wanted)}",
        "",
        *head(found, ("main", "linf")),
        *marked_note(found, ("main", "linf")),
        "## Main table",
        "",
        "AUROC in percent, larger = the detector holds; intervals: 95 % over source images; *any*: the worst "
        "of affine, color "
        "and both for each image.",
        "",
        *main_table(found, wanted),
        "",
        "## MinRank",
        "",
        *min_rank_table(found, wanted),
        "",
        "## Which orders change",
        "",
        *orders(found, wanted),
        "",
        "## Are they still digits?",
        "",
        "Share of found images, in percent, that a classifier of digits accepts (its threshold: 95 % of real ones).",
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
        "## The paper's search, all detectors",
        "",
        *former(FORMER),
        "",
        "## What differs from the paper",
        "",
        *differs(),
        "",
        *missing(found, ("main", "linf")),
    ]
    return "\n".join(lines) + "\n"


def former(file: Path) -> list[str]:
    """Searches as the paper makes them, from their kept table: another attack, not comparable with those above."""
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    names = ("clean", "affine", "color", "affine+color", "gan", "any")

    def shown(row: dict[str, str], name: str) -> str:
        value, low, high = (float(row[f"auroc {name}{end}"]) for end in ("", " low", " high"))
        return f"{percent(value)} [{percent(low)}–{percent(high)}]"

    best = max(rows, key=lambda row: float(row["auroc any"]))
    return [
        "Metropolis-Hastings at T = 1, standardised scores, the first 1,000 of 5,000 SVHN digits, 2,000 evaluations, "
        "one search seed, 9,000 ID test images, detectors fitted with 50,000 training images, another generator; "
        f"NVIDIA H200, 2026-11-15. Of {len(rows)} detectors {best['detector']} is left with most under the worst of "
        f"affine, color and both: {shown(best, 'any')}; with one search seed nothing is said of pairs.",
        "",
        f"| detector | {' | '.join(names)} |",
        "| --- |" + " ---: |" * len(names),
        *(f"| {row['detector']} | {' | '.join(shown(row, name) for name in names)} |" for row in rows),
    ]


def _ball(found: Sequence[Found]) -> list[str]:
    own = of(found, stage="linf")
    if not own:
        return [f"Not run yet: {COMMAND} --stages linf"]
    lines = [
        "| detector | clean | black box, the paper's 20,000 steps | white box, Auto-PGD |",
        "| --- | ---: | ---: | ---: |",
    ]
    for detector in FEW:
        shown = [cell_text(of(own, detector=detector, sampler=each)) for each in ("paper", "white box")]
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
