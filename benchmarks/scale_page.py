"""docs/results/scale.md from docs/results/data/scale.json: tables and sentences, none of them typed in.

python benchmarks/scale.py page     # the page again, from what is there
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def same_numbers(found: Figures) -> Iterator[str]:
    """Whoever worked, the digests of every score and interval."""
    if "one process" not in found:
        yield "Not yet run: `python benchmarks/scale.py numbers`."
        return
    one = found["one process"]
    if len(found) == 1:
        yield "Not yet compared: one process alone has run."
        return
    others = {way: each for way, each in found.items() if way != "one process"}
    equal = [way for way, each in others.items() if each["digest"] == one["digest"]]
    most = max((each["forwarded"] - one["forwarded"] for each in others.values()), default=0)
    missing = [words for way, words in WAYS.items() if way not in found]
    kept = "holds" if len(equal) == len(others) and most <= 20 * SHARD_IMAGES else "does not hold"
    yield (
        f"**Same numbers whoever works: {kept}.** {len(equal)} of {len(others)} ways give every one of "
        f"{one['scores']:,} "
        f"rows of scores of 12 detectors and every one of {one['numbers']:,} measurements with its interval to "
        f"the bit; "
        f"at most {most:,} images more than in one process went through the network."
        + (f" {len(missing)} ways are not yet run." if missing else "")
    )
    yield ""
    yield "| way | equal to the bit | images through the network | what happened |"
    yield "|---|---|---|---|"
    for way, words in WAYS.items():
        if way not in found:
            yield f"| {words} | not yet run | | `python benchmarks/scale.py 'numbers:{way}'` |"
            continue
        each = found[way]
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


def twice_as_fast(found: Figures) -> Iterator[str]:
    """One worker against two."""
    if not found:
        yield (
            "**Two workers against one: not yet run.** It needs two idle cores: `python benchmarks/scale.py speed` "
            "(4 minutes)."
        )
        return
    ratio, load = found["ratio"], found["load"]
    word = "holds" if ratio >= FASTER else "does not hold"
    if load > 0.5 and ratio < FASTER:
        word = f"cannot say: other work shared the cores (load {load:.1f} before it began)"
    yield (
        f"**Two workers at least {FASTER} times as fast as one: {word}.** {ratio:.2f} times: "
        f"{found['one']['rate']:,.0f} "
        f"images a second by one and {found['two']['rate']:,.0f} by two, 64 px, one thread each, from when the "
        f"last worker "
        f"had done its first unit ({found['one']['images']:,} and {found['two']['images']:,} of 100,000 images)."
    )


def seam(found: Figures) -> Iterator[str]:
    """Units against the plain loop, by processor time."""
    if not found:
        yield "**What the seam costs: not yet run.** `python benchmarks/scale.py overhead`."
        return
    median, least, most = (found[name] for name in ("median", "least", "most"))
    word = "holds" if median <= OVERHEAD else "does not hold"
    if least <= OVERHEAD < most:
        word = "cannot say, because repetitions lie on both sides of it"
    yield (
        f"**The seam costs at most {OVERHEAD:.0%} with one worker: {word}.** {median:+.2%} of processor time in "
        f"the median "
        f"of {len(found['loop'])} repetitions ({least:+.1%} to {most:+.1%}): {found['count']} units of a plan "
        f"against one "
        "loop over the same 20,680 images, in one process and in turn."
    )


def studied(found: Figures) -> Iterator[str]:
    """Twenty models, two workers."""
    if not found:
        yield "**A study of 20 models: not yet run.** `python benchmarks/scale.py study`."
        return
    whole, broken, count = found["all"], found["one fails"], found["models"]
    once = whole["status"] == 0 and whole["evaluations"] == count
    spared = broken["status"] == 1 and broken["evaluations"] == count - 1
    yield (
        f"**A study of {count} models with two workers evaluates each once: {'holds' if once else 'does not hold'}** "
        f"({whole['evaluations']} evaluations). **A model that fails leaves {count - 1} results and one line: "
        f"{'holds' if spared else 'does not hold'}** ({broken['evaluations']} results; "
        f"`{broken['said'].splitlines()[-1]}`)."
    )


def stored(found: Figures) -> Iterator[str]:
    """Races, PostgreSQL, random plans: what tests showed."""
    if not found:
        yield "**Racing writers: not yet run.** `python benchmarks/scale.py stores`."
        return
    names = {
        "races": "eight writers race for one name, 1,000 times as processes on a disk and 1,000 times on a "
        "simulated S3: "
        "one winner each, never a mixture",
        "postgres": "many processes add runs to one PostgreSQL, none is lost",
        "plans": "random plans, shares and kills end with every unit done once; a simulated array is preempted",
    }
    for name, words in names.items():
        each = found[name]
        word = "holds" if each["status"] == 0 else "does not hold"
        yield f"- {words}: **{word}** ({each['said']}; {each['seconds']:.0f} s of processor time)."


def shared(found: Figures) -> Iterator[str]:
    """Two ranks against one process."""
    if not found:
        yield "**One training shared by two ranks: not yet run.** `python benchmarks/scale.py ranks`."
        return
    one, two = (found["accuracy"][count] for count in ("1", "2"))
    points = [100 * (theirs[0] - ours[0]) / ours[1] for ours, theirs in zip(one, two)]
    word = "holds" if max(map(abs, points)) <= POINTS else "does not hold"
    tests = "hold" if found["tests"]["status"] == 0 else "do not hold"
    yield (
        f"**Two ranks with synchronised batch norm within {POINTS} points of one process: {word}** (small_cnn on "
        f"glyphs, "
        f"2 gloo ranks of torchrun, {len(points)} seeds: {', '.join(f'{each:+.2f}' for each in points)} points on "
        f"{one[0][1]:,} test images). Weights within 1e-5 of one process after two epochs, without batch norm and "
        f"with it, "
        f"and byte-equal weights after a rank was killed and torchrun started all again: the tests {tests} "
        f"({found['tests']['said']}, `pytest -m '' tests/training/test_ranks.py`)."
    )


def soaked(found: Figures) -> Iterator[str]:
    """The long forms of tests that kill workers and nodes."""
    names = {
        "kills": "three workers of an evaluation with 12 detectors, 20 random SIGKILLs: every score and measurement is "
        "that of one process",
        "ray": "a Ray cluster of a head and two workers on loopback, one worker killed after 5 of 25 units: all done",
        "ranks": "ranks of torchrun killed one and three times: the weights of an undisturbed training, byte by byte",
    }
    for name, words in names.items():
        if name in found:
            word = "holds" if found[name]["status"] == 0 else "does not hold"
            yield f"- {words}: **{word}** ({found[name]['said']}; `{found[name]['test']}`)."
        else:
            yield f"- {words}: not yet run; `python benchmarks/scale.py soak`."


SECTIONS = {
    "numbers": same_numbers,
    "soak": soaked,
    "speed": twice_as_fast,
    "overhead": seam,
    "study": studied,
    "stores": stored,
    "ranks": shared,
}
TITLES = {
    "numbers": "Same numbers whoever works",
    "soak": "Kills, as the soak's tests make them",
    "speed": "Two workers against one",
    "overhead": "What dividing costs",
    "study": "A study of many models",
    "stores": "Stores of many writers",
    "ranks": "One training, several ranks",
}


def loaded(load: float | None) -> str:
    """How busy the machine was, where somebody looked."""
    return "other work on the same cores, load not recorded" if load is None else f"load {load} at the end"


def answer(known: Figures) -> str:
    """The first line of the page: what holds, what does not, and what nobody has measured."""
    text = " ".join(line for name in SECTIONS for line in SECTIONS[name](known.get(name, {}).get("figures", {})))
    missing = [TITLES[name].lower() for name in SECTIONS if name not in known]
    held, failed = text.count("holds") - text.count("not hold"), text.count("not hold")
    words = f"**Answer.** {max(held, 0)} of {max(held, 0) + failed} bars that were measured hold."
    words += f" {text.count('cannot say')} cannot be judged from what was measured." * ("cannot say" in text)
    return words + (f" Not measured yet: {', '.join(missing)}." if missing else "")


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
    ]
    for name, section in SECTIONS.items():
        lines += [f"## {TITLES[name]}", ""]
        about = known.get(name)
        if about:
            lines += [
                f"`{about['command']}`, {about['machine']}, {loaded(about['load'])}, {about['date']}.",
                "",
            ]
        lines += [*section(about["figures"] if about else {}), ""]
    lines += [*paper_section(results / "data"), ""]
    (results / PAGE).write_text("\n".join(lines), encoding="utf-8")
