"""One command over a user's own folders: no YAML, no code."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from oodscope.jobs.job import Job, read_job
from oodscope.models.zoo.published import published_classes
from oodscope.models.zoo.zoo import create_model

CLASSES = ["ant", "bee", "cat", "dog"]
TRANSFORM = "{size: 32}"


@pytest.fixture
def own(tmp_path):
    """Folders of classes and of outliers, and a network for four classes."""
    rng = np.random.default_rng(0)

    def fill(folder, count):
        folder.mkdir(parents=True)
        for number in range(count):
            pixels = rng.integers(0, 256, size=(36, 40, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")

    for role, count in (("train", 15), ("val", 3), ("test", 4)):
        for name in CLASSES:
            fill(tmp_path / role / name, count)
    for name in ("lookalikes", "deep/noise", "other/noise", "outliers"):
        fill(tmp_path / name, 7)
    model, _ = create_model("small_cnn", num_classes=4)
    save_file(model.state_dict(), tmp_path / "net.safetensors")
    return tmp_path


@pytest.fixture
def evaluate(oodscope, own):
    """Run ``oodscope evaluate`` with the network of ``own``; later words replace earlier ones."""

    def run(*words, weights="net.safetensors"):
        model = ("--model", "small_cnn", "--weights", weights, "--detectors", "msp,knn,react")
        return oodscope("evaluate", *model, "--output", "out", "--json", *words)

    return run


FOLDERS = ("--id-train", "train", "--id-test", "test", "--near", "lookalikes", "--far", "deep/noise")


def content(outcome):
    assert outcome.status == 0, outcome
    return json.loads(outcome.out)


def last_line(outcome, status=1):
    assert outcome.status == status, outcome
    assert "Traceback" not in outcome.err
    line = outcome.err.splitlines()[-1]
    assert line.startswith("oodscope: ")
    return line


def test_the_whole_road_and_again_without_a_single_pass(evaluate, monkeypatch):
    words = (*FOLDERS, "--far", "other/noise", "--csid", "val", "--transform", TRANSFORM)
    first = content(evaluate(*words))
    sets = {name: (entry["role"], entry["n"]) for name, entry in first["run"]["sets"].items()}
    assert sets == {
        "id_train": ("id_train", 60), "id_test": ("id_test", 16), "lookalikes": ("near", 7),
        "deep_noise": ("far", 7), "other_noise": ("far", 7), "val": ("csid", 12),
    }  # fmt: skip
    assert {row["detector"] for row in first["measurements"]} >= {"msp", "knn", "react"}
    assert first["run"]["forward_images"] == 60 + 16 + 21 + 12

    def gone(content, where):
        raise OSError(where)

    monkeypatch.setattr("oodscope.data.images.encoded.decode", gone)
    second = content(evaluate(*words))
    assert second["run"]["forward_images"] == 0
    assert [row["value"] for row in second["measurements"]] == [row["value"] for row in first["measurements"]]
    assert second["run"]["benchmark_version"] == first["run"]["benchmark_version"]


@pytest.mark.slow
def test_without_validation_images_it_says_who_is_affected(evaluate):
    def notes(*words):  # the network is at chance, and an alarm says so
        said = content(evaluate(*FOLDERS, *words, "--transform", TRANSFORM))["run"]["notes"]
        return [note for note in said if not note.startswith("alarm: ")]

    assert notes() == ["no id_val: react learned from id_train instead of held-out images; no search can run"]
    assert notes("--id-val", "val") == []
    tuned = evaluate(*FOLDERS, "--tune", "ood_val", "--ood-val", "outliers", "--transform", TRANSFORM)
    assert "has no id_val; without it parameters cannot be searched" in last_line(tuned)


@pytest.mark.slow
def test_sets_can_be_named(evaluate):
    words = ("--id-test", "test", "--id-train", "train", "--transform", TRANSFORM, "--near", "odd=deep/noise")
    assert "odd" in content(evaluate(*words))["run"]["sets"]
    assert "give each of its sets a name of its own" in last_line(evaluate(*words, "--near", "lookalikes"), 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message", "status"),
    [
        ((*FOLDERS, "--benchmark", "glyphs"), "--benchmark and --id-test do not go together", 2),
        (("--benchmark", "glyphs", "--transform", TRANSFORM), "--benchmark and --transform do not go together", 2),
        ((), "no evaluation data: pass --benchmark NAME, or --id-test PLACE with --near or --far", 2),
        (("--id-train", "train"), "no evaluation data", 2),
        (("--id-test", "test"), "no OOD data: pass --near PLACE or --far PLACE", 2),
        (("--id-test", "gone", "--far", "outliers"), "gone is not there; images come from a folder", 1),
        ((*FOLDERS, "--transform", "{sise: 32}"), "unknown key", 2),
        ((*FOLDERS, "--transform", "{size: "), "--transform: not valid YAML", 2),
        (FOLDERS, "has no transform", 1),
        ((*FOLDERS, "--transform", TRANSFORM, "--classes", "gone.txt"), "cannot read the class names in gone.txt", 1),
        (("--id-test", "outliers", "--far", "deep/noise", "--transform", TRANSFORM), "7 images without a label", 1),
    ],
)
def test_mistakes_are_one_line(evaluate, own, words, message, status):
    assert message in last_line(evaluate(*words), status)
    assert not (own / "out").exists()


class TestSomeOfTheClasses:
    """The classifier knows six classes in an order of its own; the folders hold four of them."""

    ORDER = ["eel", "dog", "ant", "fly", "cat", "bee"]

    @pytest.fixture
    def six(self, own):
        torch.manual_seed(0)  # some detectors refuse a network that gets nothing right
        model, _ = create_model("small_cnn", num_classes=6)
        save_file(model.state_dict(), own / "six.safetensors")
        (own / "classes.txt").write_text("\n".join(self.ORDER) + "\n")
        return own

    @pytest.mark.slow
    def test_labels_are_matched_by_name(self, evaluate, six):
        import pandas as pd

        words = (*FOLDERS, "--csid", "val", "--transform", TRANSFORM, "--classes", "classes.txt")
        folder = content(evaluate(*words, weights="six.safetensors"))["folder"]
        scores = pd.read_parquet(f"{folder}/scores.parquet")
        for role in ("id_test", "csid"):
            rows = scores[scores["role"] == role]
            expected = [self.ORDER.index(sample.partition("/")[0]) for sample in rows["sample_id"]]
            assert rows["label"].tolist() == expected
        assert set(scores.loc[scores["role"] == "far", "label"]) == {-1}

    def test_without_names_the_numbers_must_agree(self, evaluate, six):
        line = last_line(evaluate(*FOLDERS, "--transform", TRANSFORM, weights="six.safetensors"))
        assert "six.safetensors does not fit" in line

    def test_a_folder_that_the_classifier_does_not_know(self, evaluate, six):
        (six / "classes.txt").write_text("eel\nant\nbee\ncta\ndog\nfly\n")
        words = (*FOLDERS, "--transform", TRANSFORM, "--classes", "classes.txt")
        line = last_line(evaluate(*words, weights="six.safetensors"))
        assert "'id_train' has the class 'cat', which is not among the in-distribution classes. Did you mean" in line

    @pytest.mark.slow
    def test_every_detector_bears_classes_without_images(self, evaluate, six):
        words = (*FOLDERS, "--id-val", "val", "--transform", TRANSFORM, "--classes", "classes.txt")
        found = content(evaluate(*words, "--detectors", "all", weights="six.safetensors"))
        assert len({row["detector"] for row in found["measurements"]}) > 20


def test_a_job_file_may_hold_the_sets_too(oodscope, own):
    (own / "sub").mkdir()
    (own / "sub" / "job.yaml").write_text(
        "benchmark:\n  id_train: ../train\n  id_test: ../test\n  far: {noise: ../deep/noise}\n  transform: {size: 32}\n"
        "model: {architecture: small_cnn, weights: ../net.safetensors}\ndetectors: [msp]\n"
    )
    outcome = oodscope("run", own / "sub" / "job.yaml", "--output", own / "out", "--json")
    assert content(outcome)["run"]["sets"]["noise"]["n"] == 7
    (own / "sub" / "job.yaml").write_text("benchmark: {id_tset: x}\nmodel: {architecture: small_cnn}\n")
    assert "benchmark: unknown key 'id_tset'. Did you mean 'id_test'" in last_line(
        oodscope("run", own / "sub" / "job.yaml"), 2
    )
    named = Job.model_validate({"benchmark": {"id_test": "hf:a/b", "near": ["c"]}, "model": {"architecture": "x"}})
    assert named.benchmark.found_from(own).near == [str(own / "c")]
    assert named.benchmark.found_from(own).id_test == "hf:a/b"
    assert read_job


class TestPublishedClasses:
    """ImageNet folders are called by WordNet ids, and published weights know which logit is which."""

    @pytest.mark.parametrize("spec", ["timm:resnet50", "torchvision:resnet50"])
    def test_imagenet(self, spec):
        ids = published_classes(spec)[0]
        assert len(set(ids)) == 1000
        assert (ids[0], ids[1], ids[999]) == ("n01440764", "n01443537", "n15075141")

    def test_words(self):
        assert published_classes("torchvision:resnet50")[1][:2] == ("tench", "goldfish")

    def test_unknown(self):
        assert published_classes("small_cnn") == []

    @pytest.mark.parametrize(
        ("names", "labels"), [(("n01443537", "n01440764"), [0, 1]), (("tench", "goldfish"), [1, 0])]
    )
    def test_folders_are_matched(self, tmp_path, names, labels):
        from oodscope.base.errors import DataError
        from oodscope.data.own import own_benchmark
        from oodscope.jobs.model import ModelSpec, matched

        for row, name in enumerate((*names, "far")):
            (tmp_path / "i" / name).mkdir(parents=True)
            Image.new("RGB", (8, 8), (row, 0, 0)).save(tmp_path / "i" / name / "1.png")
        (tmp_path / "i" / "far").rename(tmp_path / "far")
        bench = own_benchmark(id_test=tmp_path / "i", far=[tmp_path / "far"])
        pretrained = ModelSpec(architecture="torchvision:resnet50", weights="pretrained")
        found = matched(bench, pretrained, None)
        assert len(found.class_names) == 1000
        # sorted by folder name: n01440764 comes before n01443537, goldfish before tench
        assert found.id_test.labels.tolist() == labels
        untrained = ModelSpec(architecture="torchvision:resnet50", weights="file.safetensors")
        assert matched(bench, untrained, None) is bench
        (tmp_path / "i" / names[0]).rename(tmp_path / "i" / "unheard of")
        with pytest.raises(DataError, match="has the class 'unheard of'"):
            matched(own_benchmark(id_test=tmp_path / "i", far=[tmp_path / "far"]), pretrained, None)
