"""Random numbers that depend on a place in the training and on nothing that happened before it."""

from typing import Any

import torch

from oodscope.base.hashing import fingerprint


def generator(*place: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator seeded by ``place``, such as ``("order", seed, epoch)``.

    It lives on the CPU unless asked otherwise, so that a GPU sees the same batches as a CPU.
    """
    return torch.Generator(device).manual_seed(seed_of(*place))


def seed_of(*place: str | int) -> int:
    """The seed of ``generator``, for those who have one."""
    return int(fingerprint(list(place))[:16], 16)


def rng_state(device: torch.device) -> dict[str, torch.Tensor]:
    """The state of torch's global generators, which dropout and its kin draw from."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def restore_rng(state: dict[str, Any], device: torch.device) -> None:
    """Undo everything drawn from the global generators since ``rng_state``."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
