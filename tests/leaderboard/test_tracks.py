"""Rows of training and score: the training behind the scores decides where an entry stands."""

import pytest

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.leaderboard.records.folder import read_entry
from oodscope.leaderboard.verify.submitting import submit
from oodscope.leaderboard.verify.tracks import check_track, track_of
from oodscope.training.registry import RECIPES
from tests.tiny import benchmark, classifier


@pytest.mark.parametrize(
    ("recipe", "track"),
    [
        ("CrossEntropy", "post-hoc"),
        ("FineTune", "post-hoc"),
        ("LogitNorm", "training"),
        ("CrossEntropy + MOS", "training"),
        ("CSI + CSIHeads", "training"),
        ("CrossEntropy + MixOE", "outlier-data"),
        ("UDG", "outlier-data"),
        ("MCD + CrossEntropy", "outlier-data"),
        ("CrossEntropy, linear probe (penalty 1)", "post-hoc"),
        ("", None),
        ("a recipe of somebody else", None),
        ("CrossEntropy + SomebodyElse", None),
    ],
)
def test_the_track_of_a_training(recipe, track):
    assert track_of(recipe) == track


def test_every_recipe_with_outliers_stands_apart():
    for name in RECIPES:
        cls = RECIPES.get(name)
        exposed = cls.model_fields["ood_batch_size"].default > 0
        assert (track_of(cls.__name__) == "outlier-data") == exposed, name


def test_what_contradicts_the_training_is_refused():
    with pytest.raises(DataError, match="trained by OutlierExposure, which learns from outliers: --track outlier-data"):
        check_track("training", "OutlierExposure")
    with pytest.raises(DataError, match="trained by VOS, which is a method of its own: --track training"):
        check_track("post-hoc", "VOS")
    assert check_track("outlier-data", "VOS") == "outlier-data", "the stricter one may be asked for"
    assert check_track("vision-language", "") == "vision-language" and check_track(None, "") == "post-hoc"


@pytest.mark.slow
def test_an_entry_takes_the_track_of_its_training(tmp_path):
    folders = {}
    for recipe in ("CrossEntropy", "CrossEntropy + MOS", "MCD"):
        result = oods.evaluate(
            classifier(0), benchmark(), ["msp"], store=oods.ActivationStore(tmp_path / "store"), recipe=recipe
        )
        folders[recipe] = result.save(tmp_path / result.record.id)
    entered = [
        submit(folder, tmp_path / "board", id=f"entry-{number}", method="M")
        for number, folder in enumerate(folders.values())
    ]
    assert [read_entry(each).track for each in entered] == ["post-hoc", "training", "outlier-data"]
    with pytest.raises(DataError, match="learns from outliers"):
        submit(folders["MCD"], tmp_path / "board", id="smuggled", method="M", track="training")
    assert not (tmp_path / "board" / "smuggled").exists()
