"""The corpus: every bad input ends in one line that names what is wrong, and leaves nothing behind."""

import os
import subprocess
import sys
from itertools import chain

import pytest

from tests.hostile import damaged, declared, sent
from tests.hostile.case import Case, Outcome, arguments, lay_out, run_here, tree
from tests.hostile.good import good

pytestmark = pytest.mark.slow

CASES: list[Case] = list(
    chain(
        declared.job_cases(),
        declared.benchmark_cases(),
        declared.option_cases(),
        damaged.picture_cases(),
        damaged.array_cases(),
        damaged.list_cases(),
        damaged.weight_cases(),
        damaged.artefact_cases(),
        sent.run_cases(),
        sent.entry_cases(),
    )
)
KINDS = list(dict.fromkeys(case.name.partition(":")[0] for case in CASES))
AS_PROCESSES = [
    *(next(case for case in CASES if case.name.startswith(kind)) for kind in KINDS),
    *[case for case in CASES if case.name.startswith("options")][1:6],
    *[case for case in CASES if case.name.startswith("job")][1:6],
]
"""One of every kind, most of which import torch, and ten that are refused before: a second each, not five."""
LEAST = 250


def check(case: Case, outcome: Outcome) -> None:
    everything = outcome.out + outcome.err
    assert outcome.status == case.status, f"status {outcome.status}, not {case.status}: {everything}"
    assert "Traceback" not in everything, everything
    assert not any(char in everything for char in "\x1b\x07\x00"), repr(everything)
    assert len(outcome.messages) == 1, f"not one line: {outcome.messages}"
    (message,) = outcome.messages
    assert message.startswith("oodscope: ") or ": REFUSED: " in message, message
    assert len(message) < 3000, "a message that fills the screen"
    for word in case.tells:
        assert word in message, f"{word!r} is not in: {message}"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder from which the good network can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(good()))
    monkeypatch.setenv("OODSCOPE_CACHE", str(good() / "cache"))
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.delenv("OODSCOPE_TOKEN", raising=False)
    return tmp_path


def test_there_are_enough_and_each_has_a_name():
    assert len(CASES) >= LEAST
    assert len({case.name for case in CASES}) == len(CASES)
    assert [case.name for case in CASES if not case.tells] == [], "every message has a part that is checked"
    assert {case.status for case in CASES} == {1, 2}
    assert len(AS_PROCESSES) == 20


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_line_and_nothing_behind(case, place):
    lay_out(case, place, good())
    before = tree(place)
    outcome = run_here(arguments(case, good()))
    check(case, outcome)
    left = tree(place) - before
    assert not {each for each in left if not each.endswith("results.sqlite") and each != "out"}, left
    assert not (place / "ran").exists() and not (place.parent / "escaped").exists()


@pytest.mark.parametrize("case", AS_PROCESSES, ids=lambda case: case.name)
def test_the_same_as_a_process(case, place):
    lay_out(case, place, good())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(good()), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "oodscope", *arguments(case, good())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    check(case, Outcome(done.returncode, done.stdout, done.stderr))
