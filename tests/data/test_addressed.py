"""An image owns its random numbers, and they are random."""

import numpy as np
import pytest
import torch
from scipy import stats

from oodscope.data.addressed import Draws, _mix

MASK = 2**64 - 1


def splitmix(state):
    """SplitMix64's output function in Python integers, as published."""
    z = state & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_the_mixing_function_is_splitmix64():
    states = [0, 1, -1, 2**63 - 1, -(2**63), 0x9E3779B97F4A7C15 - 2**64, 123456789012345]
    mixed = _mix(torch.tensor(states)).tolist()
    assert [value & MASK for value in mixed] == [splitmix(state) for state in states]


def test_the_first_number_of_the_published_stream():
    # a stream seeded with 0 begins with this number (Vigna's reference implementation)
    assert _mix(torch.tensor([0x9E3779B97F4A7C15 - 2**64])).item() & MASK == 0xE220A8397B1DCDAF


def test_uniform_and_normal():
    draws = Draws(0, "x", torch.arange(40))
    uniform, normal = draws.uniform("u", 50, 50).numpy(), draws.normal("n", 50, 50).numpy()
    assert uniform.dtype == np.float64
    assert 0 < uniform.min() < uniform.max() < 1
    assert stats.kstest(uniform.flatten(), "uniform").pvalue > 1e-3
    assert stats.kstest(normal.flatten(), "norm").pvalue > 1e-3


@pytest.mark.parametrize("change", ["seed", "corruption", "key", "purpose"])
def test_streams_are_independent(change):
    first = Draws(0, "fog", torch.tensor([1])).uniform("a", 20_000)
    second = {
        "seed": lambda: Draws(1, "fog", torch.tensor([1])).uniform("a", 20_000),
        "corruption": lambda: Draws(0, "snow", torch.tensor([1])).uniform("a", 20_000),
        "key": lambda: Draws(0, "fog", torch.tensor([2])).uniform("a", 20_000),
        "purpose": lambda: Draws(0, "fog", torch.tensor([1])).uniform("b", 20_000),
    }[change]()
    assert abs(np.corrcoef(first[0], second[0])[0, 1]) < 0.03
    for shift in (1, 2, 32):
        assert abs(np.corrcoef(first[0, shift:], second[0, :-shift])[0, 1]) < 0.03
        assert abs(np.corrcoef(first[0, shift:], first[0, :-shift])[0, 1]) < 0.03


def test_a_longer_draw_begins_with_the_shorter():
    draws = Draws(0, "x", torch.tensor([5, 9]))
    assert torch.equal(draws.uniform("a", 10), draws.uniform("a", 30)[:, :10])
    assert torch.equal(draws.uniform("a", 10)[1], Draws(0, "x", torch.tensor([9])).uniform("a", 10)[0])
