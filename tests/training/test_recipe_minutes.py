"""The script that measures how long every recipe takes: it goes on, passes over what fails, and lists what it saw."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import recipe_minutes

TRY = ["--images", "40", "--network", "small_cnn", "--device", "cpu", "--seconds", "0"]


@pytest.mark.slow
def test_measures_goes_on_and_lists(tmp_path, monkeypatch, capsys):
    def measure(*more):
        recipe_minutes.main(["--output", str(tmp_path), *TRY, *more])
        return json.loads((tmp_path / "recipes.json").read_text())["recipes"]

    real = recipe_minutes.made
    monkeypatch.setattr(recipe_minutes, "made", lambda name, *rest: {}[name] if name == "mos" else real(name, *rest))
    rows = measure("--recipes", "mos,mcd")
    assert rows["mos"] == {"failed": "KeyError: 'mos'"} and rows["mcd"]["minutes"] > 0
    assert set(rows["mcd"]["milliseconds"]) == {"0", "1"}, "outliers are shown in the last epochs only"
    monkeypatch.setattr(recipe_minutes, "made", real)
    again = measure("--recipes", "mos,mcd")
    assert again["mcd"] == rows["mcd"] and again["mos"]["minutes"] > 0, "only what is missing is measured"
    assert "mcd" not in capsys.readouterr().out.splitlines()[-1]
    assert measure("--minutes", "0").keys() == {"mos", "mcd"}
    assert "call again" in capsys.readouterr().out


def test_the_page_and_the_list(tmp_path):
    row = {
        "epochs": 3,
        "batch_size": 8,
        "precision": "tf32",
        "milliseconds": {"0": 1.0, "1": 2.5},
        "between_epochs": 0.0,
    }
    found = {
        "machine": "GPU",
        "recipes": {
            "vos": {**row, "minutes": 2.5, "recorded": True},
            "nae": {**row, "minutes": 7.0, "recorded": False, "note": "timed twice"},
            "udg": {"failed": "ValueError: no"},
        },
    }
    (tmp_path / "recipes.json").write_text(json.dumps(found))
    listed = tmp_path / "minutes.json"
    listed.write_text(json.dumps({"about": "x", "minutes": {"nae": 6.5}}))
    recipe_minutes.main(["--output", str(tmp_path), "--write", str(tmp_path / "page.md"), "--listed", str(listed)])
    page = (tmp_path / "page.md").read_text()
    assert "2 of " in page and "0 take at most two minutes; the longest is nae with 7.0." in page
    assert "| vos | 2.50 | 3 | 8 | tf32 | 1.00, 2.50 | yes |" in page
    assert (
        "optimiser asks the host: nae." in page
        and "- Failed: udg: ValueError: no" in page
        and "mcd" in page.splitlines()[-2]
        and page.splitlines()[-1] == "- nae: timed twice."
    )
    assert json.loads(listed.read_text())["minutes"] == {"nae": 6.5, "vos": 2.5}, "whole trainings stay"


def test_what_was_measured_is_kept_beside_the_page():
    """Another call goes on from it: the page is what the script makes of the numbers that are kept."""
    docs = Path(__file__).parents[2] / "docs" / "results"
    written = (docs / "recipe-minutes.md").read_text(encoding="utf-8")
    found = json.loads((docs / "data" / "recipe-minutes" / "recipes.json").read_text())
    day = written.partition("**Date.** ")[2][:10]
    assert recipe_minutes.page(found, day) == written
