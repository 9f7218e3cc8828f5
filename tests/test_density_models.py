"""The density models of the benchmarks: their likelihood is one, and their files hold them."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from density_models import (
    Flow,
    autoencoder_scorer,
    flow_scorer,
    load_density,
    save_density,
    train_autoencoder,
    train_flow,
)

TINY = {"couplings": 2, "width": 6, "levels": 2}


def smooth(count, side=8, seed=0):
    """Images with little detail, uint8."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(60, 200, (count, 2, 2, 3)).repeat(side // 2, 1).repeat(side // 2, 2)
    return (coarse + rng.integers(-6, 7, coarse.shape)).astype(np.uint8)


def tensor(images):
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


def test_log_density_follows_the_jacobian():
    """The flow as a function of 48 numbers: standard normal values and priors, and the determinant of its Jacobian."""
    torch.manual_seed(0)
    flow = Flow(side=4, couplings=3, width=5, levels=1).double()
    for weight in flow.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    values = torch.randn(2, 3, 4, 4).double()

    def last(given):
        made = torch.nn.functional.pixel_unshuffle(given[None], 2)
        for coupling in flow.levels[0]:
            made, _ = coupling(made)
        return made.flatten()

    for number, each in enumerate(values):
        jacobian = torch.autograd.functional.jacobian(last, each).reshape(48, 48)
        normal = -0.5 * last(each).square().sum().item() - 24 * math.log(2 * math.pi)
        expected = normal + torch.linalg.slogdet(jacobian).logabsdet.item()
        assert flow.log_density(values)[number].item() == pytest.approx(expected, abs=1e-3)


def test_a_flat_density_costs_eight_bits():
    """Values uniform over the 256 levels have 8 bits each; no flow may claim less on average."""
    torch.manual_seed(0)
    noise = np.random.default_rng(0).integers(0, 256, (256, 8, 8, 3)).astype(np.uint8)
    model = train_flow(noise, 0.0, "cpu", steps=10, **TINY)
    assert 7.99 < float(model.noisy(tensor(noise)).mean()) < 9.5


@pytest.mark.slow
@pytest.mark.parametrize(("train", "scorer"), [(train_autoencoder, autoencoder_scorer), (train_flow, flow_scorer)])
def test_trained_models_find_noise_odd_and_survive_their_file(tmp_path, train, scorer):
    settings = TINY if train is train_flow else {"width": 32, "code": 16}
    model = train(smooth(128), 0.0, "cpu", steps=40, **settings)
    noise = np.random.default_rng(1).integers(0, 256, (32, 8, 8, 3)).astype(np.uint8)
    usual, odd = (scorer(model).score_tensor(tensor(each)) for each in (smooth(32, seed=2), noise))
    assert float((odd[:, None] > usual).float().mean()) > 0.98
    save_density(model, tmp_path / "model.safetensors")
    again = load_density(tmp_path / "model.safetensors")
    # the trained one keeps its weights in another order, and sums round differently
    torch.testing.assert_close(scorer(again).score_tensor(tensor(noise)), odd)
