"""Where parameters live: a step stays inside, and a walk without a goal keeps the uniform law."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from oodscope.generation.variations.domain import Box, Sphere

inside = st.floats(0, 1, width=32)
anything = st.floats(-50, 50, width=32)


@given(inside, anything)
def test_a_reflected_step_stays_in_the_box_and_can_be_taken_back(start, step):
    """A step of the same length leads back, so that a symmetric law of steps is a symmetric law of moves."""
    box, one = Box(1), torch.tensor([[start]], dtype=torch.float64)
    there = box.move(one, torch.full_like(one, step))
    assert 0 <= there.item() <= 1
    back = [box.move(there, torch.full_like(one, sign * step)).item() for sign in (1, -1)]
    assert min(abs(each - start) for each in back) < 1e-9


@pytest.mark.parametrize(("step", "lands"), [(0.2, 0.9), (0.5, 0.8), (-0.9, 0.2), (1.4, 0.1), (-2.7, 0.0), (2.0, 0.7)])
def test_mirrors_by_hand(step, lands):
    moved = Box(1).move(torch.tensor([[0.7]]), torch.tensor([[step]]))
    assert moved.item() == pytest.approx(lands, abs=1e-6)


@given(inside, anything)
def test_clamp_stops_at_the_wall(start, step):
    moved = Box(1).move(torch.tensor([[start]]), torch.tensor([[step]]), "clamp").item()
    assert moved == pytest.approx(min(max(start + step, 0), 1), abs=1e-5)


@pytest.mark.parametrize("size", [0.1, 1.0])
def test_uniform_stays_uniform_when_reflected_but_not_when_clamped(size):
    draw = torch.Generator().manual_seed(1)
    box = Box(2)
    start = box.draw(20_000, draw)
    ends = {}
    for boundary in ("reflect", "clamp"):
        points = start
        for _ in range(10):
            points = box.move(points, size * torch.randn(points.shape, generator=draw), boundary)
        ends[boundary] = points
    for coordinate in range(2):
        assert kstest(start[:, coordinate].numpy(), "uniform").pvalue > 1e-3
        assert kstest(ends["reflect"][:, coordinate].numpy(), "uniform").pvalue > 1e-3
        assert kstest(ends["clamp"][:, coordinate].numpy(), "uniform").pvalue < 1e-9


def test_the_sphere_is_drawn_and_walked_evenly():
    """In three dimensions each coordinate of a uniform point on the sphere is uniform from -1 to 1 (Archimedes)."""
    draw = torch.Generator().manual_seed(2)
    sphere = Sphere(3)
    points = sphere.draw(20_000, draw)
    for _ in range(10):
        points = sphere.move(points, 0.3 * torch.randn(points.shape, generator=draw))
        assert (points.norm(dim=1) - 1).abs().max() < 1e-6
    for coordinate in range(3):
        assert kstest((points[:, coordinate].numpy() + 1) / 2, "uniform").pvalue > 1e-3
    assert (points.square().mean(dim=0) - 1 / 3).abs().max() < 0.01


def test_draws_follow_the_generator():
    for domain in (Box(4), Sphere(4)):
        one, two = (domain.draw(5, torch.Generator().manual_seed(7)) for _ in range(2))
        assert one.shape == (5, 4)
        assert torch.equal(one, two)
        assert not torch.equal(one, domain.draw(5, torch.Generator().manual_seed(8)))
