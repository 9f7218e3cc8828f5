"""Was each finding of the attack on the first version open there? Tests of their names keep them closed here.

    python -m benchmarks.hostile_findings --old CHECKOUT_OF_0.1 [--only H1 H3]

Hostile input goes to version 0.1 by command line or over the network: an entry with a reserved name, one whose
predictions are its labels, an upload that never ends, and the cases of the corpus that belong to a finding. What came
out is judged by the same rule as in the tests. Answers are kept as they come, so a run that was stopped goes on with
``--only``; the page docs/results/hostile.md is written at the end.
"""

import argparse
import datetime
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from tests.base.test_supply_chain import HOLES
from tests.hostile.case import Outcome, arguments, lay_out
from tests.hostile.good import good
from tests.hostile.test_corpus import CASES
from tests.hostile.test_findings import CLOSED
from tests.serve.crowd import post
from tests.serve.world import changed, files_of, zipped

ROOT = Path(__file__).parents[1]
PAGE, ANSWERS = ROOT / "docs" / "results" / "hostile.md", ROOT / "docs" / "results" / "data" / "hostile.json"
SECONDS = 120
TOKEN = "correct-horse-battery"
PUBLISHED = "openood-v1.5-cifar10-knn"

WORLD = """
import sys, json, shutil
from hashlib import sha256
from pathlib import Path
try:
    from tests.leaderboard.leaderboard_world import activations, edit, enter, run
    from oodscope.leaderboard.records.folder import list_hash, read_entry, read_scores
except ModuleNotFoundError:
    from tests.leaderboard_world import activations, edit, enter, run
    from oodscope.results.leaderboard.folder import read_entry, read_scores
    from oodscope.results.leaderboard.lists import list_hash
out = Path(sys.argv[1])
enter(out / "plain", "honest")
enter(out / "human", "knn-tiny", protocols=("standard", "human_centric"))
for seed in range(3):
    for method, detector in (("a", "knn"), ("b", "msp")):
        enter(out / "seeds", f"{method}-{seed}", detector, seed=seed, method=method.upper(), group="shared")
    shutil.copytree(activations(seed), out / "activations" / str(seed))
shutil.copytree(run(), out / "run")
folder = out / "human" / "knn-tiny"
table = read_scores(folder, read_entry(folder))
known = (table.frame["label"] >= 0).to_numpy()
frame = table.frame.assign(prediction=table.frame["prediction"].where(~known, table.frame["label"]))
spoiled = type(table)(frame, getattr(table, "context", None) or table.metadata)
spoiled.save(folder / "scores.parquet")
def fit(content):
    content["scores"]["sha256"] = sha256((folder / "scores.parquet").read_bytes()).hexdigest()
    content["claims"], content["thresholds"], content["model"]["id_accuracy"] = [], [], None
    for name, told in content["benchmark"]["sets"].items():
        rows = frame[(frame["set"] == name).to_numpy()]
        if len(rows):
            told["list_hash"], told["n"] = list_hash(rows), len(rows)
edit(folder, fit)
"""
"""Makes honest entries and a forged one, with the helpers of the checkout's own tests."""


@dataclass
class Checkout:
    """One version of the package, and a folder for what is made with it."""

    root: Path
    scratch: Path
    seconds: int = SECONDS

    def python(self, *argv: str, cwd: Path | None = None, **more: str) -> Outcome:
        path = os.pathsep.join(map(str, (self.root / "src", self.root, good())))
        keep = {
            **os.environ,
            "PYTHONPATH": path,
            "OODSCOPE_CACHE": str(self.scratch / "cache"),
            "COLUMNS": "400",
            **more,
        }
        command = [sys.executable, *argv]
        limited = ["timeout", str(self.seconds), *command]
        done = subprocess.run(limited, env=keep, cwd=cwd or self.scratch, capture_output=True, text=True)
        ended = f"\nit did not end within {self.seconds} s and was stopped" if done.returncode == 124 else ""
        return Outcome(done.returncode, done.stdout, done.stderr + ended)

    def run(self, *argv: str, cwd: Path | None = None, **more: str) -> Outcome:
        return self.python("-m", "oodscope", *argv, cwd=cwd, **more)

    def world(self) -> Path:
        """The entries, made once."""
        made = self.scratch / "world"
        if not made.exists():
            done = self.python("-c", WORLD, str(made))
            assert done.status == 0, done.err
        return made

    def board(self, kind: str, name: str) -> Path:
        """A copy of a board, for one finding to spoil."""
        target = self.scratch / name
        subprocess.run(["cp", "-r", str(self.world() / kind), str(target)], check=True)
        return target


Verdict = tuple[bool, str]
"""Whether the hole is open, and what was seen."""


def edit(folder: Path, **changes: object) -> None:
    record = json.loads((folder / "entry.json").read_text())
    (folder / "entry.json").write_text(json.dumps(record | changes))


def last(outcome: Outcome) -> str:
    """The status and the line that says most."""
    lines = [each for each in (outcome.err or outcome.out).strip().splitlines() if each.strip()] or [""]
    words = "a traceback ending in " if "Traceback" in outcome.err else ""
    return f"status {outcome.status}, {words}`{lines[-1].strip()[:150]}`"


def built(checkout: Checkout, board: Path) -> tuple[Outcome, dict[str, str]]:
    """The command's outcome and the files of the site."""
    site = board.parent / f"{board.name}-site"
    outcome = checkout.run("leaderboard", "build", str(board), "--output", str(site))
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".json")]
    return outcome, {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in files}


def h1(checkout: Checkout) -> Verdict:
    board = checkout.board("plain", "h1")
    subprocess.run(["cp", "-r", str(board / "honest"), str(board / PUBLISHED)], check=True)
    edit(board / PUBLISHED, id=PUBLISHED)
    outcome, pages = built(checkout, board)
    return "entries/honest/entry.json" not in pages, (
        f"a published id on the board: {len(pages)} files of the site, {last(outcome)}"
    )


def rerun(checkout: Checkout, entry: Path, seed: int) -> None:
    published = str(checkout.world() / "activations" / str(seed))
    checkout.run("leaderboard", "rerun", str(entry), "--activations", published, "--alone", "4")


def h2(checkout: Checkout) -> Verdict:
    entry = checkout.board("human", "h2") / "knn-tiny"
    rerun(checkout, entry, 0)
    outcome = checkout.run("leaderboard", "verify", str(entry), "--json")
    tier = re.search(r'"tier": "([^"]+)"', outcome.out)
    found = tier.group(1) if tier else last(outcome)
    return found == "re-executed", f"predictions replaced by the labels, run again: tier {found}"


def h4(checkout: Checkout) -> Verdict:
    board = checkout.board("plain", "h4")
    record = json.loads((board / "honest" / "entry.json").read_text())
    edit(board / "honest", detector={**record["detector"], "params": {**record["detector"]["params"], "k": 5}})
    _, pages = built(checkout, board)
    rows = [row for row in json.loads(pages["data/everything.json"]) if "honest" in row.values()]
    kinds = sorted({str(row.get("tuning")) for row in rows})
    return kinds == ["default"], f"k = 5 by hand: tuning track {', '.join(kinds)}"


def h5(checkout: Checkout) -> Verdict:
    board = checkout.board("seeds", "h5")
    for entry in sorted(board.iterdir()):  # rows of three networks or more that were run again were joined by group
        rerun(checkout, entry, int(entry.name[-1]))
    _, pages = built(checkout, board)
    page = next(text for path, text in pages.items() if path.startswith("benchmarks/tiny") and path.endswith(".html"))
    rows = len(re.findall(r'<tr id="e-', page))
    shown = f"{rows} row{'s' * (rows != 1)} in the table"
    return rows < 2, f"three networks of each of the methods A and B, all with one group: {shown}"


def h6(checkout: Checkout) -> Verdict:
    board = checkout.board("plain", "h6")
    (board / "honest" / "scores.parquet").unlink()
    said = {"protocol": "standard", "metric": "auroc", "group": "near", "set": "mean", "source": "Table 1"}
    edit(board / "honest", scores=None, claims=[], thresholds=[], reported=[{**said, "printed": "99.99"}])
    _, pages = built(checkout, board)
    where = sorted(path for path, text in pages.items() if "99.99" in text and path.endswith(".html"))
    return any(path.startswith(("benchmarks/", "methods/")) for path in where), (
        f"99.99 without scores stands on {', '.join(where) or 'no page'}"
    )


class Server:
    """``oodscope serve --submissions`` of a checkout."""

    def __init__(self, checkout: Checkout, board: Path) -> None:
        path = os.pathsep.join(map(str, (checkout.root / "src", checkout.root)))
        keep = {**os.environ, "PYTHONPATH": path, "OODSCOPE_TOKEN": TOKEN, "OODSCOPE_CACHE": str(board / "../cache")}
        command = [sys.executable, "-m", "oodscope", "serve", "--port", "0", "--submissions", "--board", str(board)]
        self.log = board.parent / f"{board.name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command, "--store", str(board / "../r.sqlite")], env=keep, stderr=log)
        until = time.monotonic() + 300
        while not (found := re.search(r"http://127.0.0.1:(\d+)", self.log.read_text())):
            assert self.process.poll() is None and time.monotonic() < until, self.log.read_text()
            time.sleep(0.1)
        self.port = int(found.group(1))

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def h7(checkout: Checkout) -> Verdict:
    files = files_of(checkout.world() / "plain" / "honest")
    board = checkout.scratch / "h7"
    board.mkdir()
    with Server(checkout, board) as server:
        status, _ = post(server.port, TOKEN, zipped(changed(files, submitted="1971-01-01T00:00:00+00:00")))
    _, pages = built(checkout, board)
    where = sorted(path for path, text in pages.items() if "1971" in text and path.endswith(".html"))
    return bool(where), f"sent with the date 1971 (answer {status}): the year stands on {', '.join(where) or 'no page'}"


def h8(checkout: Checkout) -> Verdict:
    files = files_of(checkout.world() / "plain" / "honest")
    board = checkout.scratch / "h8"
    board.mkdir()
    tokens = [TOKEN, TOKEN]
    for number, name in enumerate(("eve", "ada")):
        added = checkout.run("serve", "token", "add", name, "--board", str(board))
        if added.status == 0:
            tokens[number] = re.findall(r"[\w-]{40,}", added.out)[-1]
    with Server(checkout, board) as server:
        head = "POST /api/entries HTTP/1.1\r\nHost: x\r\nContent-Type: application/zip\r\n"
        hanging = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
        for each in hanging:
            each.sendall(f"{head}Authorization: Bearer {tokens[0]}\r\nContent-Length: 100000\r\n\r\nPK".encode())
        time.sleep(2)
        status, _ = post(server.port, tokens[1], zipped(files))
        for each in hanging:
            each.close()
        line = "honest" in server.log.read_text()
    own = "own tokens" if tokens[0] != TOKEN else "one token for all"
    return status != 201 or tokens[0] == TOKEN, (
        f"{own}; four uploads that never end, then an honest one: status {status}, "
        f"{'a' if line else 'no'} line about it in the log"
    )


def h9(checkout: Checkout) -> Verdict:
    """With a program called gs that only leaves a note: whether it was started."""
    program = checkout.scratch / "bin" / "gs"
    program.parent.mkdir()
    note = checkout.scratch / "started"
    program.write_text(f'#!/bin/sh\necho "$@" >> {note}\necho 10.0\n')
    program.chmod(0o755)
    case = next(each for each in CASES if each.name == "image: EPS")
    place = checkout.scratch / "h9"
    place.mkdir()
    lay_out(case, place, good())
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    checkout.run(*arguments(case, good()), cwd=place, PATH=path)
    calls = len(note.read_text().splitlines()) if note.exists() else 0
    return calls > 0, f"an EPS named .png: Ghostscript was started {calls} times"


def h10(checkout: Checkout) -> Verdict:
    place = checkout.scratch / "h10"
    place.mkdir()
    sets = "  id_test: {source: npz, path: test.npz}\n  near: {a: {source: npz, path: near.npz}}\n"
    sets += "  near: {b: {source: npz, path: far.npz}}\n"
    head = f"name: own\nversion: '1'\nroot: {good()}\ntransform: {{size: 8}}\nsets:\n"
    (place / "own.yaml").write_text(head + sets)
    command = ["evaluate", "--model", "python:goodnet:build", "--benchmark", "own.yaml", "--detectors", "msp"]
    outcome = checkout.run(*command, "--device", "cpu", "--output", "out", cwd=place)
    measured = "".join(path.read_text() for path in place.glob("out/*/measurements.csv"))
    shown = [name for name in ("a", "b") if f",{name}," in measured]
    return outcome.status == 0 and len(shown) < 2, (
        f"the key `near` twice, with sets a and b: status {outcome.status}, measured on {' and '.join(shown) or 'none'}"
    )


def h11(checkout: Checkout) -> Verdict:
    command = ["evaluate", "--model", "python:goodnet:build", "--id-test", str(good() / "test.npz"), "--near"]
    command += [str(good() / "near.npz"), "--detectors", "msp", "--device", "cpu", "--transform", "{size: 8}"]
    place = checkout.scratch / "h11"
    place.mkdir()
    cache = {"OODSCOPE_CACHE": str(place / "cache")}  # what is damaged here is of no concern elsewhere
    first = checkout.run(*command, "--output", "one", cwd=place, **cache)
    assert first.status == 0, first.err
    kept = list(place.rglob("*.journal"))
    for path in kept:
        with path.open("ab") as file:
            file.write(b"null\n")
    second = checkout.run(*command, "--output", "two", cwd=place, **cache)
    return second.status != 0, f"`null` appended to {len(kept)} journals, then once more: {last(second)}"


def h12(checkout: Checkout) -> Verdict:
    project = tomllib.loads((checkout.root / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = [Requirement(line) for group in groups for line in group]
    admitted = sorted({each.name for each in wanted if each.name in HOLES and HOLES[each.name] in each.specifier})
    return bool(admitted), f"lower bounds that admit versions with known holes: {', '.join(admitted) or 'none'}"


OWN: dict[str, Callable[[Checkout], Verdict]] = {
    "H1": h1,
    "H2": h2,
    "H4": h4,
    "H5": h5,
    "H6": h6,
    "H7": h7,
    "H8": h8,
    "H9": h9,
    "H10": h10,
    "H11": h11,
    "H12": h12,
}


def of_corpus(checkout: Checkout, name: str) -> Verdict:
    """A case of the corpus as a process; open where it was accepted or ended in a traceback, or for what it left."""
    case = next(each for each in CASES if each.name == name)
    place = Path(tempfile.mkdtemp(dir=checkout.scratch)) / "in" / "side"
    place.mkdir(parents=True)
    lay_out(case, place, good())
    argv, todays = arguments(case, good()), str(good() / "run")
    if any(todays in each for each in argv):  # a run of this version has another record
        argv = [each.replace(todays, str(checkout.world() / "run")) for each in argv]
    outcome = checkout.run(*argv, cwd=place)
    expected = {name.split("/")[0] for name in case.files} | {"out", "runs", "leaderboard"}
    outside = sorted(each.name for each in place.iterdir() if each.name not in expected)
    raw = any(char in outcome.out + outcome.err for char in "\x1b\x07")
    wrong = outcome.status not in (1, 2) or "Traceback" in outcome.err
    told = f"`{name}`: {last(outcome)}" + "".join(f"; wrote {each} beside --output" for each in outside)
    told += "; raw escape sequences" * raw
    return wrong or bool(outside) or raw, told.replace("\x1b", "ESC").replace("\x07", "BEL")


def page(answers: Mapping[str, Any]) -> str:
    """The results page."""
    by_hand = answers.get("by hand", {})
    shown = [f"H{n}" for n in range(1, 14) if any(bad for bad, _ in answers.get(f"H{n}", ()))]
    rest = [f"H{n}" for n in range(1, 14) if f"H{n}" not in shown]
    words = f"{len(shown)} of 13 findings are open in 0.1; the tests named here keep each closed now."
    words += f" Not seen open: {', '.join(rest)}." if rest else ""
    rows = []
    for title, tests in CLOSED.items():
        named = ", ".join(f"`{each.rpartition('/')[2]}`" for each in tests if "::" in each)
        cases = sum("::" not in each for each in tests)
        named += (", " if named else "") + f"{cases} cases of the corpus" if cases else ""
        rows.append(f"| {title} | {'<br>'.join(_told(answers.get(title.split()[0], ())))} | {named} |")
    machine = f"{os.cpu_count()} cores, {platform.machine()}; Python {platform.python_version()}"
    return "\n".join(
        [
            "# What a stranger could do to 0.1",
            "",
            "**Question.** Was each finding of the attack on 0.1 open there, and which tests keep it closed now?",
            "",
            f"**Answer.** {words}",
            "",
            "**Command.** `python -m benchmarks.hostile_findings --old CHECKOUT_OF_0.1` (0.1 is commit 3cadf47)",
            "",
            f"**Machine.** {machine}. **Date.** {datetime.date.today().isoformat()}",
            "",
            "Everything went to 0.1 as a command line or to its running server, with today's libraries. "
            "A case of the corpus counts as open where it was accepted, ended in a traceback, wrote beside the output "
            "folder, or sent escape sequences to the terminal.",
            "",
            *(line for name, why in by_hand.items() for line in (f"Not by this rule, but by hand, {name}: {why}", "")),
            "| finding | 0.1 | tests |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _told(seen: Sequence[Verdict]) -> list[str]:
    return [("**open** " if bad else "closed ") + text.replace("|", "\\|") for bad, text in seen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, required=True, help="checkout of version 0.1")
    parser.add_argument("--only", nargs="*", default=[each.split()[0] for each in CLOSED])
    parser.add_argument("--seconds", type=int, default=SECONDS, help="after which a command is stopped")
    options = parser.parse_args()
    answers = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        checkout = Checkout(options.old, Path(scratch), options.seconds)
        for title, tests in CLOSED.items():
            name = title.split()[0]
            if name not in options.only:
                continue
            answers.get("by hand", {}).pop(name, None)
            answers[name] = [OWN[name](checkout)] if name in OWN else []
            answers[name] += [of_corpus(checkout, case) for case in tests if "::" not in case]
            print(name, *answers[name], sep="\n    ", flush=True)
            ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
            PAGE.write_text(page(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
