"""A fitted detector is a run: threshold, guarantee, calibration scores and parameters, saved, found and shown."""

import json

import numpy as np
import pytest
import yaml
from safetensors.torch import save_file

import oodscope as oods
from oodscope.base.errors import DataError
from tests.cli.conftest import oodscope  # noqa: F401
from tests.seams.world import done

JOB = {
    "benchmark": {"id_train": "train.npz", "id_cal": "val.npz", "transform": {"size": 8}},
    "model": {"architecture": "small_cnn", "weights": "net.safetensors"},
    "fit": {"detector": "knn", "target_fpr": 0.2, "include_weights": True},
    "device": "cpu",
    "output": "knn.oodscope",
}


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name in ("train", "val"):
        pixels = rng.integers(0, 256, size=(60, 10, 10, 3)).astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", images=pixels, labels=np.arange(60) % 3)
    save_file(oods.create_model("small_cnn", num_classes=3)[0].state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    monkeypatch.chdir(tmp_path)
    return oods.run("job.yaml")


def test_it_comes_back_with_its_scorer(fitted, tmp_path):
    (run,) = oods.open_runs(".")
    assert run.kind == "fit" and run.record == fitted.record
    assert run.detector == fitted.detector.model_copy(update={"file": str(tmp_path / "knn.oodscope")})
    assert (run.calibration.scores == fitted.calibration.scores).all()
    scorer = oods.load(run.detector.file, device="cpu")
    assert scorer.calibration.threshold == run.detector.threshold == fitted.scorer.calibration.threshold
    assert run.detector.params["k"] == "auto"
    assert run.record.sets["calibration"].n == 60 and run.record.model == "small_cnn"


def test_the_share_of_false_alarms_is_that_of_the_scores(fitted):
    (row,) = fitted.measurements
    scores = fitted.calibration.scores
    assert row.metric == "false_alarms" and row.value == (scores > fitted.detector.threshold).mean() <= 0.2
    assert row.low < row.value < row.high and row.n_id == 60


def test_tables_and_page(fitted, oodscope, tmp_path):  # noqa: F811
    assert "knn-fit" in {path.name for path in tmp_path.iterdir()}
    printed = json.loads(done(oodscope("table", "knn-fit", "--format", "json")))
    assert printed["rows"]
    assert "k" in {row.name for row in fitted.table("parameters").rows}
    done(oodscope("report", "knn-fit", "--output", "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "scores of the calibration images" in page and "rejects at most 20" in page


def test_fitted_again_it_replaces_the_older_run(fitted):
    again = oods.run("job.yaml")
    (run,) = oods.open_runs(".")
    assert run.record.id == again.record.id and run.detector.threshold == fitted.detector.threshold


def test_what_was_changed_is_refused(fitted, tmp_path):
    np.save(tmp_path / "knn-fit" / "calibration.npy", np.zeros(60))
    with pytest.raises(DataError, match="checksum differs"):
        oods.open_runs(".")
