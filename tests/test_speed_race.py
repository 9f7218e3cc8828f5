"""The race of benchmarks/speed.py goes on where it stopped, and its page names what nobody has run."""

import argparse
import importlib
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def speed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("speed")
    monkeypatch.setattr(module, "prepare", lambda race: None)
    monkeypatch.setattr(importlib.import_module("speed_page"), "TWO_CORES", Path("no such file"))
    yield module
    for name in [name for name in sys.modules if name == "speed" or name.startswith("speed_")]:
        del sys.modules[name]


def raced(speed, monkeypatch, tmp_path, fails=(), lines="", budget=1e9):
    """Run the race with lines that only note that they ran; the names of those that did."""
    ran = []

    def line(name):
        def measure(race):
            ran.append(name)
            if name in fails:
                raise RuntimeError("no memory")
            return {"rates": {"float32": {"planes": 1.0}}} if name == "layouts" else made(name)

        return measure, 10.0

    def made(name):
        timing = {"seconds": 9.0, "images": 3, "forwards": 4, "busy": None, "stages": {}, "near_auroc": {}}
        fed = {"rate": 9.0, "bare": 10.0, "decoding": 20.0, "share": 0.9, "precision": "float32"}
        return timing | fed

    monkeypatch.setattr(speed, "LINES", {name: line(name) for name in speed.LINES})
    work, output = tmp_path / "work", tmp_path / "out"
    (work / "race").mkdir(parents=True, exist_ok=True)
    output.mkdir(exist_ok=True)
    (work / "race" / "bench.yaml").touch()
    asked = argparse.Namespace(
        device="cpu", known=tmp_path / "none.json", output=output, scale=1.0, lines=lines, sample=None
    )
    asked.budget_seconds = budget
    speed.run(asked, work, speed.time.perf_counter())
    return ran, json.loads((output / "speed.json").read_text()), (output / "speed.md").read_text()


def test_a_second_call_runs_what_the_first_did_not(speed, monkeypatch, tmp_path):
    every = list(speed.LINES)
    ran, facts, page = raced(speed, monkeypatch, tmp_path, fails=("jpeg256",), lines="cold,jpeg256,msp")
    assert ran == ["cold", "jpeg256", "msp"]
    left = [name for name in every if name not in ("cold", "msp")]
    named = page.split("Not yet run: ")[1].split(". ")[0].split(", ")
    assert sorted(named) == sorted(left)
    assert "jpeg256: RuntimeError: no memory" in page
    ran, facts, page = raced(speed, monkeypatch, tmp_path)
    assert ran == left
    assert set(facts["lines"]) == set(every)
    assert "Not yet run" not in page
    assert raced(speed, monkeypatch, tmp_path, lines="cold")[0] == ["cold"]


def test_a_line_without_time_left_is_named_and_comes_next_time(speed, monkeypatch, tmp_path):
    ran, facts, page = raced(speed, monkeypatch, tmp_path, lines="warm", budget=0.0)
    assert ran == []
    assert "of the budget were left" in facts["lines"]["warm"]["skipped"]
    assert "- warm: " in page
    assert "warm" in raced(speed, monkeypatch, tmp_path)[0]


def test_what_was_measured_before_a_change_is_named_and_measured_again(speed, monkeypatch, tmp_path):
    _, facts, page = raced(speed, monkeypatch, tmp_path)
    assert "Not measured" not in page
    facts["lines"]["warm"]["outdated"] = "a change"
    (tmp_path / "out" / "speed.json").write_text(json.dumps(facts))
    assert "- warm: measured before a change" in "\n".join(importlib.import_module("speed_page").page(facts))
    assert raced(speed, monkeypatch, tmp_path)[0] == ["warm"]


def test_figures_of_another_machine_are_not_mixed_in(speed, tmp_path):
    known = tmp_path / "speed.json"
    known.write_text(json.dumps({"machine": "a", "scale": 1.0, "lines": {"cold": {"seconds": 1.0}}}))
    assert speed.known_facts(known, tmp_path / "out", "a", 1.0)["lines"]
    assert not speed.known_facts(known, tmp_path / "out", "b", 1.0)["lines"]
    assert not speed.known_facts(known, tmp_path / "out", "a", 0.1)["lines"]
