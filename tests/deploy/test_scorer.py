"""Images in, scores out: alone or in a batch, as pixels or tensors, before and after the file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import oodscope as oods
from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import DataError, DetectorError, ModelError, StorageError, UsageError
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.base import Needs
from oodscope.detectors.registry import DETECTORS
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.models.classifier.head import Head
from oodscope.models.zoo.origin import ModelOrigin
from oodscope.models.zoo.zero_shot import TextHead, zero_shot
from tests.tiny import TRANSFORM, ForwardCounter, classifier, images, imageset, network

SIZE = oods.Preprocess(size=16)
# those that need negative labels have a network of words below, those with a network of their own a file of tests
SPECIAL = Needs.NEGATIVES | Needs.PATCHES | Needs.OUTPUTS | Needs.DROPOUT | Needs.BOUNDS | Needs.IMAGES
NAMES = [name for name in DETECTORS.names() if not SPECIAL & DETECTORS.get(name).needs] + ["react+msp"]


def train():
    return imageset("train", 80, 1)


def held_out(count=60, seed=2):
    return imageset("held out", count, seed)


def small(members=1):
    torch.manual_seed(0)
    nets = [oods.create_model("small_cnn", num_classes=4)[0] for _ in range(members)]
    clf = oods.Classifier(nets[0] if members == 1 else Ensemble(nets), SIZE, device="cpu")
    return clf, ModelOrigin(architecture="small_cnn", members=members)


class Fitted(dict):
    """Any detector fitted to a small network (those of ensembles to two), once it is asked for."""

    def __init__(self, folder):
        super().__init__()
        self.store, self.networks = ActivationStore(folder), {1: small(), 2: small(2)}

    def __missing__(self, name):
        clf, origin = self.networks[2 if Needs.MEMBERS in oods.create_detector(name).needs else 1]
        self[name] = oods.fit_scorer(clf, name, held_out(), train(), target=0.1, origin=origin, store=self.store)
        return self[name]


@pytest.fixture(scope="module")
def scorers(tmp_path_factory):
    return Fitted(tmp_path_factory.mktemp("store"))


def tiny_scorer(name="knn", **options):
    return oods.fit_scorer(classifier(), name, held_out(), train(), target=0.1, **options)


LOADER = """
import sys; from pathlib import Path
import numpy as np, torch
torch.set_num_threads(1)
import oodscope as oods
pixels = np.load(sys.argv[1] + "/pixels.npy")
found = {file.stem: oods.load(file, device="cpu").score(pixels) for file in Path(sys.argv[1]).glob("*.oodscope")}
np.savez(sys.argv[1] + "/found.npz", **found)
"""


@pytest.mark.slow
def test_every_detector_scores_bit_equal_in_a_fresh_process(scorers, tmp_path):
    pixels, _ = images(20, 5)
    np.save(tmp_path / "pixels.npy", pixels)
    for name in NAMES:
        scorers[name].save(tmp_path / f"{name}.oodscope", include_weights=True)
    subprocess.run([sys.executable, "-c", LOADER, str(tmp_path)], check=True)
    with np.load(tmp_path / "found.npz") as found:
        assert set(found.files) == set(NAMES)
        for name in NAMES:
            assert np.array_equal(found[name], scorers[name].score(pixels)), name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_image_alone_scores_as_in_a_batch(scorers, name):
    pixels, _ = images(12, 6)
    whole = scorers[name].score(pixels)
    alone = np.array([scorers[name].predict(image)[0].score for image in pixels])
    # disagreement is a difference of entropies, and feels the last digits of float32 most
    assert np.abs(whole - alone).max() <= 1e-4 * np.abs(whole).max()


@pytest.mark.parametrize("name", NAMES)
def test_the_scorer_says_what_the_detector_says_of_stored_activations(scorers, name, tmp_path):
    scorer, fresh = scorers[name], held_out(16, 7)
    stored = ActivationStore(tmp_path).extract(scorer.classifier, fresh, probes=scorer.detector.probes)
    expected = scorer.detector.score(stored).numpy()
    assert np.abs(scorer.score(fresh) - expected).max() <= 1e-5 * np.abs(expected).max()


NO_GRADIENT = {
    "adascale_a",
    "adascale_l",
    "gram",
    "iodin",
    "odin",
    "mds_ensemble",
    "rankfeat",
    "nac",
    "ras",
    "cfood",
    "pro",
    "ross",
    "cover",
}
"""Those with passes of their own, those that count bins or ranks, and the one whose roots have no slope at zero."""
JUMPS = {"optfs", "weiper"}
"""Smooth between the borders of their bins only."""


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_the_pixels(scorers, name):
    """Against finite differences along the gradient."""
    scorer = scorers[name]
    assert scorer.differentiable == (name not in NO_GRADIENT)
    if name in NO_GRADIENT | JUMPS:
        return
    pixels = torch.rand((2, 3, 16, 16), generator=torch.Generator().manual_seed(3))
    leaf = pixels.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(scorer.score_tensor(leaf).sum(), leaf)
    direction = gradient / gradient.norm()
    # leaves again: where gradients are recorded, scores have the digits of float64
    up, down = (scorer.score_tensor(leaf + step * direction).sum() for step in (2e-3, -2e-3))
    assert float(up - down) / 4e-3 == pytest.approx(float(gradient.norm()), rel=0.1)


@pytest.mark.parametrize("name", sorted({*NAMES} - NO_GRADIENT | {"gram", "nac"}))
def test_the_one_way_for_all_values_gives_the_same_scores(scorers, name):
    """Where gradients are recorded detectors may not look at their values; what they then say must not change."""
    pixels = torch.rand((6, 3, 16, 16), generator=torch.Generator().manual_seed(4))
    looked = scorers[name].score_tensor(pixels)
    blind = scorers[name].score_tensor(pixels.clone().requires_grad_(True)).detach()
    # the difference of two entropies has what float32 leaves of them
    assert float((looked - blind).abs().max()) <= 1e-4 * float(looked.abs().max()) + 1e-6


def test_passes_of_ones_own_have_no_gradient_and_say_so(scorers):
    with pytest.raises(DetectorError, match="odin: makes passes of its own, through which no gradient flows"):
        scorers["odin"].score_tensor(torch.rand(1, 3, 16, 16, requires_grad=True))


@pytest.mark.parametrize(
    ("name", "forwards", "backwards"),
    [
        ("msp", 1, 0),
        ("knn", 1, 0),
        ("odin", 2, 1),
        ("gram", 1, 0),
        ("rankfeat", 2, 0),
        ("pro", 4, 3),
        ("ross", 25, 0),
        ("cover", 5, 0),
        ("mfs", 1, 0),
    ],
)
def test_score_tensor_makes_exactly_the_passes_it_needs(scorers, name, forwards, backwards):
    counter = ForwardCounter(scorers[name].classifier.model)
    scorers[name].score_tensor(torch.rand(5, 3, 16, 16))
    counter.handles[0].remove()
    assert (counter.images, counter.backwards) == (5 * forwards, 5 * backwards)


class TestImages:
    def test_every_form_of_the_same_picture_scores_alike(self, tmp_path):
        scorer, (pixels, _) = tiny_scorer(), images(3, 4)
        expected = scorer.score(pixels)
        for number, image in enumerate(pixels):
            Image.fromarray(image).save(tmp_path / f"{number}.png")
        paths = [tmp_path / f"{number}.png" for number in range(3)]
        assert np.array_equal(scorer.score(paths), expected)
        assert np.array_equal(scorer.score([str(path) for path in paths]), expected)
        assert np.array_equal(scorer.score([Image.fromarray(image) for image in pixels]), expected)
        assert np.array_equal(scorer.score(oods.ImageSet.from_arrays("a", pixels)), expected)
        assert scorer.score(pixels[1]).shape == (1,)
        assert scorer.score(paths[0]).shape == scorer.score(Image.fromarray(pixels[0])).shape == (1,)
        tensor = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
        assert np.allclose(scorer.score(tensor), expected, rtol=1e-5)
        assert np.allclose(scorer.score_tensor(tensor).numpy(), expected, rtol=1e-5)
        assert scorer.score([]).shape == (0,)
        assert scorer.predict([]) == []

    def test_batches_do_not_matter(self):
        scorer, (pixels, _) = tiny_scorer(), images(11, 4)
        assert np.allclose(scorer.score(pixels, batch_size=4), scorer.score(pixels), rtol=1e-6)

    def test_large_pictures_are_resized_and_grey_ones_coloured(self):
        grey = np.random.default_rng(0).integers(0, 256, (40, 30), dtype=np.uint8)
        colour = np.repeat(grey[:, :, None], 3, axis=2)
        assert tiny_scorer().score([grey]) == pytest.approx(tiny_scorer().score([colour]))

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ([np.zeros((8, 8, 3), np.float32)], DataError, r"image 0 is a float32 array of shape \[8, 8, 3\]; needed"),
            (["gone.png"], DataError, "unreadable image gone.png: no such file$"),
            ([3], DataError, "image 0 is a int; needed"),
            (torch.zeros(1, 3, 9, 9), ModelError, r"of shape \[N, 3, 8, 8\], as the network sees them; got"),
            (torch.zeros(1, 3, 8, 8, dtype=torch.uint8), ModelError, "must be float images in"),
        ],
    )
    def test_what_is_no_image(self, given, error, message):
        with pytest.raises(error, match=message):
            tiny_scorer("msp").score(given)


class TestPredictions:
    def test_class_score_p_value_and_verdict_belong_together(self):
        scorer, (pixels, _) = tiny_scorer("msp"), images(40, 9)
        known = scorer.calibration.scores
        logits = scorer.classifier.forward(scorer.classifier.prepare(list(pixels))).logits
        for each, row, score in zip(scorer.predict(pixels), logits, scorer.score(pixels)):
            assert each.class_index == int(row.argmax())
            assert each.class_name == f"class {each.class_index}"
            assert each.score == pytest.approx(score)
            assert each.p_value == (1 + (known >= each.score).sum()) / (len(known) + 1)
            assert each.accepted == (each.score <= scorer.calibration.threshold) == (each.p_value > 0.1)
        assert {each.accepted for each in scorer.predict(pixels)} == {True, False}

    def test_the_name_is_that_of_the_largest_logit(self):
        clf = classifier()
        with torch.no_grad():
            clf.model.head.bias[2] += 100
        scorer = Scorer(clf, oods.create_detector("msp"), class_names=("ant", "bee", "cat", "dog"))
        assert {(each.class_name, each.class_index) for each in scorer.predict(images(3, 0)[0])} == {("cat", 2)}

    def test_without_calibration_there_is_no_verdict(self):
        (only,) = Scorer(classifier(), oods.create_detector("msp")).predict(images(1, 0)[0])
        assert only.p_value is None
        assert only.accepted is None
        assert only.class_name in "0123"

    def test_nan_is_named(self):
        clf = classifier()
        scorer = Scorer(clf, oods.create_detector("mls"))
        with torch.no_grad():
            clf.model.head.bias.fill_(float("nan"))
        with pytest.raises(DetectorError, match="mls: the score of image 0 is NaN or infinite"):
            scorer.score(images(2, 0)[0])


class TestFitting:
    def test_the_rate_of_false_alarms_is_kept_on_fresh_images(self):
        scorer = oods.fit_scorer(classifier(), "knn", held_out(1000, 20), train(), target=0.1)
        alarms = 1 - scorer.calibration.accepts(scorer.score(held_out(1000, 21))).mean()
        assert 0.05 < alarms < 0.15

    def test_calibration_images_are_never_learned_from(self):
        """React takes its percentile from one half; the other half calibrates."""
        scorer = oods.fit_scorer(classifier(), "react", held_out(), train(), target=0.1)
        assert scorer.calibration.guarantee.n == 30
        sets = scorer.provenance["sets"]
        assert (sets["held_out"]["n"], sets["calibration"]["n"]) == (30, 30)
        assert sets["held_out"]["fingerprint"] != sets["calibration"]["fingerprint"]
        order = np.random.default_rng(0).permutation(60)
        fitted_on = held_out().take(np.sort(order[:30]))
        stored = ActivationStore().extract(scorer.classifier, fitted_on)
        assert scorer.detector.threshold_ == pytest.approx(np.percentile(stored.features.numpy(), 90), rel=1e-5)
        assert np.allclose(np.sort(scorer.score(held_out().take(np.sort(order[30:])))), scorer.calibration.scores)

    def test_a_detector_of_training_images_leaves_all_for_calibration(self):
        assert tiny_scorer("knn").calibration.guarantee.n == 60

    def test_shared_images_are_refused(self):
        with pytest.raises(DataError, match="2 of 30 calibration images also lie among the training images"):
            both = oods.ImageSet.from_arrays(
                "b", np.concatenate([images(2, 1)[0], images(28, 2)[0]]), np.arange(30) % 4
            )
            oods.fit_scorer(classifier(), "msp", both, train(), target=0.1)

    def test_too_few_images_are_refused_before_anything_runs(self):
        clf = classifier()
        clf.head  # noqa: B018  # found before passes are counted
        counter = ForwardCounter(clf.model)
        with pytest.raises(DataError, match="a target of 0.01 needs at least 99 calibration images"):
            oods.fit_scorer(clf, "knn", held_out(), train(), target=0.01)
        with pytest.raises(DataError, match="there are 30, for react learns from the other 30$"):
            oods.fit_scorer(clf, "react", held_out(), train(), target=0.03)
        assert counter.images == 0

    def test_labels_are_matched_by_class_name(self):
        """Temperature scaling learns from held-out labels, whose folder may lack classes or sort them otherwise."""
        pixels, labels = images(60, 2)
        names = [f"class {c}" for c in (3, 2, 1, 0)]
        turned = oods.ImageSet.from_arrays("t", pixels, 3 - labels, names)
        assert (
            oods.fit_scorer(classifier(), "temp_scaling", turned, train(), target=0.1).detector.temperature_
            == tiny_scorer("temp_scaling").detector.temperature_
        )

    def test_detectors_that_do_not_apply_say_why(self):
        with pytest.raises(DetectorError, match="needs several networks that vote"):
            tiny_scorer("mutual_information")
        with pytest.raises(DetectorError, match="knn: not fitted"):
            Scorer(classifier(), oods.create_detector("knn"))
        with pytest.raises(DetectorError, match="needs in-distribution training activations"):
            oods.fit_scorer(classifier(), "knn", held_out(), target=0.1)

    def test_foreign_classes(self):
        pixels, labels = images(60, 2, classes=3)
        with pytest.raises(DataError, match="set 't' has 3 classes, the classifier knows 4"):
            oods.fit_scorer(classifier(), "msp", oods.ImageSet.from_arrays("t", pixels, labels), target=0.1)


@pytest.fixture
def saved(tmp_path):
    scorer = tiny_scorer()
    scorer.save(tmp_path / "a.oodscope")
    return tmp_path / "a.oodscope", scorer


def rewritten(path, change):
    """The file with its JSON part changed, and without a matching checksum."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as content:
        metadata = dict(content.metadata())
    record = json.loads(metadata["oodscope_scorer"])
    change(record)
    metadata["oodscope_scorer"] = json.dumps(record)
    save_file(load_file(path), path, metadata=metadata)


class TestFile:
    def test_all_comes_back(self, saved):
        path, scorer = saved
        loaded = oods.load(path, model=network(), device="cpu")
        assert repr(loaded) == repr(scorer)
        assert loaded.calibration.guarantee == scorer.calibration.guarantee
        assert np.array_equal(loaded.calibration.scores, scorer.calibration.scores)
        assert loaded.class_names == scorer.class_names
        assert loaded.provenance == scorer.provenance
        assert loaded.provenance["oodscope"] == oods.__version__
        assert loaded.predict(images(5, 3)[0]) == scorer.predict(images(5, 3)[0])

    def test_a_classifier_serves_as_well_as_a_module(self, saved):
        path, scorer = saved
        loaded = oods.load(path, model=oods.Classifier(network(), device="cpu"))
        assert loaded.classifier.transform == TRANSFORM
        assert np.array_equal(loaded.score(images(5, 3)[0]), scorer.score(images(5, 3)[0]))

    @pytest.mark.parametrize("keep", [0, 5, 100, 0.5, 0.99, -1])
    def test_cut_off(self, saved, keep):
        path, _ = saved
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
        with pytest.raises(StorageError, match=r"a\.oodscope: not a readable .oodscope file: damaged, cut off"):
            oods.load(path, model=network())

    @pytest.mark.parametrize("place", [0.3, 0.6, 0.9, 0.999])
    def test_a_changed_byte_is_noticed(self, saved, place):
        path, _ = saved
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= 1
        path.write_bytes(content)
        with pytest.raises(StorageError, match="damaged"):
            oods.load(path, model=network())

    def test_foreign_files(self, tmp_path):
        (tmp_path / "a").write_text("hello")
        save_file({"a": torch.zeros(2)}, tmp_path / "b")
        oods.create_detector("msp").save(tmp_path / "c")
        for name, message in {
            "a": "not a readable",
            "b": "but not one that",
            "c": "but not one",
            "d": "no such",
        }.items():
            with pytest.raises(StorageError, match=message):
                oods.load(tmp_path / name)

    def test_a_newer_format(self, saved):
        rewritten(saved[0], lambda record: record.update(format=2, surprise=1))
        with pytest.raises(StorageError, match=r"written by a newer oodscope \(format 2, this one reads 1\)"):
            oods.load(saved[0], model=network())

    def test_a_detector_whose_scores_changed_form(self, saved, monkeypatch):
        monkeypatch.setattr(DETECTORS.get("knn"), "version", 2)
        with pytest.raises(DetectorError, match="holds version 1 of knn, here is version 2, whose scores differ"):
            oods.load(saved[0], model=network(), device="cpu")

    def test_other_weights_are_refused(self, saved):
        with pytest.raises(DetectorError, match="the weights are not those it was fitted with"):
            oods.load(saved[0], model=network(seed=1), device="cpu")

    def test_the_same_weights_behind_another_preprocessing_are_refused(self, saved):
        other = oods.Classifier(network(), oods.Preprocess(size=8, mean=(0.2, 0.2, 0.2)), device="cpu")
        with pytest.raises(DetectorError, match="does not answer as it did when this was saved"):
            oods.load(saved[0], model=other)

    def test_a_network_of_ones_own_must_be_brought(self, saved):
        with pytest.raises(UsageError, match=r"a network of your own \(TinyNet\); name it: .* \(model= in Python\)"):
            oods.load(saved[0])

    def test_weights_by_file(self, scorers, tmp_path):
        scorer = scorers["msp"]
        scorer.save(tmp_path / "a.oodscope")
        state = scorer.classifier.model.state_dict()
        save_file(state, tmp_path / "net.safetensors")
        save_file({key: value * 2 for key, value in state.items()}, tmp_path / "other.safetensors")
        loaded = oods.load(tmp_path / "a.oodscope", weights=tmp_path / "net.safetensors", device="cpu")
        assert np.array_equal(loaded.score(images(3, 0)[0]), scorer.score(images(3, 0)[0]))
        with pytest.raises(DetectorError, match="not those it was fitted with"):
            oods.load(tmp_path / "a.oodscope", weights=tmp_path / "other.safetensors", device="cpu")
        with pytest.raises(UsageError, match="needs the weights of small_cnn that it was fitted with: give --weights"):
            oods.load(tmp_path / "a.oodscope")

    def test_published_weights_that_are_embedded_are_not_fetched_again(self, scorers, tmp_path):
        clf, _ = small()
        published = ModelOrigin(architecture="small_cnn", pretrained=True)
        scorer = oods.fit_scorer(clf, "msp", held_out(), target=0.1, origin=published)
        scorer.save(tmp_path / "a.oodscope", include_weights=True)
        assert np.array_equal(
            oods.load(tmp_path / "a.oodscope", device="cpu").score(images(3, 0)[0]), scorer.score(images(3, 0)[0])
        )
        scorer.save(tmp_path / "b.oodscope")
        with pytest.raises(ModelError, match="there are no published weights"):
            oods.load(tmp_path / "b.oodscope", device="cpu")

    def test_embedded_weights_cost_their_size(self, scorers, tmp_path):
        scorers["msp"].save(tmp_path / "lean.oodscope")
        scorers["msp"].save(tmp_path / "whole.oodscope", include_weights=True)
        sizes = [(tmp_path / f"{name}.oodscope").stat().st_size for name in ("lean", "whole")]
        weights = sum(t.numel() * t.element_size() for t in scorers["msp"].classifier.model.state_dict().values())
        assert sizes[1] - sizes[0] >= weights

    def test_a_head_given_as_numbers(self, tmp_path):
        torch.manual_seed(0)
        tower = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6), torch.nn.ReLU())
        clf = oods.Classifier(tower, TRANSFORM, head=Head(torch.randn(4, 6)), device="cpu")
        scorer = oods.fit_scorer(clf, "vim", held_out(), train(), target=0.1)
        scorer.save(tmp_path / "a.oodscope", include_weights=True)
        loaded = oods.load(tmp_path / "a.oodscope", model=tower, device="cpu")
        assert np.array_equal(loaded.score(images(5, 3)[0]), scorer.score(images(5, 3)[0]))


class TestTransforms:
    def compose(self, *extra, resize=24, crop=16):
        from torchvision import transforms

        steps = [transforms.Resize(resize), transforms.CenterCrop(crop), transforms.ToTensor(), *extra]
        return transforms.Compose([*steps, transforms.Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))])

    def scorer(self, transform):
        clf = oods.Classifier(small()[0].model, transform, device="cpu")
        return oods.fit_scorer(clf, "msp", held_out(), target=0.1, origin=small()[1])

    def test_a_usual_one_becomes_numbers(self, tmp_path):
        scorer = self.scorer(self.compose())
        scorer.save(tmp_path / "a.oodscope", include_weights=True)
        loaded = oods.load(tmp_path / "a.oodscope", device="cpu")
        assert loaded.classifier.transform == oods.Preprocess(
            size=16, resize=24, mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6)
        )
        pictures = [np.random.default_rng(n).integers(0, 256, (50 + n, 60, 3), dtype=np.uint8) for n in range(4)]
        assert np.allclose(loaded.score(pictures), scorer.score(pictures), rtol=1e-4)

    def test_torchvisions_preset(self, tmp_path):
        from torchvision.transforms._presets import ImageClassification

        scorer = self.scorer(ImageClassification(crop_size=16, resize_size=24))
        scorer.save(tmp_path / "a.oodscope", include_weights=True)
        assert oods.load(tmp_path / "a.oodscope", device="cpu").classifier.transform.resize == 24

    def test_others_are_refused_with_advice(self, tmp_path):
        from torchvision import transforms

        for odd in (self.compose(transforms.Lambda(lambda x: x.square())), self.compose(transforms.GaussianBlur(3))):
            with pytest.raises(
                ModelError, match=r"this transform cannot be stored .* Give the classifier a Preprocess"
            ):
                self.scorer(odd).save(tmp_path / "a.oodscope")
        assert not (tmp_path / "a.oodscope").exists()

    def test_tensors_need_a_preprocessing_that_is_linear_in_pixels(self):
        from torchvision import transforms

        with pytest.raises(ModelError, match="does more than scale and shift pixels"):
            self.scorer(self.compose(transforms.Lambda(lambda x: x.square()))).score(torch.rand(2, 3, 16, 16))


class TestFunctions:
    def test_any_function_is_a_scorer(self):
        scorer = FunctionScorer(lambda images: images.mean(dim=(1, 2, 3)))
        pixels, _ = images(5, 0)
        assert np.allclose(scorer.score(pixels, batch_size=2), pixels.reshape(5, -1).mean(axis=1) / 255)
        leaf = torch.rand(2, 3, 8, 8, requires_grad=True)
        scorer.score_tensor(leaf).sum().backward()
        assert torch.allclose(leaf.grad, torch.full_like(leaf, 1 / 192))

    def test_its_answer_is_checked(self):
        with pytest.raises(DetectorError, match=r"turns 2 images into \[2, 1\]; needed: one score per image"):
            FunctionScorer(lambda images: images[:, 0, 0, :1]).score_tensor(torch.rand(2, 3, 8, 8))
        with pytest.raises(DetectorError, match="images differ in size"):
            FunctionScorer(lambda images: images).score([np.zeros((4, 4), np.uint8), np.zeros((5, 5), np.uint8)])


def test_nothing_is_pickled(saved):
    assert Path(saved[0]).read_bytes()[8:9] == b"{"
    assert load_file(saved[0])["calibration.scores"].dtype == torch.float64


def test_a_network_of_words_is_saved_and_comes_back_from_its_maker(tmp_path):
    (tmp_path / "words.txt").write_text("salt\ndeep_sea\nglass\n")
    head = TextHead(templates=("a {}.",), negatives=str(tmp_path / "words.txt"), negative_count=2, negative_share=0.0)

    def words():
        torch.manual_seed(0)
        tower = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 6))
        rng = np.random.default_rng(0)
        return zero_shot(
            tower, lambda said: torch.tensor(rng.normal(size=(len(said), 6))).float(), "abcd", head, scale=9.0
        )

    scorer = oods.fit_scorer(oods.Classifier(words(), SIZE, device="cpu"), "neglabel", held_out(), target=0.1)
    scorer.save(tmp_path / "n.oodscope")
    again = oods.load(tmp_path / "n.oodscope", model=words(), device="cpu")
    pixels, _ = images(7, seed=5)
    assert np.array_equal(again.score(pixels), scorer.score(pixels))
    alone = [float(scorer.score(pixels[row : row + 1])[0]) for row in range(7)]
    assert np.allclose(alone, scorer.score(pixels), atol=1e-6)
