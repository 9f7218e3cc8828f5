"""The command line run in this process, as `oodscope ARGS` would."""

import sys

import pytest

from oodscope.cli import main


class Outcome:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@pytest.fixture
def oodscope(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; nothing it does reaches the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OODSCOPE_TRACEBACK", raising=False)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["oodscope", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code or 0
        return Outcome(status, *capsys.readouterr())

    return run
