"""A training is a run: saved, found, printed, shown, and its networks opened again, whatever a recipe did to them."""

import json

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

import oodscope as oods
from oodscope.base.errors import DataError, ModelError, OodscopeError
from oodscope.document.figure import Figure
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier
from oodscope.training.loop.history import Epoch
from oodscope.training.registry import RECIPES
from tests.cli.conftest import oodscope  # noqa: F401
from tests.seams.world import done

CLASSES = 3
JOB = {
    "benchmark": {
        "id_train": "train.npz", "id_val": "val.npz", "id_test": "test.npz", "far": {"odd": "odd.npz"},
        "transform": {"size": 32},
    },
    "model": "small_cnn",
    "device": "cpu",
    "output": "out",
}  # fmt: skip
FAST = {"epochs": 2, "batch_size": 8}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A user's folder, entered: images of three easy classes."""
    rng = np.random.default_rng(0)
    for name in ("train", "val", "test", "odd"):
        labels = np.arange(24) % CLASSES
        pixels = rng.integers(0, 180, size=(24, 32, 32, 3)).astype(np.uint8)
        pixels[np.arange(24), :, :, labels] += 70
        np.savez(tmp_path / f"{name}.npz", images=pixels, labels=labels)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained(project, train, **changes):
    (project / "job.yaml").write_text(yaml.safe_dump({**JOB, "train": train, **changes}))
    return oods.run("job.yaml")


@pytest.mark.slow
def test_seeds_and_stages_make_one_run_that_comes_back(project, oodscope):  # noqa: F811
    run = trained(project, [{**FAST, "keep": "best"}, {"recipe": "t2fnorm", **FAST}], seeds=[0, 4])
    assert [each.seed for each in run.networks] == [0, 4]
    assert [[len(stage) for stage in each.stages] for each in run.networks] == [[2, 2], [2, 2]]
    (found,) = oods.open_runs("out")
    placed = [each.model_copy(update={"folder": str(project / each.folder)}) for each in run.networks]
    assert found.record == run.record and found.networks == placed and found.recipes == run.recipes
    assert found.measurements == run.measurements and len(run.measurements) == 2
    assert run.record.sets.keys() == {"id_train", "id_val", "id_test"}
    table = run.table()
    assert [row.name for row in table.rows] == ["0", "4", "mean ± sd"]
    assert len(run.table("epochs").rows) == 8
    assert "seed" not in {row.labels[1].text for row in run.table("settings").rows}, "each network has its own"
    place = project / "out" / run.record.id
    chapter = run.chapter()
    assert "over 2 seeds" in chapter.verdict
    curves = [block for block in chapter.blocks if isinstance(block, Figure)]
    assert [text for _, text in curves[0].x.ticks] == ["1", "2", "3", "4"], "an epoch has one tick"
    page = done(oodscope("report", place, "--output", "page.html")) and (project / "page.html").read_text("utf-8")
    assert "Training loss" in page and "Accuracy while training" in page and "cross_entropy + t2fnorm" in page
    for name in run.tables():
        printed = json.loads(done(oodscope("table", place, "--sheet", name, "--format", "json")))
        assert len(printed["rows"]) == len(run.table(name).rows)


def test_the_numbers_are_those_of_the_networks(project):
    run = trained(project, FAST)
    (network,) = run.networks
    spec = ModelSpec(architecture="small_cnn", weights=f"{network.folder}/model.safetensors")
    data = ModelData([str(c) for c in range(CLASSES)], transform=oods.Preprocess(size=32))
    classifier = build_classifier(spec, data, device="cpu").classifier.with_default_transform(data.transform)
    with np.load("test.npz") as stored:
        pictures, labels = list(stored["images"]), stored["labels"]
    predicted = classifier.forward(classifier.prepare(pictures)).logits.argmax(1).numpy()
    assert network.correct == int((predicted == labels).sum()) and network.n_test == 24
    (row,) = run.measurements
    assert row.value == network.correct / 24 and 0 <= row.low <= row.value <= row.high <= 1


def test_again_it_is_read_back_and_another_recipe_lies_beside_it(project):
    first = trained(project, FAST)
    stamp = (project / "out" / first.record.id / "run.json").stat().st_mtime_ns
    assert trained(project, FAST).record == first.record
    assert (project / "out" / first.record.id / "run.json").stat().st_mtime_ns == stamp
    second = trained(project, {**FAST, "learning_rate": 0.01, "recipe": "logitnorm"})
    assert {run.record.id for run in oods.open_runs("out")} == {first.record.id, second.record.id}


def test_what_was_changed_is_refused(project):
    run = trained(project, FAST)
    place = project / "out" / run.record.id / "networks.json"
    place.write_text(place.read_text().replace('"correct"', '"corect"'))
    with pytest.raises(DataError, match="checksum differs"):
        oods.open_runs("out")


def test_an_epoch_without_accuracies_has_no_curve_of_them(project):
    run = trained(project, FAST)
    bare = [Epoch(loss=1.0, train_accuracy=None, val_accuracy=None, seconds=0.1)]
    networks = [each.model_copy(update={"stages": [bare]}) for each in run.networks]
    from dataclasses import replace

    from oodscope.runs.training.figures import learning_curves

    assert [figure.title for figure in learning_curves(replace(run, networks=networks))] == ["Training loss"]


def test_groups_that_are_missing_are_named_before_the_first_stage(project):
    with pytest.raises(OodscopeError, match="mos needs groups of classes"):
        trained(project, [{**FAST}, {"recipe": "mos", "epochs": 1}])
    assert not list(project.glob("out/*/training.json")) and not list(project.glob("out/**/*.safetensors"))


WRAPPING = ["t2fnorm", "arpl", "conf_branch", "rotpred", "godin", "cider", "csi_heads", "sngp", "ant", "csi_unlabelled"]


class TestWrappedNetworks:
    """Recipes that change the network: its weights fit no network of the zoo, and open all the same."""

    @pytest.mark.parametrize("recipe", WRAPPING)
    def test_weights_alone_are_enough(self, project, recipe):
        run = trained(project, {"recipe": recipe, "epochs": 1, "batch_size": 8})
        folder = run.networks[0].folder
        data = ModelData([str(c) for c in range(CLASSES)], transform=oods.Preprocess(size=32))
        state = load_file(f"{folder}/model.safetensors")
        for spec in ({"architecture": "small_cnn", "weights": f"{folder}/model.safetensors"}, folder):
            built = build_classifier(ModelSpec.model_validate(spec).found_from(project), data, device="cpu")
            own = built.classifier.model.state_dict()
            assert own.keys() == state.keys() and all(torch.equal(own[key], state[key]) for key in own)
            assert built.recipe == RECIPES.get(recipe).__name__, "rows of its scores say how it was trained"

    @pytest.mark.slow
    def test_evaluate_fit_and_predict_by_command(self, project, oodscope):  # noqa: F811
        run = trained(project, {"recipe": "t2fnorm", "epochs": 1, "batch_size": 8}, seeds=[0, 1])
        weights = f"{run.networks[0].folder}/model.safetensors"
        sets = ("--id-train", "train.npz", "--id-test", "test.npz", "--far", "odd=odd.npz", "--transform", "{size: 32}")
        one = ("evaluate", "--model", "small_cnn", "--weights", weights, *sets, "--detectors", "msp", "--device", "cpu")
        assert "odd" in done(oodscope(*one, "--output", "one"))
        both = ("evaluate", "--model", f"out/{run.record.id}", *sets, "--detectors", "msp", "--device", "cpu")
        assert json.loads(done(oodscope(*both, "--output", "two", "--json")))["run"]["model"] == "2 x small_cnn"
        fitted = ("fit", "--model", run.networks[1].folder, "--id-train", "train.npz", "--id-cal", "val.npz")
        fitted += ("--detector", "mds", "--target-fpr", "0.2", "--transform", "{size: 32}", "--include-weights")
        assert "saved: d.oodscope" in done(oodscope(*fitted, "--output", "d.oodscope"))
        scorer = oods.load("d.oodscope", device="cpu")
        again = oods.open_runs("d-fit")[0]
        assert scorer.calibration.threshold == again.detector.threshold

    def test_another_architecture_or_number_of_classes_is_named(self, project):
        run = trained(project, {"recipe": "t2fnorm", "epochs": 1, "batch_size": 8})
        weights = f"{run.networks[0].folder}/model.safetensors"
        with pytest.raises(OodscopeError, match="weights of small_cnn, not of wrn_16_4; name that model"):
            build_classifier(ModelSpec(architecture="wrn_16_4", weights=weights), ModelData(["a", "b", "c"]))
        with pytest.raises(ModelError, match="was trained for 3 classes, and the data have 2"):
            build_classifier(ModelSpec(architecture="small_cnn", weights=weights), ModelData(["a", "b"]))
        with pytest.raises(OodscopeError, match="no training here; name the folder of one"):
            ModelSpec(architecture="out").found_from(project)

    def test_a_training_goes_on_from_it(self, project):
        first = trained(project, {"recipe": "t2fnorm", "epochs": 1, "batch_size": 8})
        weights = f"{first.networks[0].folder}/model.safetensors"
        second = trained(project, {"epochs": 1, "batch_size": 8}, weights=weights, output="more")
        record = json.loads((project / second.networks[0].folder / "network.json").read_text())
        assert [stage["recipe"]["recipe"] for stage in record["stages"]] == ["t2fnorm", "cross_entropy"]
