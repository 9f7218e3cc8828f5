"""A detector with a network of its own, by command: trained, evaluated, refused as a classifier."""

import json

import pytest

from oodscope.models.density.saved import load_density, read_density_record
from tests.cli.test_train import project  # noqa: F401  # a fixture

pytestmark = pytest.mark.slow

SMALL = ("--set", "epochs=1", "--set", "width=4", "--set", "code=4", "--device", "cpu")


def job(folder, train, detectors=("autoencoder", "msp")):
    model = {"architecture": "small_cnn", "train": train}
    declared = {"benchmark": "bench.yaml", "root": ".", "detectors": list(detectors), "device": "cpu", "model": model}
    (folder / "job.yaml").write_text(json.dumps(declared))
    return folder / "job.yaml"


def test_from_training_to_evaluation(oodscope, project):  # noqa: F811
    plain = {"recipe": "cross_entropy", "epochs": 1}
    early = oodscope("run", job(project, plain))
    assert early.status == 1 and "oodscope train --recipe autoencoder --benchmark NAME" in early.err
    made = oodscope(
        "train", "--benchmark", project / "bench.yaml", "--root", project, "--recipe", "autoencoder", *SMALL
    )
    assert made.status == 0, made
    home = project / "runs/train/autoencoder-seed0"
    assert load_density(home).kind == "autoencoder"
    assert read_density_record(home).training["recipe"]["method"] == "AutoencoderRecipe"
    (report,) = (project / "runs/train").glob("autoencoder-*/report.html")
    assert "learns no classes" in report.read_text(encoding="utf-8")
    done = oodscope("run", job(project, plain))
    assert done.status == 0 and "autoencoder" in done.out, done
    refused = oodscope("run", job(project, {"recipe": "autoencoder"}))
    assert refused.status == 2 and "autoencoder trains no classifier but the network of a detector" in refused.err
    wrong = oodscope("evaluate", "--benchmark", project / "bench.yaml", "--root", project, "--model", home)
    assert wrong.status == 2 and "the network of a detector, not a classifier" in wrong.err
