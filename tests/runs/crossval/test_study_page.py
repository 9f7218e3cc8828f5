"""The command that makes the page of the cross-validation on real images, on images of no size."""

import sys
from pathlib import Path

import pytest

from oodscope.runs.crossval.draws import Pair
from oodscope.training.heads.recipe import HeadRecipe
from tests.runs.crossval.crossval_world import known, strange
from tests.tiny import classifier


@pytest.fixture
def study(monkeypatch, tmp_path):
    """The benchmark with one row that is run and one that is not, on two tiny pairs."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    monkeypatch.setenv("OODSCOPE_DATA", str(tmp_path))
    monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "cache"))
    import crossval_study

    small = {"folds": 3, "repetitions": 2, "hold_outs": 12, "detectors": ("mds", "ebo"), "pre_activation": ("mds",)}
    plan, recipe = {"preset": "dcv-paper", **small}, HeadRecipe(epochs=1, hidden=8)
    rows = tuple(
        crossval_study.Row(name, f"a row called {name}", plan, recipe, known=("known",)) for name in ("first", "second")
    )
    pairs = [Pair(known(), strange()), Pair(known(), strange("fog", seed=5))]
    monkeypatch.setattr(crossval_study, "ROWS", rows)
    monkeypatch.setattr(crossval_study, "REDUCED", ())
    monkeypatch.setattr(crossval_study, "make_pairs", lambda *_: pairs)
    monkeypatch.setattr(crossval_study, "open_classifier", lambda *_: classifier())

    def run(*arguments):
        page = tmp_path / "page.md"
        monkeypatch.setattr(sys, "argv", ["study", str(tmp_path / "out"), "--page", str(page), *arguments])
        crossval_study.main()
        return page.read_text(encoding="utf-8")

    return run


def test_pieces_go_on_and_the_page_names_what_is_left(study):
    begun = study("--seconds", "0.001")
    assert "- `second` (a row called second): not yet run" in begun
    assert "- `first` (a row called first): not yet run" in begun
    whole = study("--seconds", "300")
    assert "Rows not yet run" not in whole
    assert whole.count("### What differs from the paper") == 2
    assert "features before the ReLU: mean of the 12 hold-outs" in whole
    assert "features after the ReLU: mean of the 12 hold-outs" in whole
    assert "Error of a cross-validation over that of 3 hold-outs (RMSE)" in whole
    assert "ID accuracy of the networks" in whole
    assert "| cross-validations | 10; the number of folds is not stated | 2 of 3 folds |" in whole
    assert "before the ReLU for mds;" in whole
    # written again from what is stored
    numbers = [line for line in whole.splitlines() if line.startswith("| ")]
    assert [line for line in study("--write-only").splitlines() if line.startswith("| ")] == numbers
