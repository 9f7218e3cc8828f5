"""Does everything hold that takes too long for continuous integration?

    make soak

Runs the whole test suite with the examples and kills of the soak (docs/testing.md), and writes counts, failures and the
slowest tests to docs/results/soak.md. Further arguments go to pytest.
"""

import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

LOG = Path(__file__).parents[1] / "docs" / "results" / "soak.md"
PYTEST = ["-m", "", "--numprocesses", "auto", "--maxprocesses", "4"]
SLOWEST = 25


def outcome(case: ElementTree.Element) -> str:
    """Passed, skipped, failed or error: pytest notes all but the first as an element of the case."""
    noted = {part.tag for part in case} & {"skipped", "failure", "error"}
    return {"skipped": "skipped", "failure": "failed", "error": "error"}[noted.pop()] if noted else "passed"


def name(case: ElementTree.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


def page(cases: list[ElementTree.Element], minutes: float, arguments: list[str]) -> str:
    """The log: what was run where, how it ended, and what took longest."""
    outcomes = [outcome(case) for case in cases]
    counts = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("passed", "skipped", "failed", "error"))
    slowest = sorted(cases, key=lambda case: -float(case.get("time", 0)))[:SLOWEST]
    wrong = [f"- `{name(case)}`" for case, kind in zip(cases, outcomes) if kind in ("failed", "error")]
    return "\n".join(
        [
            "# The soak: every test, with many examples and many kills",
            "",
            "**Question.** Does everything hold that takes too long for continuous integration?",
            "",
            f"**Command.** `{' '.join(['python benchmarks/soak.py', *arguments]) if arguments else 'make soak'}`",
            "",
            f"**Machine.** {os.cpu_count()} cores, {platform.machine()}, {platform.system()}; "
            f"Python {platform.python_version()}. **Date.** {datetime.date.today().isoformat()}",
            "",
            f"{len(cases)} tests in {minutes:.0f} minutes: {counts}.",
            "",
            *(["Not passed:", "", *wrong, ""] if wrong else []),
            "| seconds | the slowest tests |",
            "|---:|---|",
            *(f"| {float(case.get('time', 0)):.1f} | `{name(case).replace('|', chr(92) + '|')}` |" for case in slowest),
            "",
        ]
    )


def main() -> int:
    """Run pytest, write the log, and end as pytest did."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [sys.executable, "-m", "pytest", *PYTEST, f"--junitxml={report}", *sys.argv[1:]]
        status = subprocess.run(command, env={**os.environ, "OODSCOPE_TEST_TIER": "soak"}).returncode
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    LOG.write_text(page(cases, (time.monotonic() - started) / 60, sys.argv[1:]), encoding="utf-8")
    print(f"log: {LOG}")
    return status


if __name__ == "__main__":
    sys.exit(main())
