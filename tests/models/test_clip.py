"""Gradients where values lie exactly at the end of a range: what searches start from."""

import numpy as np
import pytest
import torch

from oodscope.generation.search.energy import NormalScores
from oodscope.generation.variations.registry import create_variation
from oodscope.models.classifier.clip import clip


def slope(function, values):
    leaf = values.clone().requires_grad_()
    return torch.autograd.grad(function(leaf).sum(), leaf)[0]


def test_the_closed_range_has_the_derivative_one():
    values = torch.tensor([-0.1, 0.0, 0.4, 1.0, 1.1])
    assert torch.equal(clip(values, 0, 1), torch.tensor([0.0, 0.0, 0.4, 1.0, 1.0]))
    assert slope(lambda leaf: clip(leaf, 0, 1), values).tolist() == [0, 1, 1, 1, 0]


def test_an_energy_has_a_slope_at_every_score_of_its_reference():
    """The source images of an attack are in the reference, so every chain starts at such a score."""
    reference = np.random.default_rng(0).normal(size=40)
    energy = NormalScores(reference)
    at = torch.from_numpy(energy.values)
    pieces = np.diff(energy.energies) / np.diff(energy.values)
    assert slope(energy.on(torch.device("cpu")), at).numpy() == pytest.approx([pieces[0], *pieces])


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_black_and_white_pixels_can_be_moved(value):
    variation = create_variation("linf", image_shape=(1, 2, 2))
    images = torch.full((1, 1, 2, 2), value)
    points = torch.full((1, variation.domain.dimension), 0.5)
    assert (slope(lambda leaf: variation(leaf, images), points) > 0).all()
