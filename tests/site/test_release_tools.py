"""The tools of a release read what they should, without building or installing anything."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    yield
    for name in ("release", "lowest", "newest"):
        sys.modules.pop(name, None)


def test_values_of_a_demo_are_held_against_the_intervals_of_the_readme():
    from release import ROOT, inside, table

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = table(readme)
    assert len(rows) >= 9 and {len(row) for row in rows.values()} == {5}
    assert inside(readme) == "45 of 45"
    value, half = rows["knn"][0]
    moved = readme.replace(f"{value:.1f} ±{half:.1f}", f"{value - 2 * half:.1f} ±{half:.1f}", 1)
    assert inside(moved) == "44 of 45"
    assert inside("nothing was printed") == "0 of 0"


def test_demos_stand_on_the_page_with_what_they_cost():
    from release import empty_environments

    demo = {
        "python": "3.13.0",
        "megabytes": 10,
        "report": True,
        "knn": ["knn", "1", "91.3", "±1.0"],
        "inside": "45 of 45",
    }
    assert not any("seconds" in line.lower() for line in empty_environments([demo]))
    steps = {"pip install": (200, 30), "tutorial": (100, 40), "demo": (900, 300)}
    more = {
        "seconds": {name: {"clock": clock, "processor": spent} for name, (clock, spent) in steps.items()},
        "one line": {"hf": True, "ray": False},
        "starts": {
            "import oodscope": 0.03,
            "oodscope --help": 0.2,
            "first use of evaluate": 3.0,
            "import torch": 2.0,
        },
        "load": 1.0,
        "commands": 5,
        "date": "2026-11-18",
    }
    text = "\n".join(empty_environments([demo | more]))
    assert "| 3.13.0 | 200 (30) | 100 (40) | 900 (300) | **not: ray** | 2026-11-18 |" in text and "45 of 45" in text
    assert "| 3.13.0 | 0.03 | 0.20 | 3.00 | 2.00 | yes |" in text
    assert "| 5.00 | 2.00 | **no** |" in "\n".join(
        empty_environments([demo | more | {"starts": more["starts"] | {"first use of evaluate": 5.0}}])
    )


@pytest.mark.parametrize(
    ("clock", "processor", "load", "commands", "words"),
    [
        (600, 150, 1.0, 5, "Holds"),
        (601, 150, 1.0, 5, "Does not hold"),
        (601, 150, 1000.0, 5, "Cannot say for every Python, the machine had other work"),
        (700, 650, 1000.0, 5, "Does not hold"),
        (60, 50, 1.0, 6, "Does not hold"),
    ],
)
def test_a_newcomer_needs_ten_minutes_and_five_commands(clock, processor, load, commands, words):
    from release import newcomer

    steps = {"pip install": {"clock": clock - 50, "processor": processor - 40}}
    seconds = steps | {"tutorial": {"clock": 50, "processor": 40}}
    said = newcomer([{"python": "3.13.0", "seconds": seconds, "commands": commands, "load": load}])
    assert f"5 commands: {words} ({commands} commands; Python 3.13.0: {clock / 60:.1f} minutes by the clock" in said


def test_the_commands_of_the_first_tutorial_are_counted():
    from release import FIRST, ROOT, typed

    tutorial = (ROOT / "docs" / "tutorials" / FIRST).read_text(encoding="utf-8")
    assert typed(tutorial) == 5
    assert typed(tutorial + '\nshell("oodscope list")\n') == 6


def test_a_test_that_failed_on_another_python_is_named():
    from release import other_pythons

    row = {
        "python": "3.13.0",
        "torch": "2.15.0",
        "chosen": ["tests/base"],
        "counts": {"passed": 1200, "skipped": 3, "failed": 1},
        "ended": False,
        "failed": ["tests.base.test_files::test_one"],
        "scores": {"detectors": 54, "within": 54, "largest": 7.7e-14},
        "date": "2026-11-18",
    }
    text = "\n".join(other_pythons([row]))
    assert (
        "| 3.13.0 | 2.15.0 | tests/base | 1,200 | 3 | 1 | 54 of 54 | 7.7e-14 | 2026-11-18, **stopped early** |" in text
    )
    assert "- Python 3.13.0: `tests.base.test_files::test_one`" in text


def test_what_is_found_is_kept_beside_what_is_known(monkeypatch, tmp_path):
    import release

    monkeypatch.setattr(release, "FOUND", tmp_path / "release.json")
    monkeypatch.setattr(release, "PAGE", tmp_path / "release.md")
    whole = json.loads((release.ROOT / "docs" / "results" / "data" / "release.json").read_text("utf-8"))
    demo = {"python": "3.11.7", "megabytes": 1, "report": True, "knn": [], "note": "small"}
    release.keep(whole | {"demos": [demo], "tests": []})
    other = {name: value for name, value in demo.items() if name != "note"}
    for report in (False, True):  # the second replaces the first, and neither the one of another environment
        release.keep({"demos": [other | {"report": report}]})
    known = json.loads((tmp_path / "release.json").read_text("utf-8"))
    assert known["demos"] == [other, demo] and known["wheel"] == whole["wheel"]
    assert "in 2 of 2 empty environments" in (tmp_path / "release.md").read_text("utf-8")


def test_a_difference_of_scores_above_the_bar_is_listed():
    from lowest import scores_compared

    text = "\n".join(scores_compared(pd.Series({"knn": 2e-4, "msp": 1e-7, "constant": np.nan})))
    assert "Holds for 1 of 2 detectors" in text and "| knn | 2.0e-04 |" in text and "constant" not in text
