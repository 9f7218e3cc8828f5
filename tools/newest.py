"""Do the quick tests hold on another Python, with the newest versions of everything?

    python tools/newest.py --environment FOLDER [--python PYTHON] [pytest arguments]

Makes the environment in FOLDER (`uv pip install '.[dev]'`) unless it is there, runs the quick tests that were chosen in
it, compares the scores of every detector that arrays are enough for with those of this environment, and writes counts
and differences to the page docs/results/release.md, where they replace what was found before of the same folders on the
same Python.
"""

import argparse
import datetime
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from lowest import SHARE, differences, install, outcome, quick_tests, versions
from release import FOUND, PAGE, page


def tested(python: Path, chosen: list[str]) -> dict[str, object]:
    """What the quick tests and the scores of an environment say."""
    status, cases = quick_tests(python, chosen)
    counts = Counter(outcome(case) for case in cases)
    shares = differences(python).dropna()
    words = subprocess.run([str(python), "--version"], check=True, capture_output=True, text=True).stdout
    return {
        "python": words.split()[1],
        "torch": versions(python, ["torch"])["torch"],
        "chosen": [word for word in chosen if not word.startswith("-")],
        "counts": {kind: counts[kind] for kind in ("passed", "skipped", "failed")},
        "ended": status in (0, 1),
        "failed": sorted(f"{case.get('classname')}::{case.get('name')}" for case in cases if outcome(case) == "failed"),
        "scores": {"detectors": len(shares), "within": int((shares <= SHARE).sum()), "largest": float(shares.max())},
        "date": datetime.date.today().isoformat(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environment", type=Path, required=True, help="where it is, or is made")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of one that is made")
    options, chosen = parser.parse_known_args()
    python = options.environment.absolute() / "bin" / "python"
    if not python.exists():
        install(options.environment, options.python, "highest")
    row = tested(python, chosen)
    found = json.loads(FOUND.read_text(encoding="utf-8"))
    known = [
        each for each in found.get("tests", []) if (each["python"], each["chosen"]) != (row["python"], row["chosen"])
    ]
    found["tests"] = sorted([row, *known], key=lambda each: (each["python"], each["chosen"]))
    FOUND.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    print(f"page: {PAGE}")
    return 1 if row["failed"] or not row["ended"] else 0


if __name__ == "__main__":
    sys.exit(main())
