"""Is what would be released whole, the same whoever builds it, and readable where it is shown?

    python tools/release.py [--wheel FILE] [--python PYTHON ...]            # `make release-check`

Builds the sdist and the wheel twice, and a wheel from the sdist; all wheels must be equal to the byte. The description
must hold no link to a file, every extra must resolve. With ``--python`` the wheel is installed alone into an empty
environment of that interpreter by pip; there the five commands of the first tutorial run, then `oodscope demo`, whose
table is held against README's intervals, then a command of each extra that is missing, which must answer in one line.
That takes minutes. With ``--wheel`` nothing is built: what was found of builds and extras before stays. What was found
is written to docs/results/release.md, beside what was run where.
"""

import argparse
import datetime
import email
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "release.md"
FOUND = ROOT / "docs" / "results" / "data" / "release.json"
EPOCH = "1760000000"
FIRST = "01_first_evaluation.py"


def call(*command: str, cwd: Path = ROOT, **settings: str) -> str:
    """What a command prints; its failure ends the check with its last lines."""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **settings}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout + done.stderr


def built(source: Path, out: Path, *kinds: str) -> Path:
    """The wheel that was built from a folder."""
    call(sys.executable, "-m", "build", *kinds, "--outdir", str(out), str(source), SOURCE_DATE_EPOCH=EPOCH)
    return next(out.glob("*.whl"))


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def packages(folder: Path) -> dict[str, object]:
    """Two builds of the committed tree and one of its sdist."""
    tree = folder / "tree"
    tree.mkdir()
    archive = folder / "tree.tar"
    call("git", "archive", "--output", str(archive), "HEAD")
    with tarfile.open(archive) as opened:
        opened.extractall(tree, filter="data")
    first = built(tree, folder / "first")
    second = built(tree, folder / "second")
    sdist, again = (next((folder / name).glob("*.tar.gz")) for name in ("first", "second"))
    with tarfile.open(sdist) as opened:
        opened.extractall(folder / "unpacked", filter="data")
    third = built(next((folder / "unpacked").iterdir()), folder / "third", "--wheel")
    with zipfile.ZipFile(first) as wheel:
        names = wheel.namelist()
        metadata = email.message_from_bytes(wheel.read(next(n for n in names if n.endswith("METADATA"))))
    text = metadata.get_payload()
    links = [each for each in re.findall(r"\]\(([^)]*)\)", str(text)) if not each.startswith(("http", "#"))]
    return {
        "wheel": {"files": len(names), "bytes": first.stat().st_size, "sha256": digest(first)},
        "sdist": {"bytes": sdist.stat().st_size, "sha256": digest(sdist)},
        "two wheels equal": digest(first) == digest(second),
        "two sdists equal": digest(sdist) == digest(again),
        "wheel of the sdist equal": digest(first) == digest(third),
        "relative links in the description": links,
        "twine": "PASSED" in call(sys.executable, "-m", "twine", "check", str(first), str(sdist)),
        "path": str(first),
    }


def extras() -> dict[str, int]:
    """Every extra with the number of distributions that it resolves to."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    resolved = {}
    for extra in project["optional-dependencies"]:
        lines = call(sys.executable, "-m", "uv", "pip", "compile", "-q", "pyproject.toml", "--extra", extra)
        resolved[extra] = sum("==" in line for line in lines.splitlines())
    return resolved


MISSING = {
    "clip": ["evaluate", "--model", "open_clip:ViT-B-32", "--weights", "pretrained", "--benchmark", "glyphs"],
    "cloud": ["work", "s3://bucket/plan"],
    "hf": ["evaluate", "--model", "hf:a/b", "--weights", "pretrained", "--benchmark", "glyphs"],
    "onnx": ["export", "knn.oods", "--output", "knn.onnx"],
    "postgres": ["table", "--store", "postgresql://somebody@localhost/none", "run"],
    "ray": ["run", "demo", "--on", "ray"],
    "serve": ["serve", "--port", "0"],
}
"""A command that needs each extra."""
VALUES = re.compile(r"(\d+\.\d) ±(\d+\.\d)")


COMMANDS, LIMIT, PATH = 5, 600, ("pip install", "tutorial")
"""What a newcomer may have to type, and for how many seconds, until there is a report on an own folder."""
BUSY = "Cannot say for every Python, the machine had other work"


def processor() -> float:
    """Processor seconds of everything that was called so far."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def timed(*command: str, cwd: Path = ROOT, **settings: str) -> tuple[str, dict[str, int]]:
    """What a command prints, with its seconds by the clock and of the processor."""
    started, before = time.monotonic(), processor()
    said = call(*command, cwd=cwd, **settings)
    return said, {"clock": round(time.monotonic() - started), "processor": round(processor() - before)}


def typed(tutorial: str) -> int:
    """How many commands a tutorial shows: the installation in its introduction, and each call of `shell`."""
    return len(re.findall(r"(?m)^ +pip install \w", tutorial)) + len(re.findall(r"(?m)^shell\(", tutorial))


def table(text: str) -> dict[str, list[tuple[float, float]]]:
    """The first row of each detector in what was printed: values and half-widths."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for line in text.splitlines():
        if found := VALUES.findall(line):
            rows.setdefault(line.split()[0], [(float(value), float(half)) for value, half in found])
    return rows


def inside(said: str) -> str:
    """How many values of the demo's first table lie inside the intervals that README prints."""
    readme, seen = table((ROOT / "README.md").read_text(encoding="utf-8")), table(said)
    pairs = [(value, *given) for name, row in readme.items() for (value, _), given in zip(seen.get(name, []), row)]
    return f"{sum(abs(value - centre) <= half + 0.05 for value, centre, half in pairs)} of {len(pairs)}"


STARTS = {
    "import oodscope": ["-c", "import oodscope"],
    "oodscope --help": ["-m", "oodscope", "--help"],
    "first use of evaluate": ["-c", "import oodscope; oodscope.evaluate"],
    "import torch": ["-c", "import torch"],
}
"""What users wait for before anything is computed; torch is what the third is held against."""


def starts(python: str) -> dict[str, float]:
    """Processor seconds of each start, the least of five, all within a minute of each other."""
    least: dict[str, float] = {}
    for _ in range(5):
        for name, words in STARTS.items():
            before = processor()
            call(python, *words, PYTHONPATH="", OMP_NUM_THREADS="1")
            spent = processor() - before
            least[name] = min(spent, least.get(name, spent))
    return {name: round(spent, 2) for name, spent in least.items()}


def quick(each: dict[str, float]) -> bool:
    """At most 0.1 s for an import, 0.3 s for help, and for the first evaluation twice what torch takes."""
    evaluate = each["first use of evaluate"] <= 2 * each["import torch"]
    return each["import oodscope"] <= 0.1 and each["oodscope --help"] <= 0.3 and evaluate


def demo(wheel: str, python: str, folder: Path) -> dict[str, object]:
    """The wheel alone in an empty environment: installed, the newcomer's five commands, the demo, missing extras."""
    home = folder / "empty"
    alone = {"PYTHONPATH": "", "OODSCOPE_CACHE": str(folder / "cache"), "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    call(python, "-m", "venv", str(home))
    bins = home / "bin"
    _, install = timed(str(bins / "pip"), "install", "--quiet", wheel)
    _, tutorial = timed(str(bins / "python"), str(ROOT / "docs" / "tutorials" / FIRST), cwd=folder, **alone)
    load = os.getloadavg()[0]
    said, whole = timed(str(bins / "oodscope"), "demo", "--output", "runs", cwd=folder, **alone)
    row = re.search(r"(?m)^ *knn .*$", said)
    report = next(folder.glob("runs/**/report.html"), None)
    return {
        "python": call(str(bins / "python"), "--version").split()[1],
        "megabytes": int(call("du", "-sm", str(home)).split()[0]),
        "knn": row.group().split() if row else [],
        "inside": inside(said),
        "report": report is not None,
        "one line": {extra: missing(home, words, folder) for extra, words in MISSING.items()},
        "load": round(load, 1),
        "seconds": {"pip install": install, "tutorial": tutorial, "demo": whole},
        "starts": starts(str(bins / "python")),
        "commands": typed((ROOT / "docs" / "tutorials" / FIRST).read_text(encoding="utf-8")),
        "date": datetime.date.today().isoformat(),
    }


def missing(home: Path, words: list[str], folder: Path) -> bool:
    """Whether a command that needs an extra says in one line what to install, and fails."""
    command = [str(home / "bin" / "oodscope"), *words, "-q"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True, timeout=300
    )
    lines = done.stderr.strip().splitlines()
    return done.returncode != 0 and len(lines) == 1 and "pip install 'oodscope[" in lines[0]


def answers(lines: dict[str, bool]) -> str:
    """Which extras are asked for in one line, and which are not."""
    wrong = [extra for extra, one in lines.items() if not one]
    return ", ".join(lines) if not wrong else f"**not: {', '.join(wrong)}**"


def empty_environments(demos: list[dict]) -> list[str]:
    """What was installed and run from the wheel alone."""
    return [
        "## The wheel in empty environments",
        "",
        "| Python | environment | installed | `oodscope demo` | knn on near_letters | inside README's intervals |",
        "|---|---|--:|---|---|---|",
        *(
            f"| {each['python']} | {each.get('note', 'all dependencies')} | {each['megabytes']:,} MB | "
            f"{'ended with a report' if each['report'] else '**failed**'} | {' '.join(each['knn'][2:4])} | "
            f"{each.get('inside', 'not counted')} |"
            for each in demos
        ),
        "",
        *(costs(whole) if (whole := [each for each in demos if "seconds" in each]) else []),
    ]


def newcomer(demos: list[dict]) -> str:
    """Whether a newcomer has a report on an own folder with an own network in time, on every Python that was tried.

    Too long by the clock says nothing where other work kept the cores busy and the processor time was within the limit.
    """
    verdicts, said = [], []
    for each in demos:
        clock, spent = (sum(each["seconds"][step][kind] for step in PATH) for kind in ("clock", "processor"))
        busy = spent <= LIMIT and each["load"] > (os.cpu_count() or 1)
        verdicts.append("Holds" if clock <= LIMIT else BUSY if busy else "Does not hold")
        words = f"{clock / 60:.1f} minutes by the clock, {spent / 60:.1f} of the processor, load {each['load']:.0f}"
        said.append(f"Python {each['python']}: {words}")
    most = max(each["commands"] for each in demos)
    worst = next(each for each in ("Does not hold", BUSY, "Holds") if each in verdicts)
    verdict = worst if most <= COMMANDS else "Does not hold"
    return (
        f"From `pip install` of the wheel to a report on one's own folder with one's own network in at most "
        f"{LIMIT // 60} minutes and {COMMANDS} commands: {verdict} ({most} commands; {'; '.join(said)}). Drawing the "
        "images and training the network are counted too; the load is that of all processes in the last minute."
    )


def costs(demos: list[dict]) -> list[str]:
    """What each step cost, and which missing extras are named in one line."""
    steps = "pip install", "tutorial", "demo"
    return [
        newcomer(demos),
        "",
        "Seconds by the clock, in brackets of the processor, with one thread. Last column: extras that were not "
        "installed, of which a command that needs them says so in one line.",
        "",
        "| Python | `pip install` of the wheel | first tutorial | `oodscope demo` | missing extras | date |",
        "|---|--:|--:|--:|---|---|",
        *(
            f"| {each['python']} | "
            + " | ".join("{clock} ({processor})".format(**each["seconds"][step]) for step in steps)
            + f" | {answers(each['one line'])} | {each['date']} |"
            for each in demos
        ),
        "",
        "Processor seconds of a start, the least of five. Bars: 0.1 for the import, 0.3 for help, and for the first "
        "use of `evaluate` twice those of `import torch`.",
        "",
        f"| Python | {' | '.join(STARTS)} | within the bars |",
        f"|---|{'--:|' * len(STARTS)}---|",
        *(
            f"| {each['python']} | "
            + " | ".join(f"{each['starts'][name]:.2f}" for name in STARTS)
            + f" | {'yes' if quick(each['starts']) else '**no**'} |"
            for each in demos
        ),
        "",
    ]


def other_pythons(rows: list[dict]) -> list[str]:
    """What the quick tests said in environments of other Pythons."""
    wrong = [f"- Python {each['python']}: `{name}`" for each in rows for name in each["failed"]]
    return [
        "## Quick tests on other Pythons, with the newest versions",
        "",
        "By `python tools/newest.py --environment ENV FOLDERS`. Last columns: detectors whose scores on the same "
        "made-up activations differ from those of the environment of the other tests by at most 1e-4 of their spread, "
        "and the largest difference.",
        "",
        "| Python | torch | folders | passed | skipped | failed | scores | largest | date |",
        "|---|---|---|--:|--:|--:|---|--:|---|",
        *(
            f"| {each['python']} | {each['torch']} | {', '.join(each['chosen']) or 'all'} | "
            + " | ".join(f"{each['counts'][kind]:,}" for kind in ("passed", "skipped", "failed"))
            + f" | {each['scores']['within']} of {each['scores']['detectors']} | {each['scores']['largest']:.1e} | "
            + f"{each['date']}{'' if each['ended'] else ', **stopped early**'} |"
            for each in rows
        ),
        "",
        *([*wrong, ""] if wrong else []),
    ]


def page(found: dict) -> str:
    """The results page."""
    whole = all(found[name] for name in ("two wheels equal", "two sdists equal", "wheel of the sdist equal", "twine"))
    whole = whole and not found["relative links in the description"]
    words = "Builds are equal to the byte, and the description holds no dead link" if whole else "Not every check holds"
    wheel, sdist = found["wheel"], found["sdist"]
    rows = [
        ("two builds of the wheel are equal to the byte", found["two wheels equal"]),
        ("two builds of the sdist are equal to the byte", found["two sdists equal"]),
        ("the wheel built from the sdist is the one built from the tree", found["wheel of the sdist equal"]),
        ("`twine check`", found["twine"]),
        ("no link to a file in the description", not found["relative links in the description"]),
    ]
    return "\n".join(
        [
            "# What would be released, and where it was run",
            "",
            "**Question.** Is a release whole, the same whoever builds it, and does it run where users have it?",
            "",
            f"**Answer.** {words}; {len(found['extras'])} extras resolve; `oodscope demo` from the wheel ended with a "
            f"report in {sum(each['report'] for each in found['demos'])} of {len(found['demos'])} empty environments.",
            "",
            "**Command.** `make release-check` (with `--python` for the demo in empty environments)",
            "",
            f"**Machine.** {os.cpu_count()} cores, {platform.machine()}, {platform.system()}. "
            f"**Date.** {datetime.date.today().isoformat()}",
            "",
            "| check | holds |",
            "|---|---|",
            *(f"| {name} | {'yes' if holds else '**no**'} |" for name, holds in rows),
            "",
            f"Wheel: {wheel['files']:,} files, {wheel['bytes'] / 1e6:.1f} MB; sdist: {sdist['bytes'] / 1e6:.1f} MB.",
            "",
            "| extra | distributions that it resolves to |",
            "|---|--:|",
            *(f"| {name} | {count} |" for name, count in found["extras"].items()),
            "",
            *empty_environments(found["demos"]),
            *(other_pythons(found["tests"]) if found.get("tests") else []),
            *found.get("notes", []),
            "",
        ]
    )


def keep(found: dict[str, object]) -> None:
    """Write what was found beside what is known, and the page: an environment that fails later costs nothing of it."""
    before = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    fresh = found.get("demos", [])
    again = {each["python"] for each in fresh}
    kept = [each for each in before.get("demos", []) if "note" in each or each["python"] not in again]
    known = before | found | {"demos": [*fresh, *kept]}
    FOUND.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(known), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="one that is built, for the empty environments alone")
    parser.add_argument("--python", action="append", default=[], help="an interpreter for an empty environment")
    options = parser.parse_args()
    call(sys.executable, "-m", "pip", "install", "--quiet", "build", "twine", "uv")
    with tempfile.TemporaryDirectory() as scratch:
        folder, wheel = Path(scratch), options.wheel and options.wheel.resolve()
        if wheel is None:
            found = packages(folder)
            wheel = found.pop("path")
            keep(found | {"extras": extras()})
        for number, python in enumerate(options.python):
            place = folder / f"demo-{number}"
            place.mkdir()
            keep({"demos": [demo(str(wheel), python, place)]})
            shutil.rmtree(place)
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
