"""On a CUDA device: no step waits, the compiled road agrees with float32, shards are bit-equal."""

import pytest
import torch

import oodscope as oods
from oodscope.deploy.scorer import Scorer
from oodscope.generation.samplers.registry import SAMPLERS, create_sampler
from oodscope.generation.search.energy import Standardised, rank_probit
from oodscope.generation.search.fast import FastPipeline
from oodscope.generation.search.search import search
from oodscope.generation.search.target import Noise, Target, Visits
from oodscope.generation.variations.registry import create_variation
from tests.generation.toys import Pixels, energy

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SHAPE = (3, 32, 32)


@pytest.fixture(scope="module")
def scorer():
    torch.manual_seed(0)
    clf = oods.Classifier(oods.create_model("small_cnn", num_classes=4)[0], oods.Preprocess(size=32), device="cuda")
    return Scorer(clf, oods.create_detector("ebo"))


@pytest.mark.parametrize("name", SAMPLERS)
def test_no_step_waits_for_the_device(scorer, name):
    """Gradients make passes of autograd, which wait for nothing either."""
    device, sampler = torch.device("cuda"), create_sampler(name)
    variation = create_variation("linf", image_shape=SHAPE)
    images = torch.rand(8, *SHAPE, device=device)
    visits = Visits(8, variation.domain.dimension, [3, 50], device)
    pipeline = FastPipeline(scorer, variation, 8 * sampler.replicas)

    def plain(points, source):
        return scorer.score_tensor(variation(points, source))

    target = Target(
        plain if sampler.gradient else pipeline,
        images,
        rank_probit(torch.randn(50)).on(device),
        variation.domain,
        Noise(0, 0, device),
        visits,
        sampler.replicas,
        variation.epsilon,
    )
    with torch.no_grad():
        state = sampler.begin(target, torch.full((8, variation.domain.dimension), 0.5, device=device))
        visits.begin()
        for number in range(2):
            sampler.move(target, state, number)
        torch.cuda.set_sync_debug_mode("error")
        try:
            for number in range(2, 25):
                sampler.move(target, state, number)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert visits.at_budgets().isfinite().all()


@pytest.mark.parametrize("variation", ["affine", "color"])
def test_the_compiled_search_agrees_with_float32_and_over_shards(scorer, variation):
    images = torch.rand(50, *SHAPE, generator=torch.Generator().manual_seed(1))
    vary = create_variation(variation, image_shape=SHAPE)
    options = {"energy": Standardised(0.0, 0.1), "block": 20}
    whole = search(scorer, vary, create_sampler("mh"), 60, images, **options)
    shard = search(scorer, vary, create_sampler("mh"), 60, images, blocks=[1], **options)
    assert whole.description["precision"] == "bf16" and whole.notes == ()
    assert torch.equal(shard.points, whole.points[20:40]) and torch.equal(shard.scores, whole.scores[20:40])
    assert (whole.scores <= whole.clean).all()
    assert float(whole.precision_gap.abs().max()) < 0.05 * float(whole.clean.abs().mean())


def test_the_law_is_the_same_on_the_device():
    slope = energy(lambda z: 3 * z[:, 0])
    slope.device = torch.device("cuda")
    found = search(slope, Pixels(), create_sampler("mh"), 150, chains=60_000, block=60_000)
    assert abs(float(found.last.mean()) - 0.28094) < 0.003
