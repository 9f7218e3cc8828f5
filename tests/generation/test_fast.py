"""The fast road: bf16, compiled, proved to be the same network, and judged again in float32."""

import pytest
import torch

import oodscope as oods
from oodscope.generation import compiling
from oodscope.generation.fast import FastPipeline
from oodscope.generation.variations import create_variation

from ..tiny import imageset

SIDE = oods.Preprocess(size=16)


@pytest.fixture(scope="module")
def scorer():
    torch.manual_seed(0)
    clf = oods.Classifier(oods.create_model("small_cnn", num_classes=4)[0], SIDE, device="cpu")

    def make(name):
        return oods.fit_scorer(clf, name, imageset("held out", 60, 2), imageset("train", 80, 1), target=0.1)

    return make


@pytest.fixture
def images():
    return torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(3))


@pytest.fixture(autouse=True)
def traced(monkeypatch):
    """Whole graphs as on a GPU, run by torch itself: a break in a graph is an error, and no compiler is needed."""
    compiling._KEPT.clear()
    torch._dynamo.reset()
    monkeypatch.setattr(
        compiling,
        "compile_for_one_size",
        lambda function: torch.compile(function, backend="eager", fullgraph=True, dynamic=False),
    )
    yield
    compiling._KEPT.clear()


@pytest.mark.parametrize("variation", ["affine", "color"])
@pytest.mark.parametrize("name", ["ebo", "knn", "vim", "react"])
def test_bf16_says_almost_what_float32_says(scorer, images, name, variation):
    made, vary = scorer(name), create_variation(variation, image_shape=(3, 16, 16))
    points = torch.rand(len(images), vary.domain.dimension, generator=torch.Generator().manual_seed(4))
    fast = FastPipeline(made, vary, batch=8)
    with torch.no_grad():
        quick, exact = fast(points, images), made.score_tensor(vary(points, images))
    assert fast.notes == ()
    assert quick.shape == exact.shape == (6,) and not torch.equal(quick, exact)
    assert torch.allclose(quick, exact, rtol=0.05, atol=0.05 * float(exact.std()))
