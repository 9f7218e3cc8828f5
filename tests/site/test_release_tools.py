"""The tools of a release read what they should, without building or installing anything."""

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
    for name in ("release", "lowest"):
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
    more = {"seconds": {"pip install": 1, "tutorial": 2, "demo": 3}, "one line": {"hf": True, "ray": False}}
    text = "\n".join(empty_environments([demo | more]))
    assert "| 3.13.0 | 1 | 2 | 3 | **not: ray** |" in text and "45 of 45" in text


def test_a_difference_of_scores_above_the_bar_is_listed():
    from lowest import scores_compared

    text = "\n".join(scores_compared(pd.Series({"knn": 2e-4, "msp": 1e-7, "constant": np.nan})))
    assert "Holds for 1 of 2 detectors" in text and "| knn | 2.0e-04 |" in text and "constant" not in text
