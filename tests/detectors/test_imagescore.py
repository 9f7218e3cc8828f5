"""Detectors with a network of their own, from evaluation to a deployed file."""

from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import oodscope as oods
from oodscope.activations.probes.own import CompressedLength
from oodscope.base.errors import DetectorError
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.base import Capabilities
from oodscope.detectors.saving import load_detector
from oodscope.leaderboard.records.folder import read_entry
from oodscope.leaderboard.verify.defaults import by_hand
from oodscope.leaderboard.verify.submitting import submit
from oodscope.models.density.autoencoder import AutoencoderShape
from oodscope.models.density.glow import GlowShape
from oodscope.models.density.nae import NAEShape
from oodscope.models.density.pixelcnn import PixelCNNShape
from oodscope.models.density.saved import build_density, save_density
from tests import tiny

SHAPES = {
    "autoencoder": AutoencoderShape(size=8, width=4, code=3),
    "glow": GlowShape(size=8, steps=1, width=4),
    "pixelcnn": PixelCNNShape(size=8, filters=4, blocks=1, resolutions=2, mixtures=2),
    "nae": NAEShape(size=8, width=4, code=3, memory=4),
}
LIKELIHOODS = {"input_complexity": ("glow", {}), "likelihood_ratio": ("pixelcnn", {"background": "background"})}


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """A network of each kind with first weights, and one of backgrounds."""
    folder = tmp_path_factory.mktemp("networks")
    torch.manual_seed(0)
    for name, kind in [*((each, each) for each in SHAPES), ("background", "pixelcnn")]:
        save_density(build_density(SHAPES[kind]), folder / name / "density.safetensors", {})
    return folder


def detector(name, networks):
    kind, more = LIKELIHOODS.get(name, (name, {}))
    others = {key: str(networks / place) for key, place in more.items()}
    return oods.create_detector(name, network=str(networks / kind), **others)


NAMES = [*SHAPES, *LIKELIHOODS]


@pytest.fixture(scope="module")
def evaluated(networks, tmp_path_factory):
    """All of them on the tiny benchmark, one store."""
    store = oods.ActivationStore(tmp_path_factory.mktemp("store"))
    bench, clf = tiny.benchmark(), tiny.classifier()
    result = oods.evaluate(clf, bench, [detector(name, networks) for name in NAMES], store=store, intervals="none")
    return SimpleNamespace(store=store, bench=bench, clf=clf, scores=result.scores, result=result)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_what_the_network_says_of_the_pixels(name, networks, evaluated):
    made = detector(name, networks)
    pixels = torch.from_numpy(np.stack(evaluated.bench.id_test.images(np.arange(80)))).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        wanted = made.open_network()(pixels)
        if name == "likelihood_ratio":
            wanted = wanted - made.open_network("background")(pixels)
    if name == "input_complexity":
        wanted = wanted - CompressedLength("png").of_pixels(pixels)
    frame = evaluated.scores.frame
    found = frame.loc[frame["set"] == "id_test", made.id].to_numpy()
    np.testing.assert_allclose(found, wanted.double().numpy(), rtol=1e-5, atol=1e-6)


def test_another_classifier_finds_the_same_columns(networks, evaluated):
    """The column stands under its own network's fingerprint: new weights and another normalisation compute nothing."""
    other = oods.Classifier(
        tiny.TinyNet(), oods.Preprocess(size=8, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.25)), device="cpu"
    )
    before = evaluated.store.forwarded
    made = [detector(name, networks) for name in NAMES]
    again = oods.evaluate(other, evaluated.bench, made, store=evaluated.store, intervals="none")
    images = sum(len(part) for role, part in evaluated.bench.members() if role in ("id_test", "near", "far", "csid"))
    assert evaluated.store.forwarded - before == images, "one plain pass of the new classifier, for its predictions"
    for name in NAMES:
        column = detector(name, networks).id
        assert np.array_equal(again.scores.frame[column], evaluated.scores.frame[column])


@pytest.mark.parametrize("name", ["nae", "likelihood_ratio"])
def test_a_deployed_file_holds_the_network(name, networks, evaluated, tmp_path):
    made = detector(name, networks)
    scorer = oods.fit_scorer(evaluated.clf, made, evaluated.bench.id_val, target=0.1)
    scorer.save(tmp_path / "a.oodscope", include_weights=True)
    moved = networks.rename(networks.parent / "elsewhere")
    try:
        again = oods.load(tmp_path / "a.oodscope", model=tiny.TinyNet(), device="cpu")
        assert np.array_equal(again.score(evaluated.bench.id_test), scorer.score(evaluated.bench.id_test))
        assert again.predict(evaluated.bench.id_test.take([0]))[0].p_value is not None
        member = oods.create_detector("average", members="msp,ebo")
        assert member is not None
    finally:
        moved.rename(networks)


def test_records_name_the_network_and_not_its_folder(networks, evaluated, tmp_path):
    made = detector("glow", networks)
    known = evaluated.result.scores.context.detectors[made.id]
    assert known.params["network"] == f"glow {made.open_network().fingerprint[:16]}"
    folder = tmp_path / "glow" / "density.safetensors"
    save_density(made.open_network(), folder, {})
    moved = oods.create_detector("glow", network=str(tmp_path / "glow"))
    assert moved.id == made.id == f"glow(network={known.params['network']})", "wherever it lies"
    before = moved.identity
    assert before.endswith(made.open_network().fingerprint)
    torch.manual_seed(1)
    save_density(build_density(SHAPES["glow"]), folder, {})
    assert moved.identity != before and moved.id != made.id, "another training in the same place"
    folder.unlink()
    assert moved.id == "glow(network=glow)", "no folder either where there is nothing"


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_detector_keeps_its_id(name, networks, tmp_path):
    made = detector(name, networks)
    made.save(tmp_path / "made.safetensors")
    again = load_detector(tmp_path / "made.safetensors")
    assert again.id == made.id and str(networks) not in made.id
    assert (tmp_path / "made.safetensors").read_bytes().count(bytes(networks)) == 0


def told(folder):
    """All that can be read in the files of an entry, names and metadata of the columns of scores with it."""
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            schema = pq.read_schema(path)
            yield from (*schema.names, *map(str, (schema.metadata or {}).values()))
        elif path.is_file():
            yield path.read_text(encoding="utf-8")


def test_an_entry_tells_no_folder_of_the_submitter(networks, evaluated, tmp_path):
    run = evaluated.result.save(tmp_path / "run")
    for name in NAMES:
        each = detector(name, networks)
        folder = submit(run, tmp_path / "board", id=f"{name}-1", method=name, detector=each.id)
        texts = list(told(folder))
        assert any(each.open_network().fingerprint[:16] in text for text in texts), name
        assert not any(str(networks.parent) in text or str(tmp_path) in text for text in texts), name
        assert not by_hand(read_entry(folder)), "a network is trained, not chosen"


def test_an_entry_of_the_leaderboard_names_the_network(networks, evaluated, tmp_path, monkeypatch):
    """Found where ``train`` puts it, no folder of the submitter's machine is told."""
    monkeypatch.chdir(tmp_path)
    save_density(detector("glow", networks).open_network(), tmp_path / "runs/train/glow-seed0/density.safetensors", {})
    result = oods.evaluate(evaluated.clf, evaluated.bench, ["glow"], store=evaluated.store, intervals="fast")
    folder = submit(result.save(tmp_path / "run"), tmp_path / "board", id="glow-1", method="Glow")
    entry = read_entry(folder)
    assert entry.detector.name == "glow" and entry.detector.params["network"].startswith("glow ")
    assert "runs/train" not in (folder / "entry.json").read_text(encoding="utf-8")


def test_gradients_reach_the_pixels_where_there_are_any(networks, evaluated):
    for name in NAMES:
        scorer = oods.fit_scorer(evaluated.clf, detector(name, networks), evaluated.bench.id_val, target=0.1)
        assert scorer.differentiable == (name != "input_complexity"), name


def test_an_attack_lowers_the_score(networks, evaluated):
    bench = evaluated.bench
    scorer = oods.fit_scorer(evaluated.clf, detector("nae", networks), bench.id_val, target=0.1)
    images = bench.id_val, bench.id_test, bench.far[0]
    attack = oods.attack({"nae": scorer}, *images, ["color"], budget=8, chains=6, runs=2)
    frame = attack.result.scores.frame
    clean, worst = (frame.loc[frame["unit"] == unit, "nae"] for unit in ("clean", "color"))
    assert worst.mean() < clean.mean()


@pytest.mark.slow
def test_every_one_is_tuned_fitted_attacked_and_submitted(networks, evaluated, tmp_path, monkeypatch):
    """What any detector can do, with each of them in one call."""
    bench, clf, store = evaluated.bench, evaluated.clf, evaluated.store
    monkeypatch.chdir(tmp_path)
    made = {name: detector(name, networks) for name in NAMES}
    tuned = oods.evaluate(clf, bench, [*made.values()], store=store, tune="ood_val", intervals="fast")
    run = tuned.save(tmp_path / "run")
    scorers = {}
    for number, (name, each) in enumerate(made.items()):
        assert np.array_equal(tuned.scores.frame[each.id], evaluated.scores.frame[each.id]), "nothing to choose"
        entry = read_entry(submit(run, tmp_path / "board", id=f"{name}-1", method=name, detector=each.id))
        assert entry.detector.name == name and str(networks) not in entry.detector.params["network"]
        scorers[name] = oods.fit_scorer(clf, each, bench.id_val, target=0.1)
        predicted = scorers[name].predict(bench.far[0].take([number]))[0]
        assert 0 < predicted.p_value <= 1 and np.isfinite(predicted.score)
    images = bench.id_val, bench.id_test, bench.far[0]
    attack = oods.attack(scorers, *images, ["color"], budget=6, chains=4, runs=2)
    frame = attack.result.scores.frame
    for name in NAMES:
        clean, worst = (frame.loc[frame["unit"] == unit, name].dropna() for unit in ("clean", "color"))
        assert len(worst) and worst.mean() <= clean.mean(), name


def test_bits_of_a_flow_may_be_taken_elsewhere_in_the_bins(networks, evaluated):
    """With noise, whose places depend on the image alone, or at the lower ends, as in EvG's evaluation."""
    forms = {"noise": 8, "parity": True}
    network = str(networks / "glow")
    made = [oods.create_detector("glow", network=network, **{key: value}) for key, value in forms.items()]
    found = oods.evaluate(evaluated.clf, evaluated.bench, made, store=evaluated.store, intervals="none").scores.frame
    plain = evaluated.scores.frame[detector("glow", networks).id]
    for each in made:
        assert (found[each.id] != plain).any(), each.id
        scorer = oods.fit_scorer(evaluated.clf, each, evaluated.bench.id_val, target=0.1)
        images = evaluated.bench.id_test.take([3, 4, 5])
        alone = scorer.score(evaluated.bench.id_test.take([4]))
        np.testing.assert_allclose(scorer.score(images)[1], alone[0], rtol=1e-6)
        assert scorer.differentiable
    with pytest.raises(DetectorError, match="noise must be 0 or more, and 0 with parity, not 8"):
        assert oods.create_detector("glow", network=network, **forms).probes


def test_layer_weights_learnt_from_outliers_are_what_an_attack_attacks(evaluated):
    """MD without its input step: maps are read during the plain pass, so that gradients reach the pixels."""
    bench, clf, store = evaluated.bench, evaluated.clf, evaluated.store
    made = oods.create_detector("mahalanobis_layers")
    train, val, ood = (
        store.extract(clf, images, probes=made.probes) for images in (bench.id_train, bench.id_val, bench.ood_val)
    )
    blind = oods.create_detector("mahalanobis_layers").fit(train, val)
    stepless = oods.create_detector("mds_ensemble", epsilon=0.0).fit(train, val, ood_val=ood)
    scorer = Scorer(clf, made.fit(train, val, ood_val=ood))
    assert not torch.allclose(made.alpha_ / made.alpha_.sum(), blind.alpha_ / blind.alpha_.sum())
    assert scorer.differentiable
    torch.testing.assert_close(made.score(val), stepless.score(val) + made.level_)
    parity = oods.create_detector("mahalanobis_layers", parity=True).fit(train, val, ood_val=ood)
    torch.testing.assert_close(parity.score(val).float(), made.score(val).float().sigmoid())
    images = bench.id_val, bench.id_test, bench.far[0]
    attack = oods.attack({"md": scorer}, *images, ["color"], budget=8, chains=6, runs=2)
    frame = attack.result.scores.frame
    clean, worst = (frame.loc[frame["unit"] == unit, "md"] for unit in ("clean", "color"))
    assert worst.mean() < clean.mean()


@pytest.mark.slow
def test_a_graph_holds_both_networks(networks, evaluated, tmp_path):
    pytest.importorskip("onnxruntime")
    scorer = oods.fit_scorer(evaluated.clf, detector("autoencoder", networks), evaluated.bench.id_val, target=0.1)
    assert max(oods.export_onnx(scorer, tmp_path / "a.onnx").values()) < 1e-4
    scorer = oods.fit_scorer(evaluated.clf, detector("input_complexity", networks), evaluated.bench.id_val, target=0.1)
    with pytest.raises(DetectorError, match="cannot be exported: it makes passes of its own"):
        oods.export_onnx(scorer, tmp_path / "b.onnx")


def test_a_search_without_a_grid_leaves_it_alone(networks, evaluated):
    made = detector("glow", networks)
    result = oods.evaluate(
        evaluated.clf, evaluated.bench, [made], store=evaluated.store, tune="id_only", intervals="none"
    )
    assert np.array_equal(result.scores.frame[made.id], evaluated.scores.frame[made.id])


def test_a_missing_network_names_the_command_that_trains_it(evaluated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bench, clf = evaluated.bench, evaluated.clf
    words = "needs a network of its own, and there is none in runs/train/glow-seed0: train one .oodscope train --recipe"
    with pytest.raises(DetectorError, match=f"glow: {words} glow --benchmark NAME"):
        oods.evaluate(clf, bench, ["glow"])
    everything = oods.evaluate(clf, bench, "all", store=evaluated.store, intervals="none")
    assert everything.record.skipped["glow"].startswith("needs a network of its own")
    with pytest.raises(DetectorError, match="likelihood_ratio: needs a network of its own"):
        oods.evaluate(clf, bench, ["likelihood_ratio"])


def test_a_missing_background_names_its_command(networks, evaluated):
    made = oods.create_detector("likelihood_ratio", network=str(networks / "pixelcnn"), background="nowhere")
    with pytest.raises(DetectorError, match="needs a second network, of backgrounds.*--set mutation=0.1"):
        oods.evaluate(evaluated.clf, evaluated.bench, [made])


@pytest.mark.parametrize(
    ("size", "mean", "words"),
    [
        (16, (0.0,) * 3, "trained on 8 x 8 pixels, and these images have 16 x 16"),
        (8, (0.0,), r"trained on colour images \(3 channels\), and these have 1 channel"),
    ],
)
def test_images_of_another_shape_are_refused_before_any_work(size, mean, words, networks, evaluated):
    torch.manual_seed(0)
    net = tiny.TinyNet()
    if len(mean) == 1:
        net.conv = torch.nn.Conv2d(1, 6, 3, padding=1)
    clf = oods.Classifier(net, oods.Preprocess(size=size, mean=mean, std=(1.0,) * len(mean)), device="cpu")
    store = oods.ActivationStore(evaluated.store.root)
    with pytest.raises(DetectorError, match=words):
        oods.evaluate(clf, evaluated.bench, [detector("glow", networks)], store=store)
    assert store.forwarded == 0


def test_a_network_of_another_kind_is_refused(networks):
    made = oods.create_detector("glow", network=str(networks / "nae"))
    with pytest.raises(DetectorError, match="holds a network of kind nae; needed: glow"):
        made.open_network()
    everything = Capabilities(head=True, train=True, held_out=True)
    assert "network of kind nae" in made.unmet_requirement(everything)
    assert "only activations" in detector("glow", networks).unmet_requirement(
        Capabilities(head=True, train=True, held_out=True, images=False)
    )


def test_files_are_shorter_for_smooth_images():
    rng = np.random.default_rng(0)
    noise = torch.from_numpy(rng.integers(0, 256, (2, 3, 16, 16))) / 255
    for compressor in ("png", "jpeg2000"):
        length = CompressedLength(compressor).of_pixels(torch.cat([noise, torch.full_like(noise, 0.5)]))
        assert length[:2].min() > 8 > length[2:].max(), "noise cannot be compressed"
    with pytest.raises(DetectorError, match="compressor must be one of png, jpeg2000"):
        assert oods.create_detector("input_complexity", compressor="zip").probes
