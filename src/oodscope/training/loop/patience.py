"""Patience: which epoch's weights are kept, and when to stop."""

from torch import Tensor, nn

from oodscope.training.loop.history import Epoch


class Patience:
    """Watches one training. Only the best weights are state of its own; the rest is in the history.

    Parameters
    ----------
    epochs : how many without a better validation to bear; 0 never stops and keeps the last weights.
    model : the network that is trained; the best weights are copies, on its device.
    keep_best : keep the best weights without ever stopping, the latest of equals.
    """

    def __init__(self, epochs: int, model: nn.Module, keep_best: bool = False) -> None:
        self.epochs = epochs
        self.model = model
        self.keep_best = keep_best
        self.best: dict[str, Tensor] = {}

    def see(self, history: list[Epoch]) -> None:
        """After an epoch: keep its weights if they are the best so far. Under patience the first of equals stays."""
        merits = [_merit(epoch) for epoch in history]
        best = _best(history) == len(history) if self.epochs else self.keep_best and merits[-1] == max(merits)
        if best:
            self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def ended(self, history: list[Epoch]) -> bool:
        """Whether it has borne enough."""
        return 0 < self.epochs <= len(history) - _best(history)

    def restore(self) -> None:
        """Put the best weights back."""
        if self.best:
            self.model.load_state_dict(self.best)


def _merit(epoch: Epoch) -> float:
    """The validation accuracy; of a training without labels the validation loss, turned round."""
    if epoch.val_accuracy is None and epoch.val_loss is not None:
        return -epoch.val_loss
    return epoch.val_accuracy or 0.0


def _best(history: list[Epoch]) -> int:
    """The number of the best epoch, from 1; 0 before the first."""
    merits = [_merit(epoch) for epoch in history]
    return merits.index(max(merits)) + 1 if merits else 0
