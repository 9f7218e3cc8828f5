"""Where a network runs."""

import torch

from oodscope.base.errors import ModelError


def choose_device(wanted: str | torch.device) -> torch.device:
    """The device called ``wanted``; ``"auto"`` is CUDA if there is one, else MPS, else the CPU.

    A device that this machine lacks is refused here, not minutes later in the middle of a run.
    """
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise ModelError(f"unknown device {wanted!r}: use 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ModelError(
            f"device {str(device)!r} is not there: torch sees {torch.cuda.device_count()} CUDA devices. "
            "Use device='auto', or install a CUDA build of torch and check `nvidia-smi`"
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ModelError("device 'mps' is not there: it needs a Mac with Apple silicon. Use device='auto'")
    return device
