"""Autoencoders, their chains, and files of all density models."""

import math

import pytest
import torch
from torch import nn

from oodscope.base.errors import ModelError, StorageError
from oodscope.models.density.autoencoder import Autoencoder, AutoencoderShape
from oodscope.models.density.glow import GlowShape
from oodscope.models.density.langevin import langevin, unit_box, unit_sphere
from oodscope.models.density.nae import NAE, NAEShape
from oodscope.models.density.pixelcnn import PixelCNNShape
from oodscope.models.density.saved import (
    build_density,
    density_file,
    load_density,
    read_density_record,
    save_density,
)
from oodscope.training.methods.nae import contrast

SHAPES = [
    AutoencoderShape(size=8, width=4, code=3),
    GlowShape(size=8, steps=1, width=4),
    PixelCNNShape(size=8, filters=4, blocks=1, mixtures=2),
    NAEShape(size=8, width=4, code=3, memory=8),
]


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kind)
def test_a_file_holds_the_model_and_a_score_does_not_depend_on_the_batch(shape, tmp_path):
    torch.manual_seed(0)
    model = build_density(shape).eval()
    save_density(model, tmp_path / "density.safetensors", {"seed": 0})
    again = load_density(tmp_path)
    images = torch.rand(9, 3, 8, 8)
    with torch.no_grad():
        whole = model(images)
        assert torch.equal(again(images), whole) and again.fingerprint == model.fingerprint
        torch.testing.assert_close(torch.cat([model(each[None]) for each in images]), whole, rtol=1e-5, atol=1e-6)
    assert not any(weight.requires_grad for weight in again.parameters())
    assert read_density_record(tmp_path).training == {"seed": 0}


def test_a_damaged_or_foreign_file_is_refused(tmp_path):
    path = tmp_path / "density.safetensors"
    with pytest.raises(StorageError, match="no such file; a density model is the folder or file"):
        load_density(tmp_path)
    save_density(build_density(SHAPES[0]), path, {})
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(StorageError, match="damaged: its content does not match its checksum.*train again"):
        load_density(tmp_path)
    assert density_file(tmp_path) == path == density_file(path)


def test_a_linear_autoencoder_scores_what_principal_components_leave():
    torch.manual_seed(0)
    model = Autoencoder(AutoencoderShape(size=8, code=5)).double().eval()
    rows = torch.linalg.qr(torch.randn(192, 5, dtype=torch.float64)).Q.T
    down, up = nn.Linear(192, 5, bias=False).double(), nn.Linear(5, 192, bias=False).double()
    down.weight.data, up.weight.data = rows, rows.T.contiguous()
    model.encoder = nn.Sequential(nn.Flatten(), down)
    model.decoder = nn.Sequential(up, nn.Unflatten(1, (3, 8, 8)))
    images = torch.rand(6, 3, 8, 8, dtype=torch.float64)
    flat = images.flatten(1)
    left = (flat - flat @ rows.T @ rows).square().mean(dim=1)
    with torch.no_grad():
        torch.testing.assert_close(model(images), left)
        inside = (torch.rand(4, 5, dtype=torch.float64) @ rows).reshape(4, 3, 8, 8)
        assert float(model(inside).max()) < 1e-25, "a fixed point is reconstructed"


def test_the_variance_of_an_unadjusted_chain():
    """On x^2/2 it is sigma^2 / (1 - (1 - lambda)^2) = 1.052632, not 1."""
    start = torch.zeros(40_000, 1, dtype=torch.float64)
    found = langevin(
        lambda x: x.square().sum(1) / 2, start, steps=120, step=0.1, noise=lambda _: math.sqrt(0.2), draws=draws()
    )
    assert found.var().item() == pytest.approx(1.052632, abs=4 * 1.052632 * math.sqrt(2 / 40_000))


def test_chains_stay_in_the_box_and_on_the_sphere():
    model = NAE(SHAPES[3])
    latents = langevin(
        lambda z: model.score(model.decode(z)), unit_sphere(torch.randn(6, 3)), steps=3, step=1.0,
        noise=lambda _: 0.5, draws=draws(), project=unit_sphere,
    )  # fmt: skip
    assert torch.allclose(latents.norm(dim=1), torch.ones(6), atol=1e-6)
    pixels = langevin(
        model.score, torch.rand(6, 3, 8, 8), steps=3, step=10.0, noise=lambda _: 0.5, draws=draws(), project=unit_box
    )
    assert float(pixels.min()) >= 0 and float(pixels.max()) <= 1 and not pixels.requires_grad


def test_a_chain_that_leaves_its_box_is_refused():
    with pytest.raises(ModelError, match=r"starts outside of its box: pixels must lie in \[0, 1\]"):
        langevin(lambda x: x.sum(1), torch.full((1, 2), 1.5), steps=1, step=1, noise=lambda _: 0.0, draws=draws(),
                 project=unit_box)  # fmt: skip
    with pytest.raises(ModelError, match="left every box after 60 steps of 100.*shorter steps"):
        langevin(lambda x: x.pow(4).sum(1), torch.ones(1, 2), steps=60, step=100.0, noise=lambda _: 0.0, draws=draws())


def test_gradients_are_cut_row_by_row_of_the_last_axis():
    """A constant gradient of .001: rows of 32 have length .00566 and stay, a whole image would be .0554 long."""
    start = torch.full((1, 3, 32, 32), 0.5)
    moved = langevin(lambda x: 0.001 * x.sum((1, 2, 3)), start, steps=1, step=1.0, noise=lambda _: 0.0, draws=draws(),
                     longest=0.01)  # fmt: skip
    torch.testing.assert_close(start - moved, torch.full_like(start, 0.001), rtol=1e-3, atol=0)
    moved = langevin(lambda x: x.sum((1, 2, 3)), start, steps=1, step=1.0, noise=lambda _: 0.0, draws=draws(),
                     longest=0.01)  # fmt: skip
    torch.testing.assert_close((start - moved).norm(dim=-1), torch.full((1, 3, 32), 0.01), rtol=1e-3, atol=0)


def test_the_gradient_of_the_loss_is_that_of_the_likelihood():
    """Three states of energy theta f: d(-log p_1)/d theta = f_1 - E_p f = .302646."""
    states, theta = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
    theta.requires_grad_(True)
    share = (-theta.detach() * states).softmax(0)
    assert share.tolist() == pytest.approx([0.546549, 0.331499, 0.121952], abs=1e-6)
    samples = states.repeat_interleave((share * 1_000_000).round().long())
    (theta * states[1] + contrast(theta * samples, gamma=0.0)).backward()
    assert theta.grad.item() == pytest.approx(0.302646, abs=1e-5)


def test_the_memory_of_chains_fills_then_replaces():
    model = NAE(SHAPES[3])
    model.remember(unit_sphere(torch.randn(6, 3)), draws())
    assert int(model.filled) == 6 and float(model.replay[6:].abs().sum()) == 0
    added = unit_sphere(torch.randn(6, 3))
    model.remember(added, draws())
    assert int(model.filled) == 8 and torch.equal(model.replay[6:], added[:2])
    starts = model.recalled(50, 0.0, draws())
    assert all(any(torch.equal(start, kept) for kept in model.replay) for start in starts)
    fresh = model.recalled(50, 1.0, draws())
    assert not any(torch.equal(start, kept) for start in fresh for kept in model.replay)
