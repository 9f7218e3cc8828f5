"""The fast road: bf16, compiled, proved to be the same network, and judged again in float32."""

import numpy as np
import pytest
import torch
from torch import nn

import oodscope as oods
from oodscope.base.errors import DetectorError
from oodscope.deploy.scorer import Scorer
from oodscope.generation.samplers.registry import create_sampler
from oodscope.generation.search import fast as compiling
from oodscope.generation.search.energy import Standardised
from oodscope.generation.search.fast import FastPipeline
from oodscope.generation.search.search import search
from oodscope.generation.variations.gan import GanVariation
from oodscope.generation.variations.registry import create_variation
from oodscope.models.classifier.head import Head
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator
from tests.tiny import imageset

pytestmark = pytest.mark.slow

SIDE = oods.Preprocess(size=16)


def enlivened(model, factor):
    """Logits that differ from image to image, as a trained network's do."""
    for weight in model.parameters():
        if weight.ndim > 1:
            weight.data *= factor
    return model


def lively(seed=0):
    torch.manual_seed(seed)
    return oods.Classifier(enlivened(oods.create_model("small_cnn", num_classes=4)[0], 3), SIDE, device="cpu")


@pytest.fixture(scope="module")
def scorer():
    clf = lively()

    def make(name):
        return oods.fit_scorer(clf, name, imageset("held out", 60, 2), imageset("train", 80, 1), target=0.1)

    return make


@pytest.fixture
def images():
    return torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(3))


@pytest.fixture(autouse=True)
def traced(monkeypatch):
    """Whole graphs as on a GPU, run by torch itself: a break in a graph is an error, and no compiler is needed."""
    monkeypatch.setattr(
        compiling,
        "compile_for_one_size",
        lambda function: torch.compile(function, backend="eager", fullgraph=True, dynamic=False),
    )


@pytest.fixture
def forgotten():
    """Nothing compiled before or after."""
    compiling._KEPT.clear()
    yield
    compiling._KEPT.clear()


def compare(made, variation, images, batch=8):
    vary = create_variation(variation, image_shape=(3, 16, 16))
    points = torch.rand(len(images), vary.domain.dimension, generator=torch.Generator().manual_seed(4))
    fast = FastPipeline(made, vary, batch)
    with torch.no_grad():
        return fast, fast(points, images), made.score_tensor(vary(points, images))


def close(quick, exact):
    return float((quick - exact).abs().max()) < 0.1 * float(exact.std())


@pytest.mark.parametrize(
    ("name", "variation"), [("ebo", "affine"), ("knn", "affine"), ("vim", "color"), ("react", "color"), ("msp", "linf")]
)
def test_bf16_says_almost_what_float32_says(scorer, images, name, variation):
    fast, quick, exact = compare(scorer(name), variation, images)
    assert fast.notes == ()
    assert quick.shape == exact.shape == (6,) and not torch.equal(quick, exact)
    assert close(quick, exact)


def test_one_network_is_compiled_once_for_all_variations_and_detectors(scorer, images, forgotten, monkeypatch):
    monkeypatch.setattr(compiling, "compile_for_one_size", lambda function: function)
    for name, variation in (("ebo", "linf"), ("msp", "linf"), ("ebo", "color")):
        compare(scorer(name), variation, images)
    assert len(compiling._KEPT) == 3
    compare(scorer("ebo"), "linf", images, batch=7)
    assert len(compiling._KEPT) == 5


def test_other_weights_are_another_network(images, forgotten):
    scores = []
    for seed in (0, 1):
        fast, quick, exact = compare(Scorer(lively(seed), oods.create_detector("ebo")), "linf", images)
        assert close(quick, exact)
        scores.append(quick)
    assert not close(*scores)


def test_a_detector_that_looks_inside_runs_under_autocast(scorer, images):
    made = scorer("gram")
    before = made.score(images)
    fast, quick, exact = compare(made, "linf", images)
    assert fast.notes == ("gram looks inside the network, which therefore runs uncompiled",)
    assert not torch.equal(quick, exact) and close(quick, exact)
    # the scorer itself stays in float32
    assert np.array_equal(made.score(images), before)


class Doubled(nn.Module):
    """Uses its head's weights from outside, so that taking the head off changes or breaks it."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 5, 3), nn.Linear(5, 4)

    def forward(self, x):
        features = self.conv(x).relu().mean(dim=(2, 3))
        return self.head(features) + 0 * self.head.weight.sum()


def test_a_network_that_cannot_lose_its_head_runs_uncompiled(images):
    torch.manual_seed(0)
    clf = oods.Classifier(enlivened(Doubled(), 20), SIDE, device="cpu", name="doubled")
    assert clf.head_path == "head"
    fast, quick, exact = compare(Scorer(clf, oods.create_detector("ebo")), "linf", images)
    assert fast.notes == ("doubled runs uncompiled: its head could not be taken off",)
    assert close(quick, exact)


class Watchful(Doubled):
    """Does something else when its head is gone, without breaking."""

    def forward(self, x):
        features = self.conv(x).relu().mean(dim=(2, 3))
        return self.head(features if isinstance(self.head, nn.Linear) else 2 * features)


def test_a_network_that_changes_without_its_head_runs_uncompiled(images):
    torch.manual_seed(0)
    clf = oods.Classifier(enlivened(Watchful(), 20), SIDE, device="cpu", name="watchful")
    fast, quick, exact = compare(Scorer(clf, oods.create_detector("ebo")), "linf", images)
    assert fast.notes == ("watchful runs uncompiled: its head could not be taken off",) and close(quick, exact)


def test_a_network_that_cannot_be_copied_runs_uncompiled(images):
    class Single(Doubled):
        def __deepcopy__(self, memo):
            raise TypeError("there is only one of me")

    torch.manual_seed(0)
    clf = oods.Classifier(enlivened(Single(), 20), SIDE, device="cpu", name="single")
    fast, quick, exact = compare(Scorer(clf, oods.create_detector("ebo")), "linf", images)
    assert fast.notes == ("single runs uncompiled: its head could not be taken off",) and close(quick, exact)


def test_a_given_head_and_no_head_at_all(images):
    torch.manual_seed(0)
    tower = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten())
    given = oods.Classifier(tower, SIDE, head=Head(5 * torch.randn(4, 5)), device="cpu")
    headless = oods.Classifier(nn.Sequential(tower, enlivened(nn.Linear(5, 4), 5), nn.Tanh()), SIDE, device="cpu")
    assert headless.head is None
    for clf in (given, headless):
        fast, quick, exact = compare(Scorer(clf, oods.create_detector("ebo")), "linf", images)
        assert fast.notes == () and close(quick, exact)


def test_without_a_compiler_the_search_goes_on_and_says_so(scorer, images, monkeypatch, forgotten):
    def broken(function):
        def fail(*tensors):
            raise RuntimeError("no C compiler\nfound here")

        return fail

    monkeypatch.setattr(compiling, "compile_for_one_size", broken)
    vary = create_variation("color", image_shape=(3, 16, 16))
    found = search(scorer("ebo"), vary, create_sampler("mh"), 4, images, fast=True)
    assert found.notes == (
        "the variation runs uncompiled: torch.compile failed (no C compiler)",
        "the network runs uncompiled: torch.compile failed (no C compiler)",
    )
    assert 0 < float(found.precision_gap.abs().max()) < 0.5


def test_what_needs_float32_stays_there(scorer, images):
    vary = create_variation("linf", image_shape=(3, 16, 16))
    for name in ("zeroth_order", "pgd"):
        found = search(scorer("ebo"), vary, create_sampler(name), 4, images, fast=True)
        assert found.description["precision"] == "float32" and float(found.precision_gap.abs().max()) < 1e-5
    assert search(scorer("ebo"), vary, create_sampler("mh"), 4, images).description["precision"] == "float32"


def test_tempering_and_a_short_last_block_fill_one_compiled_size(scorer, images, forgotten):
    vary = create_variation("linf", image_shape=(3, 16, 16))
    sampler = create_sampler("tempering", replicas=2)
    found = search(scorer("ebo"), vary, sampler, 8, images, block=4, fast=True)
    assert len(found) == 6 and (found.scores <= found.clean).all() and found.notes == ()


def test_a_gradient_search_goes_down_through_variation_and_network(scorer, images):
    for name, variation in (("pgd", "linf"), ("pgd", "color"), ("langevin", "linf")):
        vary = create_variation(variation, image_shape=(3, 16, 16))
        found = search(scorer("ebo"), vary, create_sampler(name, step=0.1), 15, images, energy=Standardised(0, 0.01))
        assert (found.scores < found.clean).all(), (name, variation)
    with pytest.raises(DetectorError, match="pgd follows gradients, and the score of .*gram has none"):
        search(scorer("gram"), vary, create_sampler("pgd"), 4, images)


def test_a_generator_draws_in_bf16_and_is_scored_again_in_float32(scorer, forgotten):
    torch.manual_seed(0)
    gan = GanVariation(StyleGenerator(GeneratorShape(size=16, latent=8, width=8)))
    made = scorer("ebo")
    points = gan.domain.draw(6, torch.Generator().manual_seed(1))
    fast = FastPipeline(made, gan, 8)
    with torch.no_grad():
        quick, exact = fast(points, None), made.score_tensor(gan(points))
    assert fast.notes == ()
    assert close(quick, exact)
    with torch.no_grad():
        drawn = fast._vary(points.repeat(2, 1)[:8], None)[:6]
    assert (drawn - made.pixels(gan(points))).abs().max() > 0, "drawn in float32: the generator would be the bottleneck"
    found = search(made, gan, create_sampler("mh"), 3, chains=6, fast=True)
    assert torch.allclose(found.scores, made.score_tensor(gan(found.points)).double(), atol=1e-6)
