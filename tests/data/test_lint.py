"""Linting a benchmark: every mistake is named with its key, all at once, and a clean file says nothing."""

import json
import shutil

import numpy as np
import pytest
import yaml
from PIL import Image

from oodscope.data.lint import lint
from oodscope.data.packaged import names_in
from tests.cli.conftest import oodscope  # noqa: F401


def paint(folder, classes, count, seed):
    rng = np.random.default_rng(seed)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for number in range(count):
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / name / f"{number}.png")


@pytest.fixture
def declared(tmp_path):
    """A benchmark without a fault, as the file declares it."""
    for seed, (place, classes, count) in enumerate(
        [
            ("train", ("robin", "wren"), 3),
            ("val", ("robin", "wren"), 3),
            ("test", ("robin", "wren"), 50),
            ("near", ("crow", "jay"), 50),
            ("ood_val", ("owl",), 3),
        ]
    ):
        paint(tmp_path / place, classes, count, seed)
    sets = {role: {"source": "folder", "path": role.removeprefix("id_")} for role in ("id_train", "id_val", "id_test")}
    sets["near"] = {"others": {"source": "folder", "path": "near", "classes": "sampled"}}
    sets["ood_val"] = {"source": "folder", "path": "ood_val"}
    return {
        "name": "birds", "version": "1", "description": "birds", "transform": {"size": 8, "mean": [0.5], "std": [0.5]},
        "sets": sets,
    }  # fmt: skip


def write(folder, content, name="birds.yaml"):
    (folder / name).write_text(yaml.safe_dump(content))
    return folder / name


def test_a_clean_file_says_nothing(declared, tmp_path):
    assert lint(write(tmp_path, declared)) == []


def test_everything_that_the_declaration_lacks_comes_at_once(declared, tmp_path):
    del declared["description"], declared["transform"], declared["sets"]["id_train"], declared["sets"]["ood_val"]
    declared["sets"]["near"] = {}
    findings = lint(write(tmp_path, declared))
    assert [(each.level, each.where) for each in findings] == [
        ("error", "sets"), ("warning", "description"), ("warning", "sets.id_train"), ("warning", "sets.ood_val"),
        ("warning", "transform"),
    ]  # fmt: skip


def test_a_set_that_is_tuned_and_tested_on_is_an_error(declared, tmp_path):
    declared["sets"]["ood_val"] = {"source": "folder", "path": "near"}
    (finding,) = lint(write(tmp_path, declared))
    assert (finding.level, finding.where) == ("error", "sets.ood_val")
    assert "same images as sets.near.others" in finding.text


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"path": "nowhere"}, "sets", "nowhere"),
        ({"classes": None}, "sets.near.others", "does not say what its classes are"),
    ],
)
def test_faults_of_one_set(declared, tmp_path, change, where, words):
    spec = declared["sets"]["near"]["others"]
    spec.update(change)
    declared["sets"]["near"]["others"] = {key: value for key, value in spec.items() if value is not None}
    (finding,) = lint(write(tmp_path, declared))
    assert finding.where == where
    assert words in finding.text


def test_public_sets_are_checked_by_their_cards(declared, tmp_path):
    declared["sets"]["far"] = {"digits": {"source": "dataset", "dataset": "mnist", "split": "tset"}}
    (finding,) = lint(write(tmp_path, declared))
    assert (finding.level, finding.where) == ("error", "sets.far.digits")
    assert "has no split 'tset'. Did you mean 'test'" in finding.text
    declared["sets"]["far"]["digits"]["split"] = "test"
    (finding,) = lint(write(tmp_path, declared), images=False)
    assert "has no count" in finding.text


def test_what_only_the_images_show(declared, tmp_path):
    (tmp_path / "near" / "crow").rename(tmp_path / "near" / "Robins")
    (tmp_path / "near" / "Robins").rename(tmp_path / "near" / "robin")
    image = next((tmp_path / "train" / "wren").iterdir())
    (tmp_path / "near" / "jay" / "copy.png").write_bytes(image.read_bytes())
    findings = {(each.level, each.where): each.text for each in lint(write(tmp_path, declared))}
    assert "has the name of an ID class: 'robin'" in findings["error", "sets.near.others"]
    assert findings["warning", "sets"] == "1 image of id_train occurs in others too"
    (tmp_path / "ood_val" / "owl" / "copy.png").write_bytes(
        next((tmp_path / "near" / "jay").glob("0.png")).read_bytes()
    )
    assert any("also in 'ood_val' (validation)" in each.text for each in lint(tmp_path / "birds.yaml"))


def test_few_images_and_absent_classes_are_warned_of(declared, tmp_path):
    shutil.rmtree(tmp_path / "near" / "jay")
    declared["classes"] = ["robin", "wren", "finch"]
    findings = {each.where: each.text for each in lint(write(tmp_path, declared))}
    assert "has 50 images: fewer than 100" in findings["sets.near.others"]
    assert findings["sets.id_test"] == "has no image of 1 of its classes: 'finch'"


@pytest.mark.parametrize("name", names_in("benchmarks"))
def test_packaged_benchmarks_have_no_error(name):
    assert [each for each in lint(name, images=False) if each.level == "error"] == []


def test_a_file_that_is_no_benchmark_is_one_error(tmp_path):
    (tmp_path / "x.yaml").write_text("name: x\nsest: {}\n")
    (finding,) = lint(tmp_path / "x.yaml")
    assert "Did you mean 'sets'" in finding.text


def test_the_command(oodscope, declared, tmp_path):  # noqa: F811
    path = write(tmp_path, declared, "other.yaml")
    clean = oodscope("data", "lint", path)
    assert clean.status == 0
    assert "the file is called 'other.yaml'" in clean.out
    assert f"{path}: 0 errors, 1 warnings" in clean.out
    declared["sets"]["near"] = {}
    failed = oodscope("data", "lint", write(tmp_path, declared), "--json")
    assert failed.status == 1
    assert json.loads(failed.out)[0]["level"] == "error"
