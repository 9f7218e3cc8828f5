"""From a YAML file to tables, results and report; and every mistake on one line."""

import json
import os

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from oodscope.models.zoo.zoo import create_model

BENCHMARK = """
name: small
version: "1"
transform: {size: 32}
sets:
  id_train: {source: npz, path: train.npz}
  id_val: {source: npz, path: val.npz}
  id_test: {source: npz, path: test.npz}
  near: {grain: {source: folder, path: grain}}
  csid: {dark: {source: npz, path: dark.npz}}
  ood_val: {source: npz, path: ood.npz}
"""

JOB = """
benchmark: bench.yaml
model: {architecture: small_cnn, weights: net.safetensors}
detectors: [msp, {knn: {k: 3}}, react+mls]
protocols: [standard, full_spectrum]
output: out
"""


@pytest.fixture
def project(tmp_path):
    """A user's folder: images on disk, a checkpoint, a benchmark and a job."""
    rng = np.random.default_rng(0)

    def arrays(name, count, labels=True):
        pixels = rng.integers(0, 256, size=(count, 32, 32, 3)).astype(np.uint8)
        extra = {"labels": np.arange(count) % 3} if labels else {}
        np.savez(tmp_path / f"{name}.npz", images=pixels, **extra)

    for name in ("train", "val", "test", "dark"):
        arrays(name, 12)
    arrays("ood", 9, labels=False)
    (tmp_path / "grain").mkdir()
    for number in range(8):
        pixels = rng.integers(0, 256, size=(40, 50, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "grain" / f"{number}.png")
    model, _ = create_model("small_cnn", num_classes=3)
    save_file(model.state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "bench.yaml").write_text(BENCHMARK)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def results(project):
    return sorted((project / "out").glob("*/run.json"))


class TestWorks:
    def test_run_table_and_files(self, oodscope, project):
        outcome = oodscope("run", project / "job.yaml", "--output", project / "out")
        assert outcome.status == 0, outcome
        assert "protocol standard" in outcome.out
        assert "protocol full_spectrum" in outcome.out
        assert "react+mls" in outcome.out
        assert "extract id_train" in outcome.err
        (record,) = results(project)
        folder = record.parent
        assert {file.name for file in folder.iterdir()} == {
            "run.json", "measurements.parquet", "measurements.csv", "scores.parquet", "gallery.safetensors",
            "report.html",
        }  # fmt: skip
        latex = oodscope("table", folder, "--format", "latex", "--metric", "fpr95_id_positive")
        assert "\\toprule" in latex.out
        stored = oodscope("table", "--store", project / "out" / "results.sqlite", "--format", "csv")
        assert "knn(k=3)" in stored.out

    def test_json_is_for_machines(self, oodscope, project):
        outcome = oodscope("run", project / "job.yaml", "--output", project / "out", "--json")
        content = json.loads(outcome.out)
        assert {row["detector"] for row in content["measurements"]} == {"", "msp", "knn(k=3)", "react+mls"}
        assert content["run"]["benchmark"] == "small"

    def test_evaluate_with_a_search(self, oodscope, project):
        outcome = oodscope(
            "evaluate", "--model", "small_cnn", "--weights", project / "net.safetensors", "--tune", "ood_val",
            "--benchmark", project / "bench.yaml", "--detectors", "msp, react", "--output", project / "out", "--json",
        )  # fmt: skip
        assert outcome.status == 0, outcome
        assert {row["tuning"] for row in json.loads(outcome.out)["measurements"] if row["detector"]} == {"ood_val"}

    @pytest.mark.slow
    def test_unreadable_images_can_be_skipped_and_are_counted(self, oodscope, project):
        (project / "grain" / "bad.png").write_bytes(b"no image")
        stopped = oodscope("run", project / "job.yaml", "--output", project / "out")
        assert stopped.status == 1
        assert stopped.err.splitlines()[-1].startswith("oodscope: unreadable image")
        assert "bad.png" in stopped.err
        assert results(project) == []
        change(project / "job.yaml", "output: out", "skip_unreadable: true")
        outcome = oodscope("run", project / "job.yaml", "--output", project / "out")
        assert outcome.status == 0, outcome
        assert "1 unreadable image of grain left out: bad.png" in outcome.out


MISTAKES = {
    "misspelt key": ("job.yaml", "protocols:", "protocls:", "unknown key 'protocls'. Did you mean 'protocols'", 2),
    "misspelt key in the benchmark": (
        "bench.yaml",
        "near:",
        "naer:",
        "unknown key 'sets.naer'. Did you mean 'near",
        2,
    ),
    "unknown detector": ("job.yaml", "msp,", "msq,", "unknown detector 'msq'. Did you mean 'msp'", 2),
    "unknown parameter": ("job.yaml", "k: 3", "kk: 3", "knn: no parameter 'kk'", 2),
    "k too large": ("job.yaml", "k: 3", "k: 13", "knn: k=13 needs at least 13 remembered", 1),
    "unknown protocol": ("job.yaml", "full_spectrum", "full", "unknown protocol 'full'", 2),
    "unknown model": ("job.yaml", "small_cnn", "small_cn", "unknown model 'small_cn'. Did you mean 'small_cnn'", 2),
    "no weights": ("job.yaml", ", weights: net.safetensors", "", "a model needs weights", 2),
    "missing weights": ("job.yaml", "net.safetensors", "gone.safetensors", "gone.safetensors", 1),
    "unknown benchmark": ("job.yaml", "bench.yaml", "benchmark", "unknown benchmark 'benchmark'", 2),
    "missing benchmark": ("job.yaml", "bench.yaml", "gone.yaml", "gone.yaml: no such file", 1),
    "missing arrays": ("bench.yaml", "val.npz", "gone.npz", "gone.npz", 1),
    "missing folder": ("bench.yaml", "path: grain", "path: grian", "grian is not a folder", 1),
    "cuda that is not there": ("job.yaml", "output: out", "device: cuda", "cuda", 1),
}


class TestMistakes:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", MISTAKES)
    def test_one_clear_line_and_nothing_written(self, oodscope, project, kind):
        if kind == "cuda that is not there":
            import torch

            if torch.cuda.is_available():
                pytest.skip("there is a CUDA device here")
        file, old, new, message, status = MISTAKES[kind]
        change(project / file, old, new)
        outcome = oodscope("run", project / "job.yaml", "--output", project / "out")
        assert outcome.status == status, outcome
        last = outcome.err.splitlines()[-1]
        assert last.startswith("oodscope: ")
        assert message in last
        assert "Traceback" not in outcome.err
        assert not (project / "out").exists()

    def arrays(self, project, name, **changes):
        with np.load(project / f"{name}.npz") as old:
            content = {**old, **changes}
        np.savez(project / f"{name}.npz", **content)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"images": np.zeros((0, 32, 32, 3), np.uint8), "labels": np.zeros(0, int)}, "set 'id_test' is empty"),
            ({"labels": np.zeros(12, int)}, "holds one class only"),
            ({"labels": np.full(12, -3)}, "label -3 of image 0 is out of range"),
            ({"labels": np.arange(12)}, "which is not among the in-distribution classes"),
            ({"images": np.zeros((12, 32, 32, 3), np.float32)}, "must be uint8"),
        ],
    )
    def test_bad_arrays(self, oodscope, project, changes, message):
        self.arrays(project, "test", **changes)
        outcome = oodscope("run", project / "job.yaml", "--output", project / "out")
        assert outcome.status == 1, outcome
        assert message in outcome.err.splitlines()[-1]
        assert not (project / "out").exists()

    def test_a_pickled_checkpoint_is_refused(self, oodscope, project):
        import pickle

        (project / "net.pt").write_bytes(pickle.dumps({"a": os.system}))
        change(project / "job.yaml", "net.safetensors", "net.pt")
        outcome = oodscope("run", project / "job.yaml", "--output", project / "out")
        assert outcome.status == 1, outcome
        assert len(outcome.err.strip().splitlines()) == 1 or outcome.err.splitlines()[-1].startswith("oodscope: ")

    def test_a_folder_that_cannot_be_written(self, oodscope, project):
        (project / "out").write_text("a file stands here")
        outcome = oodscope("run", project / "job.yaml", "--output", project / "out")
        assert outcome.status == 1, outcome
        assert outcome.err.splitlines()[-1].startswith("oodscope: cannot write")

    def test_tables_of_nothing(self, oodscope, project):
        assert "no result store at runs/results.sqlite" in oodscope("table").err
        assert "no finished run here, nor in any folder below" in oodscope("table", project).err


class TestEnsembles:
    """Several files, or several trainings, are judged as one."""

    @pytest.mark.slow
    def test_from_several_files(self, project, oodscope):
        other, _ = create_model("small_cnn", num_classes=3)
        save_file(other.state_dict(), project / "other.safetensors")
        change(project / "job.yaml", "weights: net.safetensors", "weights: [net.safetensors, other.safetensors]")
        change(project / "job.yaml", "[msp, {knn: {k: 3}}, react+mls]", "[msp, mutual_information, ensemble_entropy]")
        assert "2 x small_cnn" in oodscope("run", project / "job.yaml", "--output", project / "out", "--json").out

    @pytest.mark.slow
    def test_trained_here(self, project, oodscope):
        change(
            project / "job.yaml",
            "weights: net.safetensors",
            "train: {epochs: 2, batch_size: 4, patience: 1}, members: 2",
        )
        change(project / "job.yaml", "[msp, {knn: {k: 3}}, react+mls]", "[mutual_information]")
        assert "2 x small_cnn" in oodscope("run", project / "job.yaml", "--output", project / "out", "--json").out

    def test_members_of_given_weights_make_no_sense(self, project, oodscope):
        change(project / "job.yaml", "weights: net.safetensors", "weights: net.safetensors, members: 2")
        stopped = oodscope("run", project / "job.yaml", "--output", project / "out")
        assert stopped.status == 2
        assert "members belongs to a train section" in stopped.err


class TestStatistics:
    def weights(self, project, count=2):
        for number in range(count):
            torch.manual_seed(number)
            model, _ = create_model("small_cnn", num_classes=3)
            save_file(model.state_dict(), project / f"seed{number}.safetensors")
        return ",".join(str(project / f"seed{number}.safetensors") for number in range(count))

    def evaluate(self, oodscope, project, *more):
        command = ["evaluate", "--model", "small_cnn", "--weights", self.weights(project), "--benchmark"]
        command += [project / "bench.yaml", "--detectors", "msp,ebo", "--output", project / "out", "--device", "cpu"]
        return oodscope(*command, *more)

    @pytest.mark.slow
    def test_seeds_end_to_end(self, project, oodscope):
        done = self.evaluate(oodscope, project, "--as-seeds", "--json")
        assert done.status == 0, done.err
        content = json.loads(done.out)
        folders = [run["folder"] for run in content["runs"]]
        assert len(folders) == 2
        row = content["over_seeds"][-1]
        values = [run["measurements"][-1]["value"] for run in content["runs"]]
        assert row["mean"] == pytest.approx(np.mean(values)) and row["runs"] == 2
        table = oodscope("table", *folders, "--as-seeds", "--format", "markdown")
        assert table.status == 0, table.err
        assert "±" in table.out and "Means over 2 runs" in table.out
        refused = oodscope("table", *folders)
        assert refused.status == 2 and "several are seeds (--as-seeds) or rivals (oodscope compare)" in refused.err
        two = oodscope("compare", *folders, "--detectors", "ebo")
        assert two.status == 0, two.err
        assert "On near OOD, ebo of" in two.out
        one = oodscope("compare", folders[0], "--json")
        assert {row["comparisons"] for row in json.loads(one.out)["comparisons"]} == {1}

    def test_one_file_has_no_spread(self, project, oodscope):
        done = oodscope(
            *("evaluate", "--model", "small_cnn", "--weights", project / "net.safetensors", "--as-seeds"),
            *("--benchmark", project / "bench.yaml", "--device", "cpu"),
        )
        assert done.status == 2
        assert "as_seeds needs several weights files" in done.err

    def test_compare_needs_a_folder(self, oodscope):
        done = oodscope("compare", "nowhere")
        assert done.status == 1 and "no finished result here" in done.err
