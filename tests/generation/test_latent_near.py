"""Latent search for near outliers: its energy, that it falls, and that it repeats itself."""

import json

import pytest
import torch
from torch import nn

from oodscope.base.errors import DataError
from oodscope.generation.distances.perceptual import FeatureDistance
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.near.recipe import LAMBDAS
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.samplers.projected_gradient import ProjectedGradient
from oodscope.generation.search.search import search
from oodscope.generation.sets.latent_near import NearEnergy, latent_near
from oodscope.generation.variations.gan import GanVariation
from tests import tiny
from tests.generation.toys import Shift

pytestmark = pytest.mark.slow


class Painter(nn.Module):
    """A linear generator of 8x8 pictures."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.layer = nn.Linear(6, 192)

    def forward(self, latents):
        return torch.tanh(2 * self.layer(latents)).view(-1, 3, 8, 8)


@pytest.fixture(scope="module")
def world():
    members = [tiny.classifier(seed, name=f"member {seed}") for seed in range(3)]
    for each in members:  # untrained members agree; larger logits make them disagree
        each.model.head.weight.data *= 20
    pixels, labels = tiny.images(40, 1)
    known = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    variation = GanVariation(Painter(), dimension=6)
    return variation, FeatureDistance(members[0]), EnsembleInformation(members), known, torch.from_numpy(labels)


def test_the_energy_is_that_of_the_nearest_reference(world):
    _, perceptual, semantic, known, _ = world
    references, images = known[:3].float() / 255, torch.rand(4, 3, 8, 8)
    energy = NearEnergy(perceptual, semantic, references, lambda_semantic=1.5, lambda_perceptual=0.7)
    with torch.no_grad():
        found = energy.score_tensor(images)
        for image, value in zip(images, found):
            near = min(float(perceptual(one[None], image[None])) for one in references)
            assert float(value) == pytest.approx(0.7 * near - 1.5 * float(semantic(image[None])), abs=1e-5)


def test_the_fingerprint_knows_all_that_decides(world):
    _, perceptual, semantic, known, _ = world
    references = known[:2].float() / 255
    same = [NearEnergy(perceptual, semantic, references, 1.0).fingerprint for _ in range(2)]
    others = [
        NearEnergy(perceptual, semantic, references, 1.5),
        NearEnergy(perceptual, semantic, references, 1.0, 2.0),
        NearEnergy(perceptual, semantic, known[1:3].float() / 255, 1.0),
        NearEnergy(FeatureDistance(semantic.members[1]), semantic, references, 1.0),
        NearEnergy(perceptual, EnsembleInformation(semantic.members[:2]), references, 1.0),
    ]
    assert same[0] == same[1]
    assert len({same[0], *(each.fingerprint for each in others)}) == 6


@pytest.mark.parametrize("sampler", [MetropolisHastings(temperature=0.1), ProjectedGradient()])
def test_a_search_lowers_it(world, sampler):
    variation, perceptual, semantic, known, _ = world
    energy = NearEnergy(perceptual, semantic, known[:2].float() / 255, 1.0)
    start = variation.domain.draw(32, torch.Generator().manual_seed(9))
    with torch.no_grad():
        before = float(energy.score_tensor(variation(start)).mean())
    found = search(energy, variation, sampler, 40, chains=32, seed=0)
    assert float(found.scores.mean()) < before - 0.05


def test_larger_weights_bring_more_information(world):
    variation, perceptual, semantic, known, labels = world
    means = []
    for weight in (0.0, 5.0):
        images, _ = latent_near(
            variation, perceptual, semantic, known, labels, 24, lambdas=[weight], budget=40, chains=24
        )
        means.append(float(semantic.of_pixels((images * 255).round().byte()).mean()))
    assert means[1] > means[0] + 0.02


def test_rounds_are_kept_and_repeat_themselves(world, tmp_path):
    variation, perceptual, semantic, known, labels = world
    options = {"budget": 5, "chains": 4, "seed": 3}
    images, classes = latent_near(variation, perceptual, semantic, known, labels, 10, folder=tmp_path, **options)
    again, _ = latent_near(variation, perceptual, semantic, known, labels, 10, **options)
    other, _ = latent_near(variation, perceptual, semantic, known, labels, 10, **{**options, "seed": 4})
    assert images.shape == (10, 3, 8, 8) and images.min() >= 0 and images.max() <= 1
    assert torch.equal(images, again) and not torch.equal(images, other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["round-0000", "round-0001", "round-0002"]
    resumed, kept = latent_near(variation, perceptual, semantic, known, labels, 10, folder=tmp_path, **options)
    assert torch.equal(images, resumed) and torch.equal(classes, kept)
    assert set(classes.tolist()) <= {0, 1, 2, 3}


def test_an_image_has_the_class_of_the_nearest_reference(world):
    variation, perceptual, semantic, _, _ = world
    opposite = torch.nn.functional.normalize(torch.ones(1, 6), dim=1) * torch.tensor([[1.0], [-1.0]])
    with torch.no_grad():
        drawn = (variation(opposite) * 255).round().byte()
    labels = torch.tensor([3, 1])
    images, classes = latent_near(
        variation, perceptual, semantic, drawn, labels, 16, lambdas=[0.0], budget=1, chains=16
    )
    with torch.no_grad():
        apart = [perceptual((one.float() / 255).expand_as(images), images) for one in drawn]
    assert torch.equal(classes, torch.where(apart[0] < apart[1], labels[0], labels[1]))
    assert set(classes.tolist()) == {1, 3}


def test_every_round_has_its_weight_references_and_seed(world, tmp_path, monkeypatch):
    variation, perceptual, semantic, known, labels = world
    seen = []

    class Watched(NearEnergy):
        def __init__(self, *args):
            super().__init__(*args)
            seen.append((self.lambda_semantic, self.lambda_perceptual, self.references))

    monkeypatch.setattr("oodscope.generation.sets.latent_near.NearEnergy", Watched)
    options = {"lambdas": (1.0, 2.0), "lambda_perceptual": 0.5, "budget": 2, "chains": 2}
    for seed in (0, 1):
        folder = tmp_path / str(seed)
        latent_near(variation, perceptual, semantic, known, labels, 6, seed=seed, folder=folder, **options)
    assert [each[:2] for each in seen] == [(1.0, 0.5), (2.0, 0.5), (1.0, 0.5)] * 2
    assert len({each[2].numpy().tobytes() for each in seen}) == 6 and all(len(each[2]) == 8 for each in seen)
    assert len({json.loads(path.read_text())["seed"] for path in tmp_path.glob("*/*/search.json")}) == 6


def test_the_grid_of_the_paper():
    assert len(LAMBDAS) == 11 and LAMBDAS[0] == 0.5 and LAMBDAS[-1] == 3.0


def test_only_generators_are_searched(world):
    _, perceptual, semantic, known, labels = world
    with pytest.raises(DataError, match="drawings of a generator"):
        latent_near(Shift(), perceptual, semantic, known, labels, 4)
