"""Variations on a CUDA device: the numbers of the CPU, and never a wait."""

import pytest
import torch

from tests.generation.test_variations import NAMES, drawn, made, pictures

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("name", NAMES)
def test_both_devices_agree(name):
    variation, images = made(name, (3, 32, 32)), pictures(64, (3, 32, 32))
    points = drawn(variation, 64)
    there = variation.to("cuda")(points.cuda(), images.cuda()).cpu()
    apart = (there - variation(points, images)).abs()
    # where pixelate counts cells, or a grain is lost or kept, the last bit may decide
    assert apart.max() < 1e-5 if "corruption" not in name else (apart > 1e-5).float().mean() < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_a_step_never_stops_the_device(name):
    variation, images = made(name).to("cuda"), pictures().cuda()
    points = drawn(variation).cuda()
    variation(points, images)
    torch.cuda.set_sync_debug_mode("error")
    try:
        varied = variation(points, images)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert varied.isfinite().all()


def test_positions_survive_short_matrix_products():
    """TF32 keeps ten bits: a grid made by a matrix product would be off by whole levels."""
    variation, images = made("affine", (3, 32, 32)), pictures(64, (3, 32, 32))
    points = drawn(variation, 64)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            there = variation(points.cuda(), images.cuda()).cpu()
    finally:
        torch.set_float32_matmul_precision(before)
    assert (there - variation(points, images)).abs().max() < 1e-5
