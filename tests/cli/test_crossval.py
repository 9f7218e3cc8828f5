"""``oodscope crossval`` and a plan in YAML."""

import json

import numpy as np
import pytest
import safetensors.torch
from PIL import Image

from oodscope.models.zoo.zoo import create_model
from oodscope.runs.crossval.run import CrossValidation, CrossValidationTable
from oodscope.runs.crossval.study import study_metric
from tests.runs.crossval.crossval_world import known, strange

TRANSFORM = "{size: 8, mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}"


@pytest.fixture
def places(tmp_path):
    """Two sets as .npz files, and the weights of a small network."""
    for images in (known(count=48), strange(count=24, classes=3)):
        pixels = np.stack(images.images(np.arange(len(images))))
        np.savez(tmp_path / f"{images.name}.npz", images=pixels, labels=images.labels)
    model, _ = create_model("small_cnn", num_classes=4)
    safetensors.torch.save_file(model.state_dict(), tmp_path / "net.safetensors")
    return tmp_path


FROZEN = ("--model", "small_cnn", "--weights", "net.safetensors", "--transform", TRANSFORM, "--device", "cpu")
SMALL = ("--folds", "3", "--repetitions", "1", "--epochs", "2")


def test_own_sets_with_frozen_embeddings(oodscope, places):
    command = ("crossval", *FROZEN, *SMALL, "--detectors", "msp,ebo", "--id", "known.npz", "--ood", "far=strange.npz")
    done = oodscope(*command, "--truth", "1", "--output", "out")
    assert done.status == 0, done
    assert "AUROC ↑, mean over 1 pairs of sets" in done.out
    assert "leads on average" in done.out
    table = CrossValidationTable.load(places / "out")
    assert [str(cell) for cell in table.cells] == ["known/far, plain", "known/far, outlier exposure"]
    assert table.hold_outs("auroc").shape == (1, 2, 2)
    assert (places / "out" / "crossval.html").is_file()
    assert "extract" in done.err
    again = oodscope(*command, "--truth", "1", "--output", "out", "--json")
    assert json.loads(again.out)["run"]["protocols"] == ["crossval"]
    assert "extract" not in again.err


def test_a_plan_in_yaml_is_the_same_study(oodscope, places):
    (places / "plan.yaml").write_text(
        "id_set: known.npz\nood: {far: strange.npz}\nmodel: {architecture: small_cnn, weights: net.safetensors}\n"
        f"transform: {TRANSFORM}\nhead: {{epochs: 2}}\ndevice: cpu\n"
        "plan: {folds: 3, repetitions: 1, hold_outs: 0, detectors: [msp, {knn: {k: 3}}]}\noutput: yaml\n"
    )
    done = oodscope("run", "plan.yaml", "--output", "elsewhere")
    assert done.status == 0, done
    assert CrossValidationTable.load(places / "elsewhere").detectors == ["msp", "knn(k=3)"]


@pytest.fixture
def hierarchy(places):
    """Twelve classes in three superclasses, each of two breeds: as nested folders and as a CSV file."""
    rng = np.random.default_rng(0)
    lines = ["path,class,superclass,breed"]
    for number in range(12):
        for image in range(8):
            superclass, name, breed = f"group{number // 4}", f"class{number:02d}", f"breed{image % 2}"
            folder = places / "nested" / superclass / name / breed
            folder.mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(0, 256, size=(8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{image}.png")
            lines.append(f"nested/{superclass}/{name}/{breed}/{image}.png,{name},{superclass},{name}{breed}")
    (places / "animals.csv").write_text("\n".join(lines) + "\n")
    return places


HIERARCHY = ("--ood-share", "0.5", "--level", "superclass", "--deepest", "breed", "--folds", "2", "--epochs", "1")


@pytest.mark.parametrize("place", [("animals.csv",), ("nested", "--levels", "superclass,class,breed")])
def test_a_hierarchy_of_ones_own_is_divided_and_folded(oodscope, hierarchy, place):
    """Algorithms 2 and 3: half of each group's classes are outliers, and every fold tests every group."""
    done = oodscope(
        "crossval", *FROZEN, *HIERARCHY, "--detectors", "msp,ebo", "--id", *place, "--repetitions", "1",
        "--strict", "--no-outlier-exposure", "--test", "mannwhitney", "--output", "out",
    )  # fmt: skip
    assert done.status == 0, done
    run = CrossValidation.load(hierarchy / "out")
    (cell,) = run.draws.cells
    stem = place[0].removesuffix(".csv")
    assert cell.pair == f"{stem}_id/{stem}_ood"
    assert run.draws.metadata["plan"]["test"] == "mannwhitney"
    assert {name: each["classes"] for name, each in run.draws.metadata["sets"].items()} == {
        f"{stem}_id": 6,
        f"{stem}_ood": 6,
    }
    (scores,) = run.cell_scores().values()
    for _, frame in scores.frame.groupby("unit", observed=True):
        tested = frame[(frame["role"] == "near").to_numpy()]
        assert len(set(tested["own_class"])) == 3
        # both breeds of each ID class, evenly
        known = frame[(frame["role"] == "id_test").to_numpy()]
        breeds = [
            (int(label), "breed0" in name or int(name[-5]) % 2 == 0)
            for label, name in zip(known["label"], known["sample_id"].astype(str))
        ]
        assert len(set(breeds)) == 12 and len(breeds) == 24
    said = " ".join(done.out.split())
    assert "for these classes" in said and "ID accuracy of the plain networks" in said


def test_plain_k_fold_a_preset_and_a_disjoint_truth_from_a_job_file(oodscope, places):
    (places / "plan.yaml").write_text(
        "id_set: known.npz\nood: {far: strange.npz}\nmodel: {architecture: small_cnn, weights: net.safetensors}\n"
        f"transform: {TRANSFORM}\nhead: {{epochs: 1, hidden: 8}}\ndevice: cpu\n"
        "plan: {preset: dcv-paper, folds: 2, repetitions: 1, hold_outs: 4, stratified: false, disjoint_truth: true, "
        "detectors: [mds, ebo], pre_activation: [mds]}\noutput: out\n"
    )
    done = oodscope("run", "plan.yaml")
    assert done.status == 0, done
    table = CrossValidationTable.load(places / "out")
    assert table.detectors == ["mds", "ebo", "mds(pre_activation)"]
    assert study_metric(table, "auroc").disjoint
    assert "RMSE to the truth of other images" in " ".join(done.out.split())


def test_a_leak_is_refused_or_printed_on_the_page(oodscope, places):
    command = ("crossval", *FROZEN, *SMALL, "--detectors", "msp", "--no-outlier-exposure")
    sets = ("--id", "known.npz", "--ood", "strange.npz", "--trained-on", "known", "--output", "out")
    refused = oodscope(*command, *sets)
    assert refused.status == 1
    assert "small_cnn was trained on known" in refused.err and "--allow-leak" in refused.err
    allowed = oodscope(*command, *sets, "--allow-leak")
    assert allowed.status == 0, allowed
    assert "note: LEAK: small_cnn was trained on known" in allowed.out
    page = (places / "out" / "crossval.html").read_text()
    assert "<strong>Leak.</strong> small_cnn was trained on known: these numbers are not evidence." in page


def test_glyphs_with_a_network_per_fold(oodscope, tmp_path):
    done = oodscope(
        "crossval", "--benchmark", "glyphs", "--images-per-class", "10", "--model", "small_cnn", "--backbone", "full",
        "--folds", "10", "--repetitions", "0", "--truth", "1", "--epochs", "1", "--detectors", "ebo,mds",
        "--level", "script", "--no-outlier-exposure", "--device", "cpu", "--drop-duplicates", "--output", "out",
    )  # fmt: skip
    assert done.status == 0, done
    table = CrossValidationTable.load(tmp_path / "out")
    # photographs have two classes, too few for ten folds
    assert [cell.pair for cell in table.cells] == ["glyphs/near_letters", "glyphs/digits", "glyphs/textures"]


@pytest.mark.parametrize(
    ("options", "words", "status"),
    [
        ((), "say what to fold", 2),
        (("--benchmark", "glyphs", "--id", "known.npz"), "say what to fold", 2),
        (("--id", "known.npz"), "no outliers to judge on", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--ood-share", "0.2"), "or two kinds", 2),
        (("--id", "known.npz", "--ood-share", "1.5"), "lies between 0 and 1", 2),
        (("--id", "known.npz", "--ood-share", "0.5", "--level", "kind"), "has no level 'kind'; there are: none", 1),
        (("--benchmark", "glyphs", "--ood-share", "0.2"), "are for own sets", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--deepest", "breed"), "pass --level too", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--plain-k-fold", "--level", "a"), "choose one", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--test", "wilcox"), "mannwhitney", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--preset", "dcv"), "dcv-paper", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--level", "kind"), "no pair has the level 'kind'", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--folds", "4"), "4 folds need 4 OOD classes", 1),
        (("--id", "known.npz", "--ood", "strange.npz", "--detectors", "mspp"), "Did you mean 'msp'", 2),
        (
            ("--id", "known.npz", "--ood", "strange.npz", "--backbone", "full"),
            "is trained from random weights; leave out weights",
            2,
        ),
        (("--id", "known.npz", "--ood", "strange.npz", "--backbone", "frosen"), "backbone", 2),
    ],
)
def test_mistakes_end_in_one_line(oodscope, places, options, words, status):
    done = oodscope("crossval", *FROZEN, "--repetitions", "1", *options)
    assert done.status == status
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
