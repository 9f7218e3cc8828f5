"""PixelCNN++: what comes later is not seen, and probabilities are probabilities."""

import pytest
import torch

from oodscope.base.errors import ModelError
from oodscope.models.density.base import LEVELS
from oodscope.models.density.pixelcnn import PixelCNN, PixelCNNShape, log_bin, log_probability

LINE = torch.linspace(-1, 1, LEVELS, dtype=torch.float64)
SMALL = {"size": 8, "filters": 4, "blocks": 1, "resolutions": 2, "mixtures": 2}


def small(**settings):
    torch.manual_seed(0)
    return PixelCNN(PixelCNNShape(**{**SMALL, **settings})).double().eval()


def test_a_mixture_of_discretised_logistics_by_hand():
    described = torch.tensor([0.2, -0.4, 1.0, -0.5, 0.1, 0.8, -2.0, -4.0, -1.0], dtype=torch.float64)
    values = LINE.reshape(-1, 1, 1, 1)
    found = log_probability(values, described.reshape(1, -1, 1, 1).expand(LEVELS, -1, -1, -1), 3).exp().flatten()
    assert found.sum().item() == pytest.approx(1, abs=1e-12)
    assert found[[0, 128, 255]].tolist() == pytest.approx([0.011046702, 0.001842495, 0.218066950], abs=1e-9)
    assert -(found * found.log2()).sum().item() == pytest.approx(6.784217, abs=1e-6)


@pytest.mark.parametrize("log_scale", [-7.0, -3.0, 2.0])
@pytest.mark.parametrize("mean", [-5.0, 0.013, 40.0])
def test_the_bins_of_any_logistic_sum_to_one(mean, log_scale):
    """Nothing cancels where a logistic is narrow, or far outside of the box."""
    place = torch.full_like(LINE, mean), torch.full_like(LINE, log_scale)
    assert log_bin(LINE, *place).exp().sum().item() == pytest.approx(1, abs=1e-11)
    assert torch.isfinite(log_bin(LINE, *place)).all()


def test_two_channels_together_sum_to_one():
    """The second channel's mean moves with the first: a joint probability, not two."""
    described = torch.randn(1, 2 * (1 + 4 + 1), 1, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pairs = torch.cartesian_prod(LINE, LINE)[:, :, None, None]
    found = log_probability(pairs, described.expand(len(pairs), -1, -1, -1), 2).exp()
    assert found.sum().item() == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("resolutions", [1, 2])
def test_no_output_sees_its_own_or_a_later_pixel(resolutions):
    model, image = small(resolutions=resolutions), torch.rand(1, 3, 8, 8, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda each: model.describe(2 * each - 1)[0].sum(0), image)
    seen = jacobian.abs().sum(dim=(2, 3)).flatten(0, 1).flatten(1)
    assert float(seen.triu().max()) == 0, "exact zeros, at the pixel itself too"
    assert (seen[-1] > 0).sum() > 40, "and most earlier ones are seen"


def test_a_changed_pixel_changes_no_earlier_probability():
    model = small()
    image = torch.randint(LEVELS, (1, 3, 8, 8), generator=torch.Generator().manual_seed(0)).double() / 255
    other = image.clone()
    other[0, 1, 4, 3] = 1 - other[0, 1, 4, 3]
    maps = [
        log_probability(2 * each - 1, model.describe(2 * each - 1), 2)[0].detach().flatten() for each in (image, other)
    ]
    changed = (maps[0] != maps[1]).nonzero().flatten()
    assert int(changed.min()) == 4 * 8 + 3


def test_uniform_noise_costs_eight_bits_at_least():
    noise = torch.randint(LEVELS, (256, 3, 8, 8), generator=torch.Generator().manual_seed(0)).double() / 255
    with torch.no_grad():
        assert float(small()(noise).mean()) >= 8
        assert float(small(channels=1)(noise[:, :1]).mean()) >= 8


def test_bad_sizes_and_channels():
    with pytest.raises(ModelError, match="a PixelCNN of 3 resolutions halves its images 2 times.*halved 1 times"):
        PixelCNN(PixelCNNShape(size=10))
    with pytest.raises(ModelError, match="pixelcnn: its network was trained on colour images"):
        small()(torch.rand(1, 1, 8, 8).double())
