"""Parts: several optimisers as one, for layers that learn by algorithms of their own."""

from collections.abc import Callable, Sequence
from typing import Any

from torch.optim import Optimizer


class Parts(Optimizer):
    """Optimisers that take their steps together; the schedule scales the rates of all their groups.

    Parameters
    ----------
    parts : each with parameters of its own.
    """

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        self.parts = tuple(parts)
        super().__init__([group for part in self.parts for group in part.param_groups], {})

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step of each."""
        assert closure is None, "the loop computes gradients itself"
        for part in self.parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """The state of all parts, and their groups."""
        return {**super().state_dict(), "parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state; the groups stay those of the parts, and work where they did."""
        for part, saved in zip(self.parts, state_dict["parts"], strict=True):
            here(saved, part)
            part.load_state_dict(saved)
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def parts_of(optimizer: Optimizer) -> tuple[Optimizer, ...]:
    """The optimisers that one is made of: itself, unless it is several."""
    return optimizer.parts if isinstance(optimizer, Parts) else (optimizer,)


def here(saved: dict[str, Any], optimizer: Optimizer) -> None:
    """Let a state that was saved work where an optimiser does: that is this device's business, not the checkpoint's."""
    for group, ours in zip(saved["param_groups"], optimizer.param_groups):
        group.update({key: ours[key] for key in ("lr", "fused", "foreach", "capturable") if key in ours})
