"""Fit, predict, export: from folders of PNG files to verdicts, and every mistake on one line."""

import csv
import io
import json
import sys

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import save_file

import oodscope as oods
from oodscope.data.glyphs.split import open_glyphs
from oodscope.models.zoo.zoo import create_model

TRANSFORM = "{size: 32, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}"


def write(images, folder, labelled=True):
    for row, label in enumerate(images.labels):
        home = folder / images.class_names[label] if labelled else folder
        home.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images.images([row])[0]).save(home / f"{row:03}.png")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Glyphs as a user's folders, and a checkpoint."""
    folder = tmp_path_factory.mktemp("project")
    train, cal = (open_glyphs(name, "id_train", per_class=3, seed=seed) for name, seed in (("train", 0), ("cal", 1)))
    write(train, folder / "train")
    write(cal, folder / "cal", labelled=False)
    write(open_glyphs("new", "id_train", per_class=1, seed=2), folder / "new", labelled=False)
    model, _ = create_model("small_cnn", num_classes=len(train.class_names))
    save_file(model.state_dict(), folder / "net.safetensors")
    save_file({key: value + 1 for key, value in model.state_dict().items()}, folder / "other.safetensors")
    return folder


@pytest.fixture
def fit(oodscope, project, tmp_path):
    def run(*changes, detector="knn"):
        return oodscope(
            "fit", "--model", "small_cnn", "--weights", project / "net.safetensors", "--detector", detector,
            "--id-train", project / "train", "--id-cal", project / "cal", "--transform", TRANSFORM,
            "--output", tmp_path / "d.oodscope", *changes,
        )  # fmt: skip

    return run


def test_fit_predict_json_csv_and_table(oodscope, project, fit, tmp_path):
    fitted = fit("--include-weights", "--target-fpr", "0.1")
    assert fitted.status == 0, fitted
    assert "knn: reject above" in fitted.out
    assert "at most 10 % on average (conformal); nothing is promised about outliers or shifted images" in fitted.out
    assert "extract id_train" in fitted.err
    lines = oodscope("predict", tmp_path / "d.oodscope", project / "new", "--json")
    assert lines.status == 0, lines
    rows = [json.loads(line) for line in lines.out.splitlines()]
    files = sorted((project / "new").glob("*.png"))
    assert [row["path"] for row in rows] == [str(file) for file in files]
    scorer = oods.load(tmp_path / "d.oodscope", device="cpu")
    for row, expected in zip(rows, scorer.predict(files)):
        assert row["error"] is None
        assert row["score"] == pytest.approx(expected.score, rel=1e-5)
        assert (row["class_name"], row["accepted"]) == (expected.class_name, expected.accepted)
        assert row["p_value"] == pytest.approx(expected.p_value, abs=0.02)
    table = list(csv.DictReader(io.StringIO(oodscope("predict", tmp_path / "d.oodscope", *files, "--csv").out)))
    assert [row["path"] for row in table] == [row["path"] for row in rows]
    assert [row["accepted"] for row in table] == [str(row["accepted"]) for row in rows]
    shown = oodscope("predict", tmp_path / "d.oodscope", files[0])
    assert "accepted" in shown.out or "rejected" in shown.out
    assert "nothing is promised about outliers" in " ".join(shown.out.split())


def test_unreadable_images_do_not_stop_the_others(oodscope, project, fit, tmp_path):
    assert fit("--include-weights", detector="msp").status == 0
    good = sorted((project / "new").glob("*.png"))[:2]
    (tmp_path / "bad.png").write_bytes(b"no image")
    done = oodscope(
        "predict",
        tmp_path / "d.oodscope",
        good[0],
        tmp_path / "bad.png",
        "gone.png",
        good[1],
        "--json",
        "--batch-size",
        2,
    )
    assert done.status == 1
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["error"] is None for row in rows] == [True, False, False, True]
    assert "cannot identify" in rows[1]["error"]
    assert rows[2]["error"] == "no such file"
    assert rows[1]["score"] is None
    assert done.err.splitlines()[-1] == "oodscope: 2 images could not be read"
    table = oodscope("predict", tmp_path / "d.oodscope", tmp_path / "bad.png")
    assert table.status == 1


def test_a_batch_at_a_false_discovery_rate_and_a_stream_with_an_alarm(oodscope, project, fit, tmp_path):
    assert fit("--include-weights", "--target-fpr", "0.1", detector="msp").status == 0
    file, new = tmp_path / "d.oodscope", project / "new"
    done = oodscope("predict", file, new, "--fdr", "0.4", "--csid", project / "cal", "--json")
    assert done.status == 0, done
    rows = [json.loads(line) for line in done.out.splitlines()]
    from oodscope.metrics.rejection.fdr import select_outliers

    expected = select_outliers(oods.load(file, device="cpu").calibration, [row["score"] for row in rows], 0.4)
    assert [row["accepted"] for row in rows] == (~expected.flagged).tolist()
    assert f"flagged {expected.flagged.sum()} of {len(rows)} images: of the flagged images at most 40 %" in done.err
    assert "covariate-shifted images: " in done.err
    few = oodscope("predict", file, new, "--fdr", "0.01", "--fdr-confidence", "0.9")
    assert "warning: " in few.err and "of calibration sets (conditional)" in few.err
    for wrong, message in {
        ("--fdr", "3"): "--fdr lies between 0 and 1",
        ("--fdr-confidence", "0.9"): "--fdr-confidence belongs to --fdr",
        ("--csid", "rainy"): "--csid belongs to --fdr",
    }.items():
        refused = oodscope("predict", file, new, *wrong)
        assert refused.status == 2 and message in refused.err.splitlines()[-1]

    watched = oodscope("monitor", file, new, "--state", tmp_path / "s.json", "--json")
    assert watched.status == 0, watched
    first = json.loads(watched.out)
    assert first["images"] == len(rows) and first["alarm"] is None and len(first["power"]) == 3
    (tmp_path / "bad.png").write_bytes(b"no image")
    again = oodscope(
        "monitor", file, project / "new", tmp_path / "bad.png", "--state", tmp_path / "s.json", "--no-power"
    )
    assert again.status == 1 and f"{2 * len(rows)} images" in again.out and "power" not in again.out
    assert oodscope("monitor", file, new, "--alpha", "2").status == 2


def test_weights_beside_the_file(oodscope, project, fit, tmp_path):
    assert fit("--guarantee", "pac", "--confidence", "0.9", "--target-fpr", "0.1", detector="react").status == 0
    new = project / "new"
    assert oodscope("predict", tmp_path / "d.oodscope", new, "--weights", project / "net.safetensors").status == 0
    for arguments, (message, status) in {
        (): ("needs the weights of small_cnn that it was fitted with: give --weights FILE", 2),
        ("--weights", project / "other.safetensors"): ("the weights are not those it was fitted with", 1),
        ("--json", "--csv"): ("--json or --csv, not both", 2),
    }.items():
        refused = oodscope("predict", tmp_path / "d.oodscope", new, *arguments)
        assert refused.status == status
        assert message in refused.err.splitlines()[-1]
        assert refused.out == ""


def test_a_benchmark_instead_of_folders(oodscope, project, tmp_path):
    rng = np.random.default_rng(0)
    for name, count in (("train", 30), ("val", 24), ("test", 12)):
        pixels = rng.integers(0, 256, size=(count, 32, 32, 3), dtype=np.uint8)
        np.savez(tmp_path / f"{name}.npz", images=pixels, labels=np.arange(count) % 3)
    sets = "".join(f"  id_{name}: {{source: npz, path: {name}.npz}}\n" for name in ("train", "val", "test"))
    (tmp_path / "b.yaml").write_text(f'name: b\nversion: "1"\ntransform: {{size: 32}}\nsets:\n{sets}')
    save_file(create_model("small_cnn", num_classes=3)[0].state_dict(), tmp_path / "net.safetensors")
    done = oodscope(
        "fit", "--model", "small_cnn", "--weights", tmp_path / "net.safetensors", "--detector", "mds",
        "--benchmark", tmp_path / "b.yaml", "--output", tmp_path / "d.oodscope",
    )  # fmt: skip
    assert done.status == 0, done
    loaded = oods.load(tmp_path / "d.oodscope", weights=tmp_path / "net.safetensors", device="cpu")
    assert loaded.calibration.guarantee.n == 24
    assert loaded.classifier.transform.size == 32


@pytest.mark.parametrize(
    ("changes", "message", "status"),
    [
        (("--target-fpr", "0.001"), "a target of 0.001 needs at least 999 calibration images", 1),
        (("--guarantee", "sure"), "'sure' is not one of 'conformal', 'pac'", 2),
        (("--detector", "knnn"), "unknown detector 'knnn'. Did you mean 'knn'", 2),
        (("--transform", "{size: 32, maen: [1]}"), "unknown key 'transform.maen'. Did you mean 'mean'", 2),
        (("--transform", "{size: "), "--transform: not valid YAML", 2),
        (("--transform", ""), "has no transform: pass --transform", 1),
        (("--benchmark", "glyphs"), "pass --id-cal (and --id-train) or --benchmark, and not both", 2),
        (("--id-cal", "gone"), "gone is not there; images come from a folder", 1),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(fit, tmp_path, changes, message, status):
    done = fit(*changes)
    assert done.status == status, done
    assert message in done.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("oodscope: ")
    assert not (tmp_path / "d.oodscope").exists()


def test_unreadable_calibration_images_can_be_left_out(fit, project, tmp_path):
    import shutil

    shutil.copytree(project / "cal", tmp_path / "cal")
    (tmp_path / "cal" / "bad.png").write_bytes(b"no image")
    stopped = fit("--id-cal", tmp_path / "cal")
    assert stopped.status == 1
    assert "--skip-unreadable" in stopped.err.splitlines()[-1]
    done = fit("--id-cal", tmp_path / "cal", "--skip-unreadable")
    assert done.status == 0, done


def test_training_images_cannot_calibrate(fit, project):
    done = fit("--id-cal", project / "train")
    assert done.status == 1
    assert "calibration images also lie among the training images" in done.err


@pytest.mark.slow
def test_export(oodscope, project, fit, tmp_path):
    pytest.importorskip("onnxruntime")
    assert fit("--include-weights", detector="ebo").status == 0
    done = oodscope("export", tmp_path / "d.oodscope", "--onnx", tmp_path / "m.onnx", "--images", project / "new")
    assert done.status == 0, done
    assert "differs from torch on noise by" in done.out
    assert "differs from torch on images by" in done.out
    assert (tmp_path / "m.onnx").stat().st_size > 100_000


def test_what_an_export_needs_is_said_before_a_network_is_loaded(oodscope, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    done = oodscope("export", tmp_path / "none.oodscope", "--onnx", tmp_path / "m.onnx")
    assert done.status == 1 and done.err.strip().endswith("export needs onnxruntime: pip install 'oodscope[onnx]'")
    assert len(done.err.strip().splitlines()) == 1
