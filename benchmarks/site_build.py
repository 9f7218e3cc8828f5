"""Does the documentation site build without a warning, and how long do its tutorials take?

    python benchmarks/site_build.py [--site FOLDER]

Builds the site twice from nothing, without and with the tutorials, with warnings as errors and one thread, and writes
processor time to docs/results/site.md. The site with its tutorials is left in FOLDER.
"""

import argparse
import datetime
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "site.md"
BARS = {"without the tutorials": 180, "with the tutorials": 900}
"""Seconds on two cores."""
TUTORIAL = 60


def spent() -> float:
    """Processor time of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build(out: Path, run: bool, times: Path) -> tuple[float, int, str]:
    """Processor time, pages and the last lines of one build."""
    before = spent()
    settings = {"OODSCOPE_DOCS_RUN": str(int(run)), "OODSCOPE_DOCS_TIMES": str(times), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-E", "-b", "html", "docs", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True)
    warnings = re.findall(r"(?m)^.*(?:WARNING|ERROR).*$", done.stderr)
    said = "" if done.returncode == 0 else "\n".join(warnings[:5]) or (done.stdout + done.stderr)[-2000:]
    return spent() - before, len(list(out.rglob("*.html"))), said


def sentence(builds: dict[str, float], times: dict[str, float], wrong: list[str]) -> str:
    """The answer, from the numbers: a build that kept one core busy takes at most its processor time."""
    if wrong:
        return f"Does not hold: {len(wrong)} of {len(BARS)} builds ended with warnings or errors."
    within = all(builds[name] <= bar for name, bar in BARS.items())
    slow = [name for name, used in times.items() if used > TUTORIAL]
    long = max(times, key=lambda name: times[name])
    tutorials = f"the longest of {len(times)} tutorials, {long}, takes {times[long]:.0f} s"
    built = (
        f"{builds['without the tutorials']:.0f} s without and {builds['with the tutorials']:.0f} s with the tutorials"
    )
    if within and not slow:
        return f"Holds: no warning; {built} of one core; {tutorials}."
    return f"Does not hold: {built} of one core; {tutorials}; above {TUTORIAL} s: {', '.join(slow) or 'none'}."


def page(builds: dict[str, float], pages: int, times: dict[str, float], wrong: list[str]) -> str:
    """The results page."""
    return "\n".join(
        [
            "# The documentation site, built",
            "",
            "**Question.** Does the site build offline without a warning, within 15 minutes on two cores with its "
            "tutorials and 3 without them, and does every tutorial run within a minute?",
            "",
            f"**Answer.** {sentence(builds, times, wrong)}",
            "",
            "**Command.** `python benchmarks/site_build.py`",
            "",
            f"**Machine.** {os.cpu_count()} cores, {platform.machine()}, {platform.system()}; Python "
            f"{platform.python_version()}. **Date.** {datetime.date.today().isoformat()}",
            "",
            f"{pages} pages. All figures are seconds of processor time with one thread, children included: an idle "
            "core takes as long, a busy machine longer.",
            "",
            "| build | seconds | bar |",
            "|---|--:|--:|",
            *(f"| {name} | {used:.0f} | {BARS[name]} |" for name, used in builds.items()),
            "",
            "| tutorial | seconds |",
            "|---|--:|",
            *(f"| {name} | {used:.0f} |" for name, used in sorted(times.items())),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, help="folder for the site; a temporary one unless given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        times = Path(scratch) / "times.json"
        shutil.rmtree(ROOT / "docs" / "gallery", ignore_errors=True)  # tutorials that ran before would not run again
        site = options.site or Path(scratch) / "site"
        quick, _, quick_said = build(Path(scratch) / "quick", False, times)
        whole, pages, whole_said = build(site, True, times)
        measured = json.loads(times.read_text(encoding="utf-8")) if times.is_file() else {}
    wrong = [said for said in (quick_said, whole_said) if said]
    print("\n".join(wrong))
    builds = {"without the tutorials": quick, "with the tutorials": whole}
    if measured:
        PAGE.write_text(page(builds, pages, measured, wrong), encoding="utf-8")
        print(PAGE.read_text(encoding="utf-8"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
