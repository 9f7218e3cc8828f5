"""A generator as a variation: what it promises a search, and the generators it refuses."""

import logging

import pytest
import torch
from torch import nn

from oodscope.base.errors import ModelError
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.search.search import search
from oodscope.generation.variations.domain import Box, Sphere
from oodscope.generation.variations.gan import GanVariation
from oodscope.models.generators.biggan import BigGanGenerator, BigGanShape
from oodscope.models.generators.published import ClassVectors
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator, sides


class Own(nn.Module):
    """A generator of somebody else: one linear layer and a squashing function."""

    def __init__(self, squash=torch.tanh, dimension=5):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(dimension, 2 * 4 * 4)
        self.squash = squash

    def forward(self, latents):
        return self.squash(4 * self.layer(latents)).view(-1, 2, 4, 4)


@pytest.fixture
def styled() -> StyleGenerator:
    torch.manual_seed(0)
    generator = StyleGenerator(GeneratorShape(size=8, width=4))
    generator.settle_mean_style(torch.randn(64, 64))
    return generator


def test_our_own_generator_on_the_sphere(styled):
    variation = GanVariation(styled)
    assert variation.domain == Sphere(64)
    assert variation.identity is None and variation.parameters == () and not variation.conditional
    assert variation.size == (3, 8, 8)
    points = variation.domain.draw(6, torch.Generator().manual_seed(1))
    drawn = variation(points)
    with torch.no_grad():
        torch.testing.assert_close(drawn, ((styled(points) + 1) / 2).clamp(0, 1))
    assert float(drawn.min()) >= 0 and float(drawn.max()) <= 1 and drawn.dtype == torch.float32


def test_gradients_reach_the_latents_and_nothing_else(styled):
    variation = GanVariation(styled)
    points = variation.domain.draw(2, torch.Generator().manual_seed(1)).requires_grad_(True)
    variation(points).mean().backward()
    assert float(points.grad.abs().sum()) > 0
    assert all(weight.grad is None for weight in variation.generator.parameters())
    assert all(weight.requires_grad for weight in styled.parameters()), "the caller's generator is left as it was"


def test_truncation_zero_is_one_image(styled):
    drawn = GanVariation(styled, truncation=0.0)(torch.randn(4, 64))
    torch.testing.assert_close(drawn, drawn[:1].expand_as(drawn))


@pytest.mark.parametrize("truncation", [-0.1, float("nan")])
def test_impossible_truncation(styled, truncation):
    with pytest.raises(ModelError, match="truncation must be"):
        GanVariation(styled, truncation)


def test_a_generator_of_ones_own_in_a_box():
    variation = GanVariation(Own(torch.sigmoid), dimension=5, domain="box", output_range=(0, 1), latent_scale=3.0)
    assert variation.domain == Box(5) and variation.size == (2, 4, 4)
    points = torch.rand(3, 5)
    torch.testing.assert_close(variation(points), Own(torch.sigmoid)(3 * points).detach())


def test_range_is_brought_to_unit_pixels():
    ranged = GanVariation(Own(lambda x: 100 + 50 * torch.tanh(x)), dimension=5, output_range=(50, 150))
    points = torch.randn(4, 5)
    torch.testing.assert_close(ranged(points), (Own()(points).detach() + 1) / 2)


def test_a_small_overshoot_is_clamped():
    variation = GanVariation(Own(lambda x: 1.2 * torch.tanh(x)), dimension=5)
    drawn = variation(10 * torch.randn(16, 5))
    assert float(drawn.min()) == 0 and float(drawn.max()) == 1


class Noisy(Own):
    def forward(self, latents):
        return super().forward(latents) + 0.01 * torch.randn(len(latents), 2, 4, 4)


class Mingled(Own):
    def forward(self, latents):
        return super().forward(latents - latents.mean(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("generator", "options", "said"),
    [
        (Own(), {}, "say how long its latents are: dimension="),
        (Own(), {"dimension": 4}, r"cannot draw latents of shape \[8, 4\]"),
        (Own(lambda x: x.sum(1)), {"dimension": 5}, "cannot draw|needed: images"),
        (nn.Linear(5, 3), {"dimension": 5}, r"turns 8 latents into \[8, 3\]; needed: images \[8, C, H, W\]"),
        (Own(lambda x: x / 0), {"dimension": 5}, "NaN or infinite"),
        (Own(), {"dimension": 5, "output_range": (0, 1)}, r"from -0\.\d+ to 0\.\d+, outside of output_range=\(0, 1\)"),
        (Own(lambda x: 255 * torch.sigmoid(x)), {"dimension": 5}, "set output_range to the values of its black"),
        (Noisy(), {"dimension": 5}, "switch noise inputs to constants"),
        (Mingled(), {"dimension": 5}, "other latents of its batch"),
        (Own(), {"dimension": 5, "label": 2}, "label 2 is not one of the generator's no classes"),
        (Own(), {"dimension": 5, "output_range": (1, -1)}, "black < white"),
        (Own(), {"dimension": 5, "domain": "ball"}, "'sphere' or 'box'"),
    ],
)
def test_generators_that_a_search_cannot_use(generator, options, said):
    with pytest.raises(ModelError, match=said):
        GanVariation(generator, **options)


def test_another_dimension_than_the_generators_own(styled):
    with pytest.raises(ModelError, match="dimension is 32, but the generator's latents have 64"):
        GanVariation(styled, dimension=32)


def test_a_range_that_looks_wrong_is_mentioned(caplog):
    with caplog.at_level(logging.WARNING):
        GanVariation(Own(torch.sigmoid), dimension=5)
        assert "if its black is 0, set output_range" in caplog.text
        caplog.clear()
        GanVariation(Own(), dimension=5)
    assert not caplog.records


def test_evaluation_mode_whatever_the_module_was_in():
    generator = nn.Sequential(Own(), nn.Dropout(0.5)).train()
    drawn = GanVariation(generator, dimension=5)(torch.ones(1, 5))
    assert generator.training and float((drawn == 0.5).float().mean()) == 0, "dropout would leave grey holes"


def test_description_tells_generators_apart(styled):
    told = GanVariation(styled, truncation=0.7).describe()
    assert told["name"] == "gan" and told["truncation"] == 0.7 and told["dimension"] == 64
    assert told == GanVariation(styled, truncation=0.7).to("cpu").describe()
    torch.manual_seed(1)
    assert told["weights"] != GanVariation(StyleGenerator(GeneratorShape(size=8, width=4))).describe()["weights"]


@pytest.mark.parametrize("size", [64, 128])
def test_larger_generators_draw_and_are_searched(size):
    """Architecture and loader alone: nothing is claimed about what they draw."""
    torch.manual_seed(0)
    levels = len(sides(size))
    gan = GanVariation(BigGanGenerator(BigGanShape(size=size, classes=2, latent=2 * levels, width=2, embedding=4)))
    assert gan.size == (3, size, size)
    scorer = FunctionScorer(lambda images: images.mean((1, 2, 3)))
    assert len(search(scorer, gan, MetropolisHastings(), 2, chains=2).scores) == 2


def test_a_published_generator_of_class_vectors_is_asked_by_number():
    """The form of BigGAN's published weights: latents, class vectors, truncation."""

    class Published(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.linspace(-1, 1, 5))

        def forward(self, z, class_label, truncation):
            assert class_label.shape == (len(z), 5) and truncation == 0.4
            return (class_label @ self.weight)[:, None, None, None].expand(-1, 3, 4, 4) * 0.9

    gan = GanVariation(ClassVectors(Published(), classes=5, latent=7, truncation=0.4))
    assert (gan.domain.dimension, gan.classes) == (8, 5)
    point = torch.cat([gan.domain.parts[0].draw(1, torch.Generator().manual_seed(0)), torch.tensor([[0.99]])], dim=1)
    assert float(gan(point).mean()) == pytest.approx(0.95, abs=1e-5)
    with pytest.raises(ModelError, match="2 classes or more"):
        ClassVectors(Published(), classes=1, latent=7)
