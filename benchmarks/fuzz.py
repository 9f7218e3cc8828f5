"""Does damaged or forged input ever end in anything but an error for users, or in work done again?

    python -m benchmarks.fuzz [--cases 10000] [--targets job entry ...]

Every kind of file and request that others may send is damaged at random, the same for the same seed, and read as the
package reads it. The seeds begin where the stored counts end, so a run that was stopped goes on, and the page
docs/results/fuzzing.md is written anew after every thousand cases. A case that ends otherwise is kept with its seed;
the same seed repeats it.
"""

import argparse
import datetime
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.hostile.fuzzing import TARGETS, Target, fuzz

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PAGE, COUNTS = RESULTS / "fuzzing.md", RESULTS / "data" / "fuzzing.json"
MACHINE = RESULTS / "data" / "machine.json"
CORPUS = RESULTS / "data" / "corpus.json"
BLOCK = 1000
STEPS = 1000
CORPUS_SECONDS = 180
BAR = 10_000


def block(target: Target, first: int, last: int) -> dict[str, Any]:
    """The outcomes of some seeds; what was uncaught by seed."""
    outcomes: Counter[str] = Counter()
    uncaught: dict[str, str] = {}
    started = time.process_time()
    for seed in range(first, last):
        try:
            outcomes[fuzz(target, seed)] += 1
        except Exception as error:
            outcomes["uncaught"] += 1
            uncaught[str(seed)] = f"{type(error).__name__}: {str(error)[:200]}"
    return {"cases": last - first, **outcomes, "seconds": time.process_time() - started, "errors": uncaught}


def merged(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of two runs over different seeds."""
    numbers = {*before, *more} - {"errors"}
    sums = {name: before.get(name, 0) + more.get(name, 0) for name in numbers}
    return {**sums, "errors": {**before.get("errors", {}), **more.get("errors", {})}}


def verdict(counts: Mapping[str, Mapping[str, Any]]) -> str:
    """What the counts say, and what is not yet run."""
    uncaught = sum(each.get("uncaught", 0) for each in counts.values())
    cases = sum(each["cases"] for each in counts.values())
    short = [t.__name__ for t in TARGETS if counts.get(t.__name__, {"cases": 0})["cases"] < BAR]
    left = f" Not yet run to {BAR:,} cases: {', '.join(short)}; the command goes on there." if short else ""
    found = "no uncaught exception" if not uncaught else f"{uncaught} uncaught exceptions"
    return f"{found[0].upper()}{found[1:]} in {cases:,} cases.{left}"


def corpus_words(counts: Mapping[str, Any] | None) -> str:
    """How long the corpus takes, and whether it passes."""
    if counts is None:
        return "Not yet measured: `python -m benchmarks.hostile_corpus`."
    here, apart = counts["here"], counts["as processes"]
    failed = here["failed"] + apart["failed"]
    passed = "All pass" if not failed else f"{failed:.0f} fail"
    within = "within" if here["processor"] <= CORPUS_SECONDS else "beyond"
    return (
        f"{here['cases']:.0f} bad inputs with their expected line and status in one process: "
        f"{here['processor']:.0f} s of processor time, {within} the {CORPUS_SECONDS} s allowed; {apart['cases']:.0f} "
        f"of them as processes of their own: {apart['processor']:.0f} s. {passed} (load average {counts['load']:.0f}; "
        f"{here['seconds']:.0f} and {apart['seconds']:.0f} s by the clock)."
    )


def machine_words(counts: Mapping[str, Any] | None) -> str:
    """What the state machine of a live server has shown."""
    if counts is None:
        return "Not yet run: `python -m benchmarks.serve_machine FOLDER`."
    steps = sum(counts["steps"].values())
    kinds = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(counts["steps"].items()))
    left = "" if steps >= STEPS else f" {STEPS - steps:,} of {STEPS:,} steps are left; the command goes on there."
    return (
        f"{steps:,} steps at random ({kinds}) in {counts['seconds']:.0f} s, load average {counts['load']:.0f}: "
        f"{counts['accepted']} entries were accepted, none was lost, each stands in the audit trail once, and "
        f"no two answers of one state showed different entries.{left}"
    )


def page(counts: Mapping[str, Mapping[str, Any]], today: str, machine: str) -> str:
    """The results page."""
    rows = [
        f"| {name} | {each['cases']:,} | {each.get('refused', 0):,} | {each.get('healed', 0):,} | "
        f"{each.get('taken', 0):,} | {each.get('uncaught', 0)} | {1000 * each['seconds'] / each['cases']:.1f} |"
        for name, each in counts.items()
    ]
    errors = [
        f"- `{name}`, seed {seed}: {' '.join(text.split())}"
        for name, each in counts.items()
        for seed, text in each["errors"].items()
    ]
    return "\n".join(
        [
            "# Damaged and forged input, at random",
            "",
            "**Question.** Does what others may send end in anything but one line for the user, or work done again?",
            "",
            "**Command.** `python -m benchmarks.fuzz` (a stopped run goes on; `make soak` tests the same seeds)",
            "",
            f"**Machine.** {machine}. **Date.** {today}",
            "",
            f"**Answer.** {verdict(counts)}",
            "",
            "| target | cases | refused in one line | healed | valid all the same | uncaught | CPU ms a case |",
            "|---|--:|--:|--:|--:|--:|--:|",
            *rows,
            "",
            "Healed: the damage was noticed and the work counts as not done. Valid all the same: it hit nothing "
            "that is read, or the file still declares something that is allowed.",
            *(["", "Uncaught:", "", *errors] if errors else []),
            "",
            "## A live server under submissions, kills, revocations and restarts",
            "",
            "**Command.** `python -m benchmarks.serve_machine FOLDER` (a stopped run goes on)",
            "",
            machine_words(_kept(MACHINE)),
            "",
            "## The corpus of bad inputs",
            "",
            "**Command.** `python -m benchmarks.hostile_corpus`",
            "",
            corpus_words(_kept(CORPUS)),
            "",
        ]
    )


def _kept(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = {target.__name__: target for target in TARGETS}
    parser.add_argument("--cases", type=int, default=BAR)
    parser.add_argument("--targets", nargs="+", choices=list(names), default=list(names))
    options = parser.parse_args()
    counts: dict[str, dict[str, Any]] = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    machine = f"{os.cpu_count()} cores, {platform.machine()}; Python {platform.python_version()}"
    for name in options.targets:
        done = counts.get(name, {}).get("cases", 0)
        for first in range(done, options.cases, BLOCK):
            more = block(names[name], first, min(first + BLOCK, options.cases))
            counts[name] = merged(counts.get(name, {}), more)
            COUNTS.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
            PAGE.write_text(page(counts, datetime.date.today().isoformat(), machine), encoding="utf-8")
            print(name, {key: value for key, value in counts[name].items() if key != "errors"}, flush=True)
    PAGE.write_text(page(counts, datetime.date.today().isoformat(), machine), encoding="utf-8")


if __name__ == "__main__":
    main()
