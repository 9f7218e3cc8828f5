"""An audit finds what was planted, says how grave it is, and shows it on a page that no name can break."""

import csv
import json
import re

import numpy as np
import pytest
from PIL import Image

import oodscope as oods
from oodscope.base.errors import ModelError
from oodscope.data.images.folders import open_folder
from oodscope.report.page.audit import write_audit
from oodscope.runs.audit.classes import verdict_of, verdict_of_class
from oodscope.runs.audit.pairs import least_cosine, nearest
from tests.pictures import clouds, cropped, jpeg
from tests.report.reading import read
from tests.tiny import benchmark
from tests.tiny import images as tiny_images

EVIL = """<script>alert("1")</script>'"><img src=x onerror=alert(2)>{{ 7*7 }}"""
SIZES = {"id_train": 40, "id_val": 20, "id_test": 30, "near": 25, "far": 20, "csid": 12, "ood_val": 20}
CLASSES = {"near": ["tabby cat", "rock"], "far": ["cats", "sand"], "ood_val": ["moss", "fern"]}


def made(changes=(), classes=CLASSES, near=None):
    """A benchmark of clouds; ``changes`` are (role, row, picture from another (role, row), how it is treated)."""
    pixels = {role: clouds(n, 100 + seed) for seed, (role, n) in enumerate(SIZES.items())}
    for role, row, (source, other), treat in changes:
        pixels[role][row] = treat(pixels[source][other])
    sets = {
        role: oods.ImageSet.from_arrays(role, images, np.arange(len(images)) % 2, classes.get(role, ["cat", "dog"]))
        for role, images in pixels.items()
    }
    return oods.Benchmark(
        name="clouds",
        version="1",
        **{role: (images,) if role in ("near", "far", "csid") else images for role, images in sets.items()}
        | ({"near": (near,)} if near is not None else {}),
    )


def same(image):
    return image.copy()


PLANTED = [
    ("id_test", 3, ("id_train", 7), same),
    ("id_test", 4, ("id_train", 7), same),
    ("id_val", 5, ("id_test", 9), same),
    ("near", 2, ("id_test", 11), jpeg),
    ("near", 6, ("ood_val", 1), cropped),
    ("far", 8, ("near", 10), same),
    ("far", 19, ("far", 0), same),
    ("csid", 0, ("id_train", 30), jpeg),
]


@pytest.fixture(scope="module")
def audited():
    bench = made(PLANTED)
    return bench, oods.audit(bench)


def test_everything_planted_is_found_and_nothing_else(audited):
    _, found = audited
    assert {
        (p.verdict, p.kind, (p.first.set, p.first.row), (p.second.set, p.second.row)) for p in found.pairs
    } == {
        ("fatal", "exact", ("id_val", 5), ("id_test", 9)),
        ("contamination", "exact", ("id_train", 7), ("id_test", 3)),
        ("contamination", "exact", ("id_train", 7), ("id_test", 4)),
        ("note", "exact", ("id_test", 3), ("id_test", 4)),
        ("contamination", "near", ("id_test", 11), ("near", 2)),
        ("contamination", "near", ("near", 6), ("ood_val", 1)),
        ("note", "exact", ("near", 10), ("far", 8)),
        ("note", "exact", ("far", 0), ("far", 19)),
        ("contamination", "near", ("id_train", 30), ("csid", 0)),
    }  # fmt: skip
    assert all((pair.similarity == 1.0) == (pair.kind == "exact") for pair in found.pairs)
    assert found.pairs[0].verdict == "fatal"
    assert found.shared()["exact", "id_train", "id_test"] == 2
    size, far = found.sets["id_test"], found.sets["far"]
    assert (
        f"exact: 2 of {size} images ({200 / size:.3g} %) of id_test are the same as one of id_train" in found.summary()
    )
    assert f"exact: 1 of {far} images ({100 / far:.3g} %) of far is the same as another of that set" in found.summary()
    assert any("no classifier" in note for note in found.notes)


def test_classes_are_compared_where_they_have_names(audited, monkeypatch):
    _, found = audited
    assert {(p.set, p.ood_class, p.id_class) for p in found.classes} >= {
        ("far", "cats", "cat"),
        ("near", "tabby cat", "cat"),
    }
    (cats,) = [p for p in found.classes if p.ood_class == "cats"]
    assert (cats.relation, cats.verdict, cats.images) == ("same name", "contamination", 10)
    assert "classes: 1 of far meet ID classes" in found.summary()
    monkeypatch.setattr("oodscope.data.similarity.wordnet.FOLDERS", ())
    monkeypatch.setenv("HOME", "/nowhere")
    nameless = oods.audit(made(classes={"near": ["0", "1"], "far": ["cats", "sand"], "ood_val": ["moss", "fern"]}))
    assert any("only the words of class names were compared" in note for note in nameless.notes)
    assert any("near has no class names" in note for note in nameless.notes)
    assert not any("far has no" in note for note in nameless.notes)


def test_files_and_arrays_meet(tmp_path):
    pixels = clouds(30, 102)
    (tmp_path / "x").mkdir()
    Image.fromarray(pixels[4]).save(tmp_path / "x" / "copy.png")
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "x" / "plain.png")
    found = oods.audit(made(near=open_folder("files", tmp_path)))
    assert [(p.verdict, p.kind, p.first.set, p.first.row, p.second.sample_id) for p in found.pairs] == [
        ("contamination", "exact", "id_test", 4, "x/copy.png")
    ]
    assert any("1 images are too plain" in note for note in found.notes)


class Pixels(oods.Classifier):
    """Features are the pixels, so that what they find can be foreseen."""

    def __init__(self):
        import torch
        from torch import nn

        torch.manual_seed(0)
        super().__init__(
            nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(192, 2)), oods.Preprocess(size=32), device="cpu"
        )


def test_features_find_what_the_hash_may_miss(tmp_path, monkeypatch):
    store = oods.ActivationStore(tmp_path)
    bench = made(PLANTED)
    monkeypatch.setattr("oodscope.runs.audit.audit.by_hash", lambda first, second: [])
    by_hash_alone, with_features = oods.audit(bench), oods.audit(bench, Pixels(), store=store)
    assert not [p for p in by_hash_alone.pairs if p.kind == "near"]
    near = {(p.first.set, p.first.row, p.second.set, p.second.row) for p in with_features.pairs if p.kind == "near"}
    assert near == {("id_test", 11, "near", 2), ("near", 6, "ood_val", 1), ("id_train", 30, "csid", 0)}
    assert {p.found_by for p in with_features.pairs} == {"pixels", "embedding"}


def test_a_network_without_features_is_refused():
    from torch import nn

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3072, 2), nn.Linear(3072, 2)

        def forward(self, x):
            return self.one(x.flatten(1)).maximum(self.two(x.flatten(1)))

    with pytest.raises(ModelError, match="gives no features to compare images by"):
        oods.audit(made(), oods.Classifier(Two(), oods.Preprocess(size=32), device="cpu"))


def test_nearest_features_against_all_pairs():
    import torch

    rng = np.random.default_rng(0)
    one, two = (torch.from_numpy(rng.normal(size=(n, 5))) for n in (23, 9))
    one, two = one / one.norm(dim=1, keepdim=True), two / two.norm(dim=1, keepdim=True)
    cosines, rows = nearest(two, one, 3, False, block=4)
    every = (two @ one.T).numpy()
    assert rows.tolist() == np.argsort(-every, axis=1)[:, :3].tolist()
    own, _ = nearest(one, one, 1, True, block=4)
    slow = [max(float(one[i] @ one[j]) for j in range(23) if j != i) for i in range(23)]
    assert own[:, 0].tolist() == pytest.approx(slow)
    assert least_cosine({"id_test": one}, "id_test") == pytest.approx(np.quantile(slow, 0.9))


@pytest.mark.parametrize(
    ("first", "second", "exact", "near"),
    [
        ("id_val", "id_test", "fatal", "contamination"),
        ("csid", "id_val", "fatal", "contamination"),
        ("near", "ood_val", "fatal", "contamination"),
        ("id_train", "id_test", "contamination", "contamination"),
        ("far", "ood_train", "contamination", "contamination"),
        ("id_train", "near", "contamination", "contamination"),
        ("far", "id_test", "contamination", "contamination"),
        ("id_val", "ood_val", "contamination", "contamination"),
        ("id_train", "id_val", "note", "note"),
        ("near", "far", "note", "note"),
        ("ood_val", "ood_train", "note", "note"),
        ("id_test", "id_test", "note", "note"),
        ("id_test", "csid", "note", "note"),
    ],
)
def test_verdicts(first, second, exact, near):
    for one, two in ((first, second), (second, first)):
        assert verdict_of(one, two, exact=True) == exact
        assert verdict_of(one, two, exact=False) == near


def test_verdicts_of_classes():
    assert verdict_of_class("near", "kind of") == "contamination"
    assert verdict_of_class("ood_val", "kind of") == "note"
    assert {verdict_of_class("far", relation) for relation in ("broader than", "perhaps")} == {"note"}


def test_what_is_shared_is_counted_with_its_denominator(tmp_path):
    pixels, labels = tiny_images(30, 4)
    names = [f"class {number}" for number in range(4)]
    trained = oods.ImageSet.from_arrays("trained", pixels, labels, names)
    known = oods.ImageSet.from_arrays("known", pixels[:12], labels[:12], names)
    bench = benchmark(id_train=trained, id_test=known)
    said = " ".join(oods.audit(bench).summary())
    assert "12 of 12 images (100 %) of known" in said
    page = write_audit(oods.audit(bench), bench, tmp_path).read_text(encoding="utf-8")
    (verdict,) = read(page).all("p", **{"class": "verdict"})
    assert "12 of 12 images (100 %)" in verdict.text


def test_tables_and_page(audited, tmp_path):
    bench, found = audited
    path = write_audit(found, bench, tmp_path / "deep")
    files = {file.name for file in path.parent.iterdir()}
    assert files == {"audit.html", "audit.json", "images.csv", "classes.csv", "run.json"}
    with (path.parent / "images.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(r["first_set"], int(r["first_row"]), r["second_sample_id"]) for r in rows] == [
        (p.first.set, p.first.row, p.second.sample_id) for p in found.pairs
    ]
    content = json.loads((path.parent / "audit.json").read_text())
    assert content["verdicts"]["fatal"] == 1 and len(content["classes"]) == len(found.classes)
    page = read(path.read_text())
    assert len(page.all("img")) == 2 * len(found.pairs)
    assert all(image.attributes["src"].startswith("data:image/png;base64,") for image in page.all("img"))
    assert len([row for row in page.all("section", id="classes")[0].all("tr") if row.all("td")]) == len(found.classes)


def test_no_name_acts_as_markup(tmp_path):
    pixels = clouds(30, 102)
    folder = tmp_path / "x" / "a'><b onclick=alert(1)>"
    folder.mkdir(parents=True)
    Image.fromarray(pixels[4]).save(folder / "{{ 7*7 }}&<i>.png")
    bench = made(near=open_folder(EVIL, tmp_path / "x"), classes=CLASSES | {"far": ["cat", EVIL]})
    bench = oods.Benchmark(name=EVIL, version=EVIL, id_test=bench.id_test, near=bench.near, far=bench.far)
    text = write_audit(oods.audit(bench), bench, tmp_path / "out").read_text()
    page = read(text)
    script, _ = page.all("script")  # the page's own: light or dark, and wide tables
    assert "localStorage" in script.text and EVIL not in script.text
    assert page.all("i") == []
    assert len(page.all("img")) == 2
    assert not any(name.startswith("on") for element in page.every() for name in element.attributes)
    assert EVIL in page.all("h1")[0].text
    assert "{{ 7*7 }}&<i>.png" in page.all("li")[0].text
    assert not any(element.attributes.get("href", "#")[0] != "#" for element in page.every())


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    import sys

    from oodscope.cli import main

    bench = made(PLANTED)
    for role, images in bench.members():
        np.savez(
            tmp_path / f"{role}.npz",
            images=np.stack(images.images(range(len(images)))),
            labels=images.labels,
            class_names=np.array(images.class_names),
        )
    sets = {role: {"source": "npz", "path": f"{role}.npz"} for role in SIZES}
    sets |= {role: {role: sets[role]} for role in ("near", "far", "csid")}
    (tmp_path / "bench.yaml").write_text(json.dumps({"name": "b", "version": "1", "sets": sets}))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["oodscope", "data", "audit", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, capsys.readouterr()

    status, shown = run(tmp_path / "bench.yaml", "--output", tmp_path / "out")
    assert status == 1
    assert re.search(r"exact: 1 of \d+ images \([\d.]+ %\) of id_test\s+is the same as one of id_val", shown.out)
    assert "1 fatal" in shown.out and (tmp_path / "out" / "audit.html").is_file()
    status, shown = run(tmp_path / "bench.yaml", "--output", tmp_path / "out", "--json")
    assert json.loads(shown.out)["verdicts"]["fatal"] == 1
    status, shown = run(tmp_path / "bench.yaml", "--model", "small_cnn")
    assert status == 2 and "a model needs weights" in shown.err
