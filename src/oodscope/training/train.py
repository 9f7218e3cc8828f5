"""``train``: the one call of this station."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.fabric import resolve_device
from oodscope.training.loop.finished import identify, read_finished, read_last, write_finished
from oodscope.training.loop.history import Epoch
from oodscope.training.loop.logits import check_logits
from oodscope.training.loop.loop import Loop
from oodscope.training.loop.sets import check_sets, facts_of
from oodscope.training.recipe import Recipe


@dataclass(frozen=True)
class Trained:
    """A trained network, on the CPU and in evaluation mode, and how it got there, epoch by epoch.

    ``last`` holds the weights of the last epoch, where the recipe kept those of the best.
    """

    model: nn.Module
    recipe: Recipe
    history: tuple[Epoch, ...]
    last: Mapping[str, Tensor] | None = None


def train(
    model: nn.Module | Callable[[], nn.Module],
    recipe: Recipe,
    train: ImageSet,
    preprocess: Preprocess,
    *,
    val: ImageSet | None = None,
    ood_train: ImageSet | None = None,
    folder: Path | None = None,
    device: str = "auto",
    progress: Progress = SILENT,
) -> Trained:
    """Train a network by a recipe.

    On a CPU the weights are a function of the arguments and the number of threads, bit for bit, however often
    the training was killed and called again. A finished training is read back from its folder at once.

    Parameters
    ----------
    model : a network, which is copied and left as it is, or a function that builds one. The function is
        called under the recipe's seed, so that another process, called again, starts from the same weights.
    recipe : the method and its hyper-parameters.
    train : labelled images of at least two classes.
    preprocess : from stored pixels to what the network expects.
    val : labelled images of the same classes, judged after every epoch; they influence the weights only where the
        recipe has patience or keeps the best epoch, and it needs them then.
    ood_train : outliers, for recipes that learn from them; other recipes never see them.
    folder : where checkpoints and the result are kept; without it nothing is written.
    device : ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
    progress : told of every step.

    Examples
    --------
    >>> from oodscope.training.methods.cross_entropy import CrossEntropy
    >>> trained = oods.train(model, CrossEntropy(epochs=1), bench.id_train, oods.Preprocess(size=8), device="cpu")
    >>> len(trained.history)
    1
    """
    place = resolve_device(device, recipe.precision)
    sets = check_sets(recipe, train, val, ood_train)
    with torch.random.fork_rng(devices=[place.index] if place.type == "cuda" else []):
        torch.manual_seed(recipe.seed)
        network = copy.deepcopy(model).cpu() if isinstance(model, nn.Module) else model()
        identity = identify(network, recipe, sets, preprocess)
        prepared = recipe.prepare(network, facts_of(sets, preprocess))
        check_logits(prepared, preprocess, len(train.class_names))
        history = read_finished(folder, prepared, identity) if folder else None
        last: Mapping[str, Tensor] | None = read_last(folder) if folder and history is not None else None
        if history is None:
            checkpoints = Checkpoints(folder, fingerprint(identity)) if folder else None
            loop = Loop(prepared, recipe, sets, preprocess, checkpoints, place)
            with progress.stage(f"train {_name(model, network)}", recipe.epochs * loop.streams.steps) as advance:
                history = loop.run(advance)
            last = loop.last
            if folder and checkpoints:
                write_finished(folder, prepared, identity, history, last)
                checkpoints.remove()
    return Trained(prepared.eval(), recipe, tuple(history), last)


def _name(model: nn.Module | Callable[[], nn.Module], network: nn.Module) -> str:
    """The function's own name where it has one that means something; a lambda's does not."""
    name: str = getattr(model, "__name__", "")
    return name if name.isidentifier() else type(network).__name__
