"""docs/results/scale.md from docs/results/data/scale.json: tables and sentences, none of them typed in.

python benchmarks/scale.py page     # the page again, from what is there
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from scale_paper import paper_section

FIGURES, PAGE = "scale.json", "scale.md"
Figures = dict[str, Any]

WAYS = {
    "one process": "one process, nothing divided",
    "two workers": "`--workers 2`",
    "by hand": "`plan`, then `work` in two processes, then `run`",
    "kills": "`--workers 3`, SIGKILL to a worker that is at a unit",
    "ray": "`--on ray`: a head and two workers on loopback, one worker node killed",
    "slurm": "`--on slurm`, simulated: an array of 8, tasks preempted by SIGTERM",
}
SHARD_IMAGES, FASTER, OVERHEAD, POINTS = 16_384, 1.8, 0.02, 0.3
"""Bars: 20 shards more than one process, twice as fast but for a tenth, two per cent, and points of accuracy."""
SECONDS, AUROC, DETECTORS, SPREAD = 0.1, 0.02, 40, 1e-4
"""Bars: of an import, points of AUROC of so many detectors from float16, and logits from the head."""
HOLDS, FAILS, OPEN, UNKNOWN = "holds", "does not hold", "not yet run", "cannot say"


@dataclass(frozen=True)
class Verdict:
    """What a bar came to: a word, and the figure that it stands on."""

    word: str
    figure: str = ""


def judged(kept: bool, figure: str) -> Verdict:
    return Verdict(HOLDS if kept else FAILS, figure)


def compared(found: Figures) -> dict[str, Figures]:
    """Ways that ran on the versions of libraries that one process ran on."""
    one = found.get("one process", {})
    return {way: each for way, each in found.items() if way in WAYS and each.get("state") == one.get("state")}


def same_numbers(found: Figures) -> Verdict:
    """Whoever worked, the digests of every score and interval."""
    ways = compared(found)
    if "one process" not in ways or len(ways) < 2:
        return Verdict(OPEN)
    one = ways.pop("one process")
    equal = [way for way, each in ways.items() if each["digest"] == one["digest"]]
    most = max(each["forwarded"] - one["forwarded"] for each in ways.values())
    figure = f"{len(equal)} of {len(ways)} ways equal to the bit; at most {most:,} images more through the network"
    if len(equal) == len(ways) and most <= 20 * SHARD_IMAGES and len(ways) < len(WAYS) - 1:
        return Verdict(UNKNOWN, f"{figure}; {len(WAYS) - 1 - len(ways)} ways are not yet run")
    return judged(len(equal) == len(ways) and most <= 20 * SHARD_IMAGES, figure)


def preempted(found: Figures) -> Verdict:
    """The array that lost tasks on its way."""
    ways = compared(found)
    if "slurm" not in ways or "one process" not in ways:
        return Verdict(OPEN)
    each = ways["slurm"]
    figure = f"array of 8, {each['preempted']} tasks preempted, numbers of one process"
    return judged(each["digest"] == ways["one process"]["digest"] and each["preempted"] >= 2, figure)


def twice_as_fast(found: Figures) -> Verdict:
    """One worker against two, by the clock; and what others did on the cores meanwhile."""
    if "ratios" not in found:
        return Verdict(OPEN)
    ratios = found["ratios"]
    figure = f"{found['ratio']:.2f} times ({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} turns)"
    others = max(each["others"] for name in ("one", "two") for each in found[name])
    if others > 0.1 and found["ratio"] < FASTER:
        return Verdict(UNKNOWN, f"{figure}, while other work took up to {others:.1f} cores")
    return judged(found["ratio"] >= FASTER, figure)


def seam(found: Figures) -> Verdict:
    """Units against the plain loop, by processor time."""
    if "pairs" not in found:
        return Verdict(OPEN)
    low, high = found["low"], found["high"]
    figure = f"{found['median']:+.1%} of processor time (95% interval {low:+.1%} to {high:+.1%})"
    if low <= OVERHEAD < high:
        return Verdict(UNKNOWN, figure)
    return judged(high <= OVERHEAD, figure)


def once_each(found: Figures) -> Verdict:
    """Twenty models, two workers; then one that fails."""
    if not found:
        return Verdict(OPEN)
    whole, broken, count = found["all"], found["one fails"], found["models"]
    once = whole["status"] == 0 and whole["evaluations"] == count
    spared = broken["status"] == 1 and broken["evaluations"] == count - 1 and len(broken["said"]) == 1
    figure = (
        f"{whole['evaluations']} evaluations of {count} models; with one that fails {broken['evaluations']} results"
    )
    return judged(once and spared, f"{figure} and {len(broken['said'])} line")


def passed(*names: str) -> Callable[[Figures], Verdict]:
    """Tests that claim it."""

    def verdict(found: Figures) -> Verdict:
        if any(name not in found for name in names):
            return Verdict(OPEN)
        figure = "; ".join(f"{name}: {found[name]['said']}" for name in names)
        # a test that was skipped has shown nothing
        shown = all(re.search(r"\d+ passed", found[name]["said"]) for name in names)
        skipped = any("skipped" in found[name]["said"] for name in names)
        kept = shown and all(found[name]["status"] == 0 for name in names)
        return Verdict(UNKNOWN, figure) if kept and skipped else judged(kept, figure)

    return verdict


def light(found: Figures) -> Verdict:
    """What the package's import costs, and one line where Ray is absent."""
    if not found:
        return Verdict(OPEN)
    figure = f"{found['seconds']:.3f} s of processor time ({found['bare']:.3f} s of it the interpreter); "
    figure += f"imported of the heavy ones: {found['heavy']}; `{found['said'][-1] if found['said'] else ''}`"
    said = len(found["said"]) == 1 and "oodscope[ray]" in found["said"][0] and found["status"] != 0
    return judged(found["seconds"] <= SECONDS and found["heavy"] == "[]" and said, figure)


def points_between(found: Figures) -> list[float]:
    """Points of accuracy by which two ranks differ from one process, for each seed."""
    one, two = (found["accuracy"][count] for count in ("1", "2"))
    return [100 * (theirs[0] - ours[0]) / ours[1] for ours, theirs in zip(one, two)]


def shared(found: Figures) -> Verdict:
    """Two ranks against one process. Rounding makes them two trainings, so a bar below their noise cannot be judged."""
    if not found:
        return Verdict(OPEN)
    points = np.array(points_between(found))
    half = float(stats.t.ppf(0.975, len(points) - 1) * points.std(ddof=1) / np.sqrt(len(points)))
    mean, tests = float(points.mean()), found["tests"]
    figure = f"accuracy {', '.join(f'{each:+.2f}' for each in points)} points in {len(points)} seeds, mean {mean:+.2f} "
    figure += f"(95% interval {mean - half:+.2f} to {mean + half:+.2f}); weights and a killed rank: {tests['said']}"
    if tests["status"] or abs(mean) - half > POINTS:
        return Verdict(FAILS, figure)
    return Verdict(HOLDS if float(np.abs(points).max()) <= POINTS else UNKNOWN, figure)


def halved(found: Figures) -> Verdict:
    """AUROC from float16, and logits from the head."""
    if not found:
        return Verdict(OPEN)
    name, worst = next(iter(found["points"].items()))
    figure = f"{found['detectors']} detectors, at most {worst:.4f} points ({name}); logits {found['logits']:.1e} of "
    figure += "the spread"
    return judged(worst <= AUROC and found["logits"] <= SPREAD and found["detectors"] >= DETECTORS, figure)


BARS: list[tuple[str, str, Callable[[Figures], Verdict] | str]] = [
    ("1 same numbers whoever works", "numbers", same_numbers),
    (f"2 two workers at least {FASTER} times one", "speed", twice_as_fast),
    (f"2 the seam at most {OVERHEAD:.0%} with one worker", "overhead", seam),
    ("3 opening is free", "", "[what opening costs](opening-speed.md)"),
    ("4 extraction at 90% of the slower of network and decoding", "", "[from files to verdict](speed.md)"),
    ("5 a damaged store is computed anew or refused", "", "[what opening costs](opening-speed.md)"),
    ("6 first writer wins: 8 processes, 1,000 races", "stores", passed("races on a disk", "races on S3")),
    ("7 Slurm without Slurm", "numbers", preempted),
    ("8 a study of 20 models", "study", once_each),
    (f"9 without Ray one line; import at most {SECONDS} s", "imports", light),
    ("10 one training, two ranks", "ranks", shared),
    (f"11 float16 within {AUROC} points", "float16", halved),
    ("12 mixed devices are told", "stores", passed("mixed devices")),
    ("13 64 processes on one database", "stores", passed("databases", "network file system")),
    ("14 random plans, shares and kills", "stores", passed("plans", "shares and kills")),
]


def bars(known: Figures) -> Iterator[str]:
    """Every bar with its verdict, its figure, and the command that made it."""
    yield "| bar | verdict | figure | command |"
    yield "|---|---|---|---|"
    for name, part, judge in BARS:
        if isinstance(judge, str):
            yield f"| {name} | on another page | {judge} | |"
            continue
        verdict = judge(known.get(part, {}).get("figures", {}))
        yield f"| {name} | **{verdict.word}** | {verdict.figure} | `python benchmarks/scale.py {part}` |"


def ways_table(found: Figures) -> Iterator[str]:
    """Every way, and what happened on it."""
    if "one process" not in found:
        return
    one, ways = found["one process"], compared(found)
    yield (
        f"Glyphs, a small network that is trained, 12 detectors, two protocols: {one['scores']:,} rows of scores and "
        f"{one['numbers']:,} measurements with their intervals. Equal means the same digests of both. "
        f"{one.get('state')}."
    )
    yield ""
    yield "| way | equal to the bit | images through the network | what happened |"
    yield "|---|---|---|---|"
    for way, words in WAYS.items():
        if way not in ways:
            yield f"| {words} | not yet run | | `python benchmarks/scale.py 'numbers:{way}'` |"
            continue
        each = ways[way]
        answer = "–" if way == "one process" else "yes" if each["digest"] == one["digest"] else "**no**"
        yield f"| {words} | {answer} | {each['forwarded']:,} | {happened(each)} |"


def happened(each: Figures) -> str:
    """Kills, preemptions and nodes lost on the way."""
    if "kills" in each:
        return f"{each['kills']} kills; the command was started {each['starts']} times"
    if "preempted" in each:
        return f"{each['preempted']} tasks preempted and run again, {each['tasks']} starts of tasks and of the last job"
    if "done when it was killed" in each:
        return f"killed after {each['done when it was killed']} units were done"
    return ""


def speed_table(found: Figures) -> Iterator[str]:
    """Every turn."""
    if "ratios" not in found:
        return
    yield (
        f"{found['count']:,} images of 64 px, one thread for each worker, from when the last worker had done its first "
        "unit. Processor time is of the workers whole, their start-up included."
    )
    yield ""
    yield "| workers | images a second | images counted | s | processor time, s | cores that other work took |"
    yield "|---|---|---|---|---|---|"
    for turn in zip(found["one"], found["two"]):
        for each in turn:
            yield (
                f"| {each['workers']} | {each['rate']:,.0f} | {each['images']:,.0f} | {each['seconds']:.1f} | "
                f"{each['processor']:.1f} | {each['others']:.2f} |"
            )


def seam_words(found: Figures) -> Iterator[str]:
    """What a unit costs by itself."""
    if "pairs" not in found:
        return
    yield (
        f"{found['pairs']} pairs in turn, each {found['images']:,} images of 64 px in one process: a loop "
        f"({found['loop']:.2f} s of processor time in the median) and the {found['count']} units of a plan for one "
        f"worker. What units do outside the extraction takes {1000 * found['outside'] / found['count']:.1f} ms each, "
        f"{found['share']:.2%} of the whole."
    )


def study_words(found: Figures) -> Iterator[str]:
    """What the command said of the model that fails."""
    if found and found["one fails"]["said"]:
        yield f"With weights that are none in one of the files: `{found['one fails']['said'][-1]}`"


def tests_table(found: Figures) -> Iterator[str]:
    """Claims that tests make, with their commands."""
    if not found:
        return
    yield "| claim | tests | processor time, s | command |"
    yield "|---|---|---|---|"
    for name, each in found.items():
        yield f"| {name} | {each['said']} | {each['seconds']:.0f} | `{each['command']}` |"


def ranks_words(found: Figures) -> Iterator[str]:
    """Correct images of each seed."""
    if not found:
        return
    one, two = (found["accuracy"][count] for count in ("1", "2"))
    pairs = ", ".join(f"{ours[0]:,} and {theirs[0]:,}" for ours, theirs in zip(one, two))
    yield (
        f"small_cnn on glyphs, 2 gloo ranks of torchrun, synchronised batch norm; correct of {one[0][1]:,} test images "
        f"by one process and by two ranks: {pairs}. Weights within 1e-5 of one process after two epochs, and "
        f"byte-equal after a rank was killed: `{found['tests']['command']}` ({found['tests']['said']})."
    )


def halved_words(found: Figures) -> Iterator[str]:
    """Which detectors move most."""
    if not found:
        return
    most = ", ".join(f"{name} {value:.4f}" for name, value in list(found["points"].items())[:5])
    small, large = found["bytes"]["float16"], found["bytes"]["float32"]
    yield (
        f"CIFAR-10 test images against CIFAR-100 and SVHN, a trained ResNet-18, {found['images']['id_train']:,} images "
        f"to fit on and {found['images']['each test set']:,} of each test set. Points of AUROC by which a detector "
        f"moves at most: {most}. The float16 store takes {small / large:.0%} of the bytes."
    )


SECTIONS: dict[str, tuple[str, Callable[[Figures], Iterator[str]]]] = {
    "numbers": ("Same numbers whoever works", ways_table),
    "speed": ("Two workers against one", speed_table),
    "overhead": ("What dividing costs", seam_words),
    "study": ("A study of many models", study_words),
    "stores": ("What tests claim", tests_table),
    "ranks": ("One training, several ranks", ranks_words),
    "imports": ("The first import", lambda found: iter(())),
    "float16": ("Half the bytes", halved_words),
}


def answer(known: Figures) -> str:
    """The first line of the page: what holds, what does not, and what nobody has measured."""
    asked = [(part, judge) for _, part, judge in BARS if not isinstance(judge, str)]
    words = [judge(known.get(part, {}).get("figures", {})).word for part, judge in asked]
    counted = {word: words.count(word) for word in (HOLDS, FAILS, UNKNOWN, OPEN)}
    said = [f"{counted[HOLDS]} of {len(words)} bars hold"]
    said += [f"{counted[FAILS]} do not"] * (counted[FAILS] > 0)
    said += [f"{counted[UNKNOWN]} cannot be judged from what was measured"] * (counted[UNKNOWN] > 0)
    said += [f"{counted[OPEN]} are not yet run"] * (counted[OPEN] > 0)
    return f"**Answer.** {', '.join(said)}; the others stand on other pages."


def write_page(results: Path) -> None:
    """The page from all figures that are there."""
    file = results / "data" / FIGURES
    known: Figures = json.loads(file.read_text()) if file.exists() else {}
    lines = [
        "# Work that runs anywhere: who does it, and what it costs",
        "",
        "**Question.** Do the numbers depend on who did the work, and what does dividing it cost?",
        "",
        answer(known),
        "",
        *bars(known),
        "",
    ]
    for name, (title, section) in SECTIONS.items():
        if about := known.get(name):
            command = f"`{about['command']}`, {about['machine']}, load {about['load']} at the end, {about['date']}."
            told = list(section(about["figures"]))
            lines += [f"## {title}", "", command, "", *told, *([""] if told else [])]
    lines += [*paper_section(results / "data"), ""]
    (results / PAGE).write_text("\n".join(lines), encoding="utf-8")
