"""Rows say which images the network has met before, whoever knows it: the user, the trainer, or the pixels."""

import json

import numpy as np
import pytest
from safetensors.torch import save_file

import oodscope as oods
from oodscope.base.errors import UnknownNameError
from oodscope.data.corpora import CORPORA, pretraining_overlap
from oodscope.document.wording import EXPOSED
from oodscope.results.store.store import ResultStore
from tests.tiny import benchmark, classifier, imageset, noise


@pytest.fixture
def judged(tmp_path):
    def run(protocols=("standard",), bench=None, **history):
        store = oods.ActivationStore(tmp_path)
        return oods.evaluate(classifier(**history), bench or benchmark(), "msp", protocols, store=store)

    return run


def said(result, **equals):
    return {row.exposure for row in result.measurements.filter(**equals)}


def test_nothing_known_nothing_said(judged):
    result = judged()
    assert said(result) == {""}
    assert EXPOSED not in result.table().render("markdown")


def test_a_declared_test_set_marks_every_row_that_uses_it(judged):
    result = judged(("standard", "full_spectrum"), trained_on=["id_test"])
    assert said(result, protocol="standard") == {"id_test: seen_in_training"}
    assert said(result, protocol="full_spectrum:csid=dim") == {""}
    assert said(result, protocol="full_spectrum", set="dim", metric="accuracy") == {""}
    assert said(result, protocol="full_spectrum", set="pooled") == {"id_test: seen_in_training"}
    assert said(result, protocol="full_spectrum:balanced") == {"id_test: seen_in_training"}
    assert said(result, protocol="full_spectrum", group="csid", metric="auroc") == {"id_test: seen_in_training"}


def test_training_images_inside_a_test_set_are_counted(judged):
    train = imageset("id_train", 200, 1)
    pixels = np.stack(noise("static", 50, 4).images(range(50)))
    pixels[[3, 9, 30]] = train.images([0, 5, 7])
    bench = benchmark(id_train=train, near=(oods.ImageSet.from_arrays("static", pixels), noise("snow", 40, 5)))
    result = judged(bench=bench, trained_on=["id_train"])
    counted = "static: 3 of 50 images seen in training"
    assert said(result, set="static") == {counted}
    assert said(result, set="snow") == {""}
    assert said(result, group="near", set="mean") == {counted}
    assert said(result, group="far") | said(result, metric="accuracy") == {""}
    assert result.record.sets["static"].exposure == "3 of 50 images seen in training"
    assert result.record.sets["snow"].exposure == ""
    assert said(judged(bench=bench, trained_on=[train.take([0, 5])]), set="static") == {
        "static: 2 of 50 images seen in training"
    }


def test_pretraining_is_compared_with_what_is_known(judged):
    bench = benchmark(near=(noise("ssb_hard", 50, 4), noise("snow", 40, 5)))
    result = judged(bench=bench, pretrained_on=["imagenet21k"])
    assert said(result, set="ssb_hard") == {"ssb_hard: pretraining:imagenet21k"}
    assert said(result, set="snow") == {""}
    web = judged(bench=bench, pretrained_on=["clip"])
    assert all("may hold it" in each for each in said(web))


@pytest.mark.parametrize(
    ("corpus", "name", "expected"),
    [
        ("imagenet1k", "tin", "pretraining:imagenet1k"),
        ("imagenet1k", "tinyimagenet_val", "pretraining:imagenet1k"),
        ("imagenet1k", "ssb_hard", ""),
        ("imagenet21k", "SSB-hard", "pretraining:imagenet21k"),
        ("imagenet21k", "tinted", ""),
        ("imagenet21k", "svhn", ""),
        ("dinov2", "ssb_hard", "pretraining:dinov2"),
        ("clip", "svhn", "pretraining:clip (web images, may hold it)"),
    ],
)
def test_known_facts(corpus, name, expected):
    assert pretraining_overlap([corpus], name) == expected


def test_unknown_names_suggest_the_nearest(judged):
    with pytest.raises(UnknownNameError, match="unknown pretraining corpus 'imagenet21'. Did you mean 'imagenet21k'"):
        classifier(pretrained_on=["imagenet21"])
    with pytest.raises(UnknownNameError, match="unknown set in trained_on 'id_tset'. Did you mean 'id_test'"):
        judged(trained_on=["id_tset"])
    assert set(CORPORA) >= {"imagenet1k", "imagenet21k", "clip", "dinov2"}


def test_tables_and_the_page_show_it(judged, tmp_path):
    result = judged(trained_on=["id_test"], pretrained_on=["clip"])
    for format in ("markdown", "rich"):
        text = result.table().render(format)
        assert EXPOSED in text.partition("in percent:")[0]
        assert "id_test: seen_in_training" in " ".join(text.split())
    assert r"$^\ddagger$" in result.table().render("latex")
    cell = json.loads(result.table().render("json"))["rows"][0]["cells"][0]
    assert cell["exposure"].startswith("id_test: seen_in_training")
    page = oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")
    assert f">{EXPOSED}</sup>" in page
    assert "seen_in_training" in page.partition("met before")[2]


def test_it_is_kept_and_computed_again_from_scores(judged, tmp_path):
    result = judged(trained_on=["id_test"])
    loaded = oods.Result.load(result.save(tmp_path / "run"))
    assert loaded.measurements == result.measurements
    store = ResultStore(tmp_path / "results.sqlite")
    store.add(result)
    assert store.measurements(exposure="id_test: seen_in_training") == result.measurements


@pytest.mark.slow
def test_on_the_command_line_and_in_a_job(tmp_path, monkeypatch, capsys):
    import sys

    from oodscope.cli import main

    rng = np.random.default_rng(0)
    pixels = {name: rng.integers(0, 256, size=(12, 32, 32, 3)).astype(np.uint8) for name in ("train", "test", "tin")}
    pixels["test"][4] = pixels["train"][2]
    for name, images in pixels.items():
        np.savez(tmp_path / f"{name}.npz", images=images, labels=np.arange(12) % 3)
    sets = "{id_train: {source: npz, path: train.npz}, id_test: {source: npz, path: test.npz}, "
    sets += "near: {tin: {source: npz, path: tin.npz}}}"
    (tmp_path / "bench.yaml").write_text(f'name: b\nversion: "1"\ntransform: {{size: 32}}\nsets: {sets}\n')
    model, _ = oods.create_model("small_cnn", num_classes=3)
    save_file(model.state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "job.yaml").write_text(
        "benchmark: bench.yaml\nmodel: {architecture: small_cnn, train: {epochs: 1, batch_size: 4}}\ndetectors: [msp]\n"
    )

    def run(*arguments):
        monkeypatch.setattr(
            sys, "argv", ["oodscope", *map(str, arguments), "--output", str(tmp_path / "out"), "--json"]
        )
        main_exit(main)
        return {row["exposure"] for row in json.loads(capsys.readouterr().out)["measurements"] if row["detector"]}

    given = ("evaluate", "--model", "small_cnn", "--weights", tmp_path / "net.safetensors", "--detectors", "msp")
    given += ("--benchmark", tmp_path / "bench.yaml")
    assert run(*given) == {""}
    assert run(*given, "--trained-on", "near", "--pretrained-on", "imagenet1k") == {
        "tin: seen_in_training, pretraining:imagenet1k"
    }
    # trained here: what it was trained on is known without a word
    assert run("run", tmp_path / "job.yaml") == {"id_test: 1 of 12 images seen in training"}


def main_exit(main):
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, stop.code
