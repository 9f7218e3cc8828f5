"""Do the quick tests hold with the oldest versions that pyproject.toml allows?

    python tools/lowest.py [--environment FOLDER] [pytest arguments]        # `make lowest`

Makes an environment of its own (`uv pip install --resolution lowest-direct`: what we name at its lowest bound, what
those need at its newest), runs the tests of `make check` in it, and writes counts and versions to the page
docs/results/lowest-versions.md. The newest set is what `make test` runs on: constraints.txt.
"""

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "lowest-versions.md"
QUICK = ["-m", "not slow and not browser and not soak and not gpu", "-q"]
OUTCOMES = {"skipped": "skipped", "failure": "failed", "error": "failed"}


def install(environment: Path) -> None:
    """The environment, made once, with a pip as tests of plug-ins need; uv resolves `.[dev]` to its lowest bounds."""
    uv = [sys.executable, "-m", "uv"]
    if not (environment / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "uv"], check=True)
        subprocess.run([*uv, "venv", "--quiet", "--seed", str(environment)], check=True)
    place = ["--python", str(environment / "bin" / "python")]
    command = [*uv, "pip", "install", "--quiet", *place, "--resolution", "lowest-direct", "--editable", ".[dev]"]
    subprocess.run(command, cwd=ROOT, check=True)


def named() -> list[str]:
    """Every distribution that pyproject.toml names for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [
        *project["dependencies"],
        *(line for name in extras if name not in ("benchmarks", "dev") for line in extras[name]),
    ]
    return [Requirement(line).name for line in lines]


def versions(python: Path, names: list[str]) -> dict[str, str]:
    """Which version of each is installed there."""
    script = "import sys, importlib.metadata as m; print(*(m.version(name) for name in sys.argv[1:]))"
    done = subprocess.run([str(python), "-c", script, *names], check=True, capture_output=True, text=True)
    return dict(zip(names, done.stdout.split(), strict=True))


def outcome(case: ElementTree.Element) -> str:
    """Passed, skipped or failed."""
    return next((OUTCOMES[part.tag] for part in case if part.tag in OUTCOMES), "passed")


def page(cases: list[ElementTree.Element], installed: dict[str, str], python: str, chosen: list[str]) -> str:
    """The results page."""
    counts = Counter(outcome(case) for case in cases)
    wrong = [f"- `{case.get('classname')}::{case.get('name')}`" for case in cases if outcome(case) == "failed"]
    counted = ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "skipped", "failed"))
    return "\n".join(
        [
            "# The oldest versions that may be installed",
            "",
            "**Question.** Do the quick tests hold with the lower bounds of `pyproject.toml`?",
            "",
            f"**Answer.** {len(cases)} tests: {counted}.{'' if wrong else ' Every test that ran passed.'}",
            "",
            f"**Command.** `{' '.join(['python tools/lowest.py', *chosen]) if chosen else 'make lowest'}`",
            "",
            f"**Machine.** {os.cpu_count()} cores, {platform.machine()}, {platform.system()}; Python {python}. "
            f"**Date.** {datetime.date.today().isoformat()}",
            "",
            *(["Not passed:", "", *wrong, ""] if wrong else []),
            "| package | version |",
            "|---|---|",
            *(
                f"| {name} | {version} |"
                for name, version in sorted(installed.items(), key=lambda each: each[0].lower())
            ),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environment", type=Path, default=None, help="one that is installed already")
    options, chosen = parser.parse_known_args()
    environment = options.environment or ROOT / ".venv-lowest"
    if options.environment is None:
        install(environment)
    python = environment / "bin" / "python"
    settings = {**os.environ, "OODSCOPE_TEST_TIER": "check", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    with TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [str(python), "-m", "pytest", *QUICK, "--numprocesses", "auto", f"--junitxml={report}", *chosen]
        status = subprocess.run(command, cwd=ROOT, env=settings).returncode
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    PAGE.write_text(page(cases, versions(python, named()), platform.python_version(), chosen), encoding="utf-8")
    print(f"page: {PAGE}")
    return status


if __name__ == "__main__":
    sys.exit(main())
