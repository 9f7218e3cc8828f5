"""Patience: stop when validation accuracy no longer rises, and go back to where it was best."""

from torch import Tensor, nn

from oodscope.training.history import Epoch


class Patience:
    """Watches one training. Only the best weights are state of its own; the rest is in the history.

    Parameters
    ----------
    epochs : how many without a better accuracy to bear; 0 never stops and keeps the last weights.
    model : the network that is trained; the best weights are copies, on its device.
    """

    def __init__(self, epochs: int, model: nn.Module) -> None:
        self.epochs = epochs
        self.model = model
        self.best: dict[str, Tensor] = {}

    def see(self, history: list[Epoch]) -> None:
        """After an epoch: keep its weights if they are the best so far. The first of equals stays."""
        if self.epochs and _best(history) == len(history):
            self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def ended(self, history: list[Epoch]) -> bool:
        """Whether it has borne enough."""
        return 0 < self.epochs <= len(history) - _best(history)

    def restore(self) -> None:
        """Put the best weights back."""
        if self.best:
            self.model.load_state_dict(self.best)


def _best(history: list[Epoch]) -> int:
    """The number of the best epoch, from 1; 0 before the first."""
    accuracies = [epoch.val_accuracy or 0.0 for epoch in history]
    return accuracies.index(max(accuracies)) + 1 if accuracies else 0
