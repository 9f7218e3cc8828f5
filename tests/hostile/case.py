"""Case: one bad input, the command that reads it, and what the answer must name."""

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

_PROGRESS = re.compile(r"loading PyTorch \.\.\.|\w[\w ]* +\d+ [a-z]+ in [0-9.]+ s")
"""Lines that say how far work came before it failed."""

Files = dict[str, object]
"""By name: text, bytes, or a function that makes the file at its path."""


@dataclass(frozen=True)
class Case:
    """A command line over some files.

    Parameters
    ----------
    name : unique; a test is called so.
    argv : what follows ``oodscope``; ``GOOD`` stands for the folder of good files, others lie in the working folder.
    tells : what the message must say: at least the part by which a user finds the fault.
    files : what lies in the working folder.
    status : 2 where the command, or the file that declares its work, asks for what cannot be meant (an unknown name or
        key, an impossible value, YAML that is none); 1 where work failed over files, data, code or a device.
    """

    name: str
    argv: tuple[str, ...]
    tells: tuple[str, ...]
    files: Files
    status: int = 1


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def messages(self) -> list[str]:
        """What was printed beside progress and results: the refusal of an entry, or lines of standard error."""
        refused = [line for line in self.out.splitlines() if ": REFUSED: " in line]
        lines = [line for line in self.err.replace("\r", "\n").splitlines() if line.strip()]
        return refused + [line for line in lines if not _PROGRESS.fullmatch(line)]


def lay_out(case: Case, folder: Path, good: Path) -> None:
    """Write the files of a case; ``GOOD`` in what they declare stands for the folder of good files."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif isinstance(content, dict):
            text = json.dumps(content) if name.endswith(".json") else yaml.safe_dump(content, sort_keys=False)
            path.write_text(text.replace("GOOD", str(good)), encoding="utf-8")
        else:
            maker: Callable[[Path], None] = content  # type: ignore[assignment]
            maker(path)


def arguments(case: Case, good: Path) -> list[str]:
    """The command line with the folder of good files in it."""
    return [each.replace("GOOD", str(good)) for each in case.argv]


def run_here(argv: list[str]) -> Outcome:
    """The command in this process, as ``oodscope`` runs it."""
    from oodscope.cli import main

    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["oodscope", *argv]
    status = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else 1 if error.code else 0
    finally:
        sys.argv = before
    return Outcome(status, out.getvalue(), err.getvalue())


def tree(folder: Path) -> set[str]:
    """Everything below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
