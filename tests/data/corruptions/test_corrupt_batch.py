"""What every corruption promises: identity at 0, independence of the batch, types, gradients, errors."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.data.corruptions.batch import _VALUES, corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.data.corruptions.severities import LADDERS, scale_for
from tests.data.corruptions.test_against_references import scene

NAMES = list(CORRUPTIONS)
IMAGES = torch.from_numpy(np.stack([scene(32, seed) for seed in range(6)])).permute(0, 3, 1, 2).contiguous()


@pytest.mark.parametrize("name", NAMES)
def test_severity_zero_is_the_image(name):
    assert torch.equal(corrupt_batch(IMAGES, name, 0), IMAGES)
    mixed = corrupt_batch(IMAGES, name, [0, 5, 0, 5, 0, 5])
    assert torch.equal(mixed[::2], IMAGES[::2])
    assert all(not torch.equal(mixed[row], IMAGES[row]) for row in (1, 3, 5))


@pytest.mark.parametrize("name", NAMES)
def test_an_image_does_not_see_its_neighbours(name, monkeypatch):
    """Every combination of severity, order, batch size and chunk gives the same bytes."""
    severities = [0.7, 1, 2.5, 3, 4.2, 5]
    whole = corrupt_batch(IMAGES, name, severities, seed=4)
    assert torch.equal(corrupt_batch(IMAGES, name, severities, seed=4), whole)
    order = [4, 0, 5, 2, 1, 3]
    shuffled = corrupt_batch(IMAGES[order], name, np.array(severities)[order], seed=4, keys=order)
    assert torch.equal(shuffled, whole[order])
    alone = [corrupt_batch(IMAGES[row : row + 1], name, severities[row], seed=4, keys=[row]) for row in range(6)]
    assert torch.equal(torch.cat(alone), whole)
    monkeypatch.setitem(_VALUES, "cpu", 2 * IMAGES[0].numel())
    assert torch.equal(corrupt_batch(IMAGES, name, severities, seed=4), whole)


@pytest.mark.parametrize("name", NAMES)
def test_another_process_gives_the_same_bytes(name, one_process):
    assert one_process[name] == corrupt_batch(IMAGES[:1] * 0 + 90, name, 3.4, seed=11, keys=[8]).sum().item()


@pytest.fixture(scope="module")
def one_process():
    script = (
        "import torch, json; from oodscope.data.corruptions.batch import corrupt_batch\n"
        "from oodscope.data.corruptions.catalog import CORRUPTIONS\n"
        "x = torch.full((1, 3, 32, 32), 90, dtype=torch.uint8)\n"
        "print(json.dumps({n: corrupt_batch(x, n, 3.4, seed=11, keys=[8]).sum().item() for n in CORRUPTIONS}))"
    )
    import json

    return json.loads(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", NAMES)
def test_types_shapes_and_grey_images(name):
    for images in (IMAGES[:2, :1], IMAGES[:2, :, :, :20], IMAGES[:2, :, :13]):
        out = corrupt_batch(images, name, 2)
        assert (out.shape, out.dtype) == (images.shape, torch.uint8)
    for kind in (torch.float16, torch.float32, torch.float64):
        out = corrupt_batch((IMAGES[:2] / 255.0).to(kind), name, 4)
        assert out.dtype == kind
        assert 0 <= out.min() <= out.max() <= 1
    assert corrupt_batch(IMAGES[:0], name, 2).shape == (0, 3, 32, 32)


@pytest.mark.parametrize("name", [name for name in NAMES if CORRUPTIONS[name].differentiable])
def test_gradients_of_the_differentiable(name):
    """The gradient along a random direction is the slope of the corruption in that direction."""
    rng = np.random.default_rng(0)  # no two values equal, or their maximum has no slope
    image = torch.from_numpy(rng.uniform(0.25, 0.65, size=(1, 3, 16, 16)))
    direction = torch.from_numpy(rng.normal(size=image.shape))
    image.requires_grad_()
    corrupt_batch(image, name, 2).sum().backward()
    with torch.no_grad():
        ahead, behind = (corrupt_batch(image + step * direction, name, 2).sum() for step in (1e-7, -1e-7))
    assert (image.grad * direction).sum().item() == pytest.approx((ahead - behind).item() / 2e-7, rel=1e-3, abs=1e-3)
    assert image.grad.abs().sum() > 0


@pytest.mark.parametrize("name", [name for name in NAMES if not CORRUPTIONS[name].differentiable])
def test_no_useful_gradient_of_the_others(name):
    """Rounding to levels or counts makes them flat: a small step changes nothing, or the whole level."""
    image = (IMAGES[:1].double() + 0.3) / 255.5
    moved = [corrupt_batch((image + step).clamp(0, 1), name, 4) - corrupt_batch(image, name, 4) for step in (1e-9,)]
    assert moved[0].abs().max() < 1e-8 or moved[0].abs().max() > 1e-4


@pytest.mark.parametrize("name", [name for name in NAMES if CORRUPTIONS[name].continuous])
def test_constants_pass_through_the_published_ones(name):
    ladder = LADDERS[name]
    middle = ladder.at("cifar", np.array([0.5, 1.0, 1.5, 4.5, 5.0]))
    for number, constant in enumerate(ladder.names):
        start = ladder.identity[number]
        rungs = [ladder.cifar[0][number] if start is None else start, *(row[number] for row in ladder.cifar)]
        expected = [(rungs[0] + rungs[1]) / 2, rungs[1], (rungs[1] + rungs[2]) / 2, (rungs[4] + rungs[5]) / 2, rungs[5]]
        assert middle[constant] == pytest.approx(expected)


def test_steps_jump_half_way():
    assert LADDERS["glass_blur"].at("cifar", np.array([0.4, 0.6, 3.4, 3.6]))["rounds"].tolist() == [0, 1, 1, 2]
    assert LADDERS["spatter"].at("cifar", np.array([3.4, 3.6]))["mud"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("side", "scale"),
    [(28, "cifar"), (45, "cifar"), (46, "tiny_imagenet"), (96, "tiny_imagenet"), (119, "tiny_imagenet"),
     (120, "imagenet"), (224, "imagenet"), (500, "imagenet")],
)  # fmt: skip
def test_other_sizes_take_the_constants_of_the_nearest(side, scale):
    assert scale_for(side, side + 10) == scale_for(side + 10, side) == scale


def test_tiny_imagenet_has_its_own_constants():
    image = torch.full((1, 3, 64, 64), 128, dtype=torch.uint8)
    noise = corrupt_batch(image, "gaussian_noise", 5).double() - 128
    assert noise.std().item() == pytest.approx(0.18 * 255, rel=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"severity": 5.1}, "severity 5.1 is not between 0 and 5"),
        ({"severity": -1}, "severity -1 is not between"),
        ({"severity": float("nan")}, "severity nan is not between"),
        ({"severity": [1, 2]}, r"6 images need one severity or 6, not an array of shape \[2\]"),
        ({"keys": [1, 2]}, "6 images need one key or 6"),
        ({"images": IMAGES[0]}, r"must be \[N, C, H, W\]"),
        ({"images": IMAGES[:, :2]}, "one or three channels"),
        ({"images": IMAGES[:, :, :7]}, "8 pixels a side"),
        ({"images": IMAGES.float()}, "before they are normalised"),
        ({"images": IMAGES.int()}, "uint8 or floating point"),
    ],
)
def test_mistakes(change, message):
    with pytest.raises(DataError, match=message):
        corrupt_batch(**{"images": IMAGES, "name": "fog", "severity": 1, **change})


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown corruption 'gausian_noise'\. Did you mean 'gaussian_noise'"):
        corrupt_batch(IMAGES, "gausian_noise", 1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("side", [32, 224])
@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_gives_the_same_levels(name, side):
    images = torch.from_numpy(np.stack([scene(side, seed) for seed in range(10)])).permute(0, 3, 1, 2).contiguous()
    severities = np.resize([1, 2, 3, 4, 5], 10)
    here = corrupt_batch(images, name, severities, seed=2)
    there = corrupt_batch(images.cuda(), name, severities, seed=2)
    assert there.device.type == "cuda"
    off = (there.cpu().int() - here.int()).abs()
    assert off.max() <= 1
    assert (off > 0).double().mean() < 1e-3
