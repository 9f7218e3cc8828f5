"""Learning curves: loss and accuracy of every network, epoch by epoch."""

from collections.abc import Callable, Iterator, Sequence

from oodscope.document.figure import Axis, Figure, Line, figure_name, guide, numbers
from oodscope.runs.training.run import TrainedNetwork, Training
from oodscope.training.loop.history import Epoch

NAMED = 10
"""Epochs that have a tick each."""

_STAGES = " A dotted line stands where the next stage of the chain begins."


def learning_curves(training: Training) -> Iterator[Figure]:
    """The loss, and the accuracies as far as they were measured."""
    words = (training.recipe, training.record.model, training.record.benchmark)
    chained = _STAGES if len(training.recipes) > 1 else ""
    losses = [_line(each, f"seed {each.seed}", lambda epoch: epoch.loss, n) for n, each in enumerate(training.networks)]
    yield Figure(
        figure_name("loss", *words),
        "Training loss",
        f"The mean loss of each epoch; lower is a closer fit.{chained}",
        (*losses, *_borders(training.networks, [value for line in losses for value in line.y])),
        _epochs(training),
        Axis("loss"),
    )
    kinds: tuple[tuple[str, Callable[[Epoch], float | None]], ...] = (
        ("training", lambda epoch: epoch.train_accuracy),
        ("validation", lambda epoch: epoch.val_accuracy),
    )
    lines = [
        _line(each, f"{name}, seed {each.seed}", of, place, dotted=name == "training")
        for name, of in kinds
        for place, each in enumerate(training.networks)
    ]
    if measured := [line for line in lines if line.x]:
        yield Figure(
            figure_name("accuracy", *words),
            "Accuracy while training",
            f"Share of images classified correctly, dotted on training images; higher is better.{chained}",
            (*measured, *_borders(training.networks, [value for line in measured for value in line.y])),
            _epochs(training),
            Axis("accuracy", percent=True),
        )


def _epochs(training: Training) -> Axis:
    """An axis that names every epoch of a short training: a page would put ticks between them and round."""
    longest = max(len(each.epochs) for each in training.networks)
    ticks = tuple((float(number), str(number)) for number in range(1, longest + 1)) if longest <= NAMED else ()
    return Axis("epoch", whole=True, ticks=ticks)


def _line(
    network: TrainedNetwork, name: str, of: Callable[[Epoch], float | None], place: int, *, dotted: bool = False
) -> Line:
    points = [(number, value) for number, epoch in enumerate(network.epochs, 1) if (value := of(epoch)) is not None]
    x, y = zip(*points) if points else ((), ())
    return Line(name, numbers(x), numbers(y), place, "{name}\nepoch {x}: {y:.4f}", dotted=dotted, markers=len(x) < 2)


def _borders(networks: Sequence[TrainedNetwork], values: Sequence[float]) -> Iterator[Line]:
    """A line after each stage but the last, at the longest of all seeds."""
    done = 0
    for lengths in list(zip(*([len(stage) for stage in each.stages] for each in networks)))[:-1]:
        done += max(lengths)
        yield guide([done + 0.5, done + 0.5], [min(values), max(values)])
