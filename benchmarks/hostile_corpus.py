"""How long does the corpus of bad inputs take, in this process and as processes of their own?

    python -m benchmarks.hostile_corpus

Runs tests/hostile/test_corpus.py in two halves, and writes counts and processor time to docs/results/data/corpus.json,
which the page of ``benchmarks.fuzz`` shows.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
COUNTS = ROOT / "docs" / "results" / "data" / "corpus.json"
HALVES = {"here": "one_line", "as processes": "as_a_process"}


def measured(chosen: str) -> dict[str, float]:
    """Cases, failures, processor seconds and seconds of one half."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        subprocess.run([*command, "tests/hostile/test_corpus.py", "-k", chosen, "--durations=25"], cwd=ROOT)
        cases = list(ElementTree.parse(report).iter("testcase"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    failed = sum(any(part.tag in ("failure", "error") for part in case) for case in cases)
    return {"cases": len(cases), "failed": failed, "processor": spent, "seconds": time.monotonic() - started}


def main() -> None:
    counts = {name: measured(chosen) for name, chosen in HALVES.items()}
    COUNTS.write_text(json.dumps(counts | {"load": os.getloadavg()[0]}, indent=1, sort_keys=True) + "\n")
    print(counts)


if __name__ == "__main__":
    main()
