"""In which precision pixels and positions are computed."""

import torch
from torch import Tensor


def computed_in(images: Tensor) -> Tensor:
    """The images in at least float32: eight bits of bfloat16 lose levels, and positions entirely."""
    return images if images.dtype in (torch.float32, torch.float64) else images.float()


def wide(device: torch.device) -> torch.dtype:
    """float64 for the few numbers per image that decide where all its pixels go; Apple's GPUs have none."""
    return torch.float32 if device.type == "mps" else torch.float64
