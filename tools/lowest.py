"""Do the quick tests hold with the oldest versions that pyproject.toml allows?

    python tools/lowest.py [--environment FOLDER] [pytest arguments]        # `make lowest`

Makes an environment of its own (`uv pip install --resolution lowest-direct`: what we name at its lowest bound, what
those need at its newest), runs the tests of `make check` in it, compares the scores of every detector that arrays are
enough for with those of this environment (the newest set, which `make test` runs on: constraints.txt), and writes
counts, differences and versions to the page docs/results/lowest-versions.md. ``--scores`` prints the differences alone.
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

import pandas as pd
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "lowest-versions.md"
QUICK = ["-m", "not slow and not browser and not soak and not gpu", "-q"]
OUTCOMES = {"skipped": "skipped", "failure": "failed", "error": "failed"}


def install(environment: Path, python: str, resolution: str) -> None:
    """The environment, made once, with a pip as tests of plug-ins need; uv resolves `.[dev]` as it is told."""
    uv = [sys.executable, "-m", "uv"]
    if not (environment / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "uv"], check=True)
        subprocess.run([*uv, "venv", "--quiet", "--seed", "--python", python, str(environment)], check=True)
    place = ["--python", str(environment / "bin" / "python")]
    command = [*uv, "pip", "install", "--quiet", *place, "--resolution", resolution, "--editable", ".[dev]"]
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


SCORES = """
import sys
import numpy as np
import oodscope as oods
rng = np.random.default_rng(0)
labels = np.arange(600) % 6
weight, bias = rng.normal(size=(6, 32)), rng.normal(size=6)
centres = np.abs(rng.normal(size=(6, 32))) * 2
def drawn(rows, share=1.0):
    features = np.maximum(centres[rows] * share + rng.normal(size=(len(rows), 32)), 0)
    made = {"features": features, "logits": features @ weight.T + bias, "labels": rows}
    return {name: np.asarray(value, np.int64 if name == "labels" else np.float32) for name, value in made.items()}
sets = {name: drawn(labels) for name in ("id_train", "id_val", "id_test")}
near = {name: value for name, value in drawn(labels, 0.4).items() if name != "labels"}
head = (weight.astype(np.float32), bias.astype(np.float32))
result = oods.evaluate_activations(**sets, near={"near": near}, head=head, detectors="all")
frame = result.scores.frame
frame[list(result.scores.detectors)].to_csv(sys.argv[1], index=False, float_format="%.17g")
"""
"""Scores of made-up activations, the same in every environment."""
SHARE = 1e-4


def scores(python: Path | str, folder: Path) -> pd.DataFrame:
    """The scores that an environment computes."""
    place = folder / "scores.csv"
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [str(python), "-c", SCORES, str(place)]
    subprocess.run(command, check=True, cwd=folder, env=settings, stdout=subprocess.DEVNULL)
    return pd.read_csv(place)


def differences(python: Path | str) -> pd.Series:
    """The largest difference of each detector's scores there and here, as a share of their standard deviation."""
    with TemporaryDirectory() as folder:
        there, here = scores(python, Path(folder)), scores(sys.executable, Path(folder))
    shared = [name for name in here if name in there]
    return ((there[shared] - here[shared]).abs().max() / here[shared].std()).sort_values(ascending=False)


def scores_compared(shares: pd.Series) -> list[str]:
    """The section about scores; detectors without a spread on these activations have no share."""
    known = shares.dropna()
    above = known[known > SHARE]
    holds = f"Holds for {len(known) - len(above)} of {len(known)} detectors"
    return [
        "## Scores beside those of the newest versions",
        "",
        f"Differences of at most {SHARE:g} of the spread of a detector's scores on the same activations: {holds}.",
        "",
        "| detector | largest difference, share of the standard deviation |",
        "|---|--:|",
        *(f"| {name} | {share:.1e} |" for name, share in known.head(max(10, len(above))).items()),
        "",
    ]


def quick_tests(python: Path, chosen: list[str]) -> tuple[int, list[ElementTree.Element]]:
    """The status of the quick tests that were chosen in an environment, and their cases."""
    settings = {**os.environ, "OODSCOPE_TEST_TIER": "check", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    with TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [str(python), "-m", "pytest", *QUICK, "--numprocesses", "auto", f"--junitxml={report}", *chosen]
        status = subprocess.run(command, cwd=ROOT, env=settings).returncode
        return status, list(ElementTree.parse(report).iter("testcase")) if report.exists() else []


def outcome(case: ElementTree.Element) -> str:
    """Passed, skipped or failed."""
    return next((OUTCOMES[part.tag] for part in case if part.tag in OUTCOMES), "passed")


def page(cases: list[ElementTree.Element], installed: dict[str, str], chosen: list[str], shares: pd.Series) -> str:
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
            f"**Machine.** {os.cpu_count()} cores, {platform.machine()}, {platform.system()}; Python "
            f"{platform.python_version()}. **Date.** {datetime.date.today().isoformat()}",
            "",
            *(["Not passed:", "", *wrong, ""] if wrong else []),
            *scores_compared(shares),
            "## Versions",
            "",
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
    parser.add_argument("--scores", action="store_true", help="compare scores and run no test")
    options, chosen = parser.parse_known_args()
    environment = options.environment or ROOT / ".venv-lowest"
    if options.environment is None:
        install(environment, sys.executable, "lowest-direct")
    python = environment / "bin" / "python"
    shares = differences(python)
    if options.scores:
        print("\n".join(scores_compared(shares)))
        return 0
    status, cases = quick_tests(python, chosen)
    PAGE.write_text(page(cases, versions(python, named()), chosen, shares), encoding="utf-8")
    print(f"page: {PAGE}")
    return status


if __name__ == "__main__":
    sys.exit(main())
