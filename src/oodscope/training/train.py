"""``train`` and ``train_seeds``: a network by a recipe, and one for each of several seeds."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.ranks import Ranks
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.fabric import ALONE, open_fabric, resolve_device
from oodscope.training.loop.finished import Identity, identify, read_finished, read_last, write_finished
from oodscope.training.loop.history import Epoch
from oodscope.training.loop.lockstep import run_loops
from oodscope.training.loop.logits import check_output
from oodscope.training.loop.loop import Loop
from oodscope.training.loop.sets import Sets, check_sets, facts_of
from oodscope.training.loop.shared import check_shared, same_on_all
from oodscope.training.loop.streams import Streams
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


Network = nn.Module | Callable[[], nn.Module]
"""A network, or a function that builds one."""


def train(
    model: Network,
    recipe: Recipe,
    train: ImageSet,
    preprocess: Preprocess,
    *,
    val: ImageSet | None = None,
    ood_train: ImageSet | None = None,
    pictures: ImageSet | None = None,
    folder: Path | None = None,
    device: str = "auto",
    compiled: bool | None = None,
    ranks: bool = False,
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
    train : images to learn from, with labels of at least two classes unless the recipe needs none.
    preprocess : from stored pixels to what the network expects.
    val : images of the same classes, judged after every epoch; they influence the weights only where the
        recipe has patience or keeps the best epoch, and it needs them then.
    ood_train : outliers, for recipes that learn from them; other recipes never see them.
    pictures : further pictures, for augmentations that mix with them.
    folder : where checkpoints and the result are kept; without it nothing is written.
    device : ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
    compiled : whether ``torch.compile`` fuses the network's kernels; by default in long trainings on a GPU.
    ranks : share the training with the other processes that torchrun or srun started with this one, each on a GPU of
        its own; all must call this with the same arguments, and all get the trained network. Batches do not depend on
        their number. For a network that trains in minutes, one training per GPU is faster.
    progress : notified of every step.

    Examples
    --------
    >>> from oodscope.training.methods.cross_entropy import CrossEntropy
    >>> trained = oods.train(model, CrossEntropy(epochs=1), bench.id_train, oods.Preprocess(size=8), device="cpu")
    >>> len(trained.history)
    1
    """
    sets = check_sets(recipe, train, val, ood_train, pictures)
    among = Ranks.here() if ranks else ALONE
    place = resolve_device(device, recipe.precision, among)
    work = _Work(recipe, sets, preprocess, place, compiled, progress, ranks=among)
    return work.run([_Job(model, recipe.seed, folder)])[0]


def train_seeds(
    models: Sequence[Network],
    recipe: Recipe,
    seeds: Sequence[int],
    train: ImageSet,
    preprocess: Preprocess,
    *,
    val: ImageSet | None = None,
    ood_train: ImageSet | None = None,
    pictures: ImageSet | None = None,
    folders: Sequence[Path] | None = None,
    device: str = "auto",
    compiled: bool | None = None,
    ranks: bool = False,
    progress: Progress = SILENT,
) -> list[Trained]:
    """Train a network for each seed, with the weights that ``train`` gives each of them alone.

    On a GPU the steps of all seeds are branches of one recorded step, where the recipe can be recorded and nothing but
    its seed decides its random numbers (no dropout, no patience); otherwise one seed is trained after the other.

    Parameters
    ----------
    models : one for each seed; see ``train`` for this and all else.
    seeds : each takes the place of the recipe's own.
    folders : one for each seed.
    """
    sets = check_sets(recipe, train, val, ood_train, pictures)
    among = Ranks.here() if ranks else ALONE
    place = resolve_device(device, recipe.precision, among)
    work = _Work(recipe, sets, preprocess, place, compiled, progress, several=len(seeds) > 1, ranks=among)
    places: Sequence[Path | None] = folders or [None] * len(seeds)
    return work.run([_Job(*each) for each in zip(models, seeds, places, strict=True)])


@dataclass(frozen=True)
class _Job:
    """One network to be trained."""

    model: Network
    seed: int
    folder: Path | None


@dataclass
class _Opened:
    """A prepared network; its history if it is finished."""

    job: _Job
    recipe: Recipe
    network: nn.Module
    identity: Identity
    history: list[Epoch] | None
    last: Mapping[str, Tensor] | None

    def trained(self) -> Trained:
        assert self.history is not None, "asked for after the training"
        return Trained(self.network.eval(), self.recipe, tuple(self.history), self.last)


@dataclass(frozen=True)
class _Work:
    """What the trainings of one call share."""

    recipe: Recipe
    sets: Sets
    preprocess: Preprocess
    device: torch.device
    compiled: bool | None
    progress: Progress
    several: bool = False
    ranks: Ranks = ALONE

    def run(self, jobs: Sequence[_Job]) -> list[Trained]:
        if not self.ranks.alone:
            steps = -(-len(self.sets.train) // self.recipe.batch_size)
            check_shared(self.recipe, len(self.sets.train) // steps, self.ranks)
        with torch.random.fork_rng(devices=[self.device.index] if self.device.type == "cuda" else []):
            opened = [self._open(jobs[0])]
            together = len(jobs) > 1 and self._can_share_a_graph(opened[0].network)
            if not together:
                self._train(opened)
            for job in jobs[1:]:
                opened.append(self._open(job))
                if not together:
                    self._train(opened[-1:])
            if together:
                self._train(opened)
        return [each.trained() for each in opened]

    def _open(self, job: _Job) -> _Opened:
        """The network as it is before its first step, or after its last one."""
        recipe = self.recipe.model_copy(update={"seed": job.seed})
        torch.manual_seed(job.seed)
        network = copy.deepcopy(job.model).cpu() if isinstance(job.model, nn.Module) else job.model()
        identity = identify(network, recipe, self.sets, self.preprocess, self.ranks.count)
        prepared = recipe.prepare(network, facts_of(self.sets, self.preprocess))
        classes = len(self.sets.train.class_names) if recipe.labelled else None
        check_output(prepared, self.preprocess, classes)
        history = read_finished(job.folder, prepared, identity) if job.folder else None
        last = read_last(job.folder) if job.folder and history is not None else None
        return _Opened(job, recipe, prepared, identity, history, last)

    def _train(self, opened: Sequence[_Opened]) -> None:
        """Train those that are not finished, side by side."""
        todo = [each for each in opened if each.history is None]
        # ranks meet here, before any of them waits for another's rows
        fabric = None if self.ranks.alone else open_fabric(self.device, self.recipe.precision, self.ranks)
        if fabric is not None:
            same_on_all(bool(todo), f"the finished training in {opened[0].job.folder}")
        if not todo:
            return
        streams = Streams(todo[0].recipe, self.sets, self.preprocess, self.device, self.ranks)
        loops, kept = [], []
        for each in todo:
            folder = each.job.folder
            kept.append(Checkpoints(folder, fingerprint(each.identity)) if folder else None)
            own = streams.of(each.recipe)
            loops.append(Loop(each.network, each.recipe, own, kept[-1], compiled=self.compiled, fabric=fabric))
        names = f"train {_name(todo[0].job.model, todo[0].network)}"
        if self.several:
            seeds = [str(each.job.seed) for each in todo]
            names += f", seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"
        progress = self.progress if self.ranks.first else SILENT
        with progress.stage(names, sum(loop.total for loop in loops)) as advance:
            run_loops(loops, advance)
        for each, loop, checkpoints in zip(todo, loops, kept):
            each.history, each.last = loop.history, loop.last
            if each.job.folder and checkpoints and self.ranks.first:
                write_finished(each.job.folder, each.network, each.identity, loop.history, loop.last)
                checkpoints.remove()
        if fabric is not None:
            fabric.barrier()  # nobody goes on before what the first rank writes is there

    def _can_share_a_graph(self, network: nn.Module) -> bool:
        recipe = self.recipe
        recorded = self.device.type == "cuda" and recipe.can_be_recorded() and recipe.precision != "16-mixed"
        return (
            recorded and self.ranks.alone and not recipe.patience and not any(map(_draws_globally, network.modules()))
        )


def _draws_globally(module: nn.Module) -> bool:
    """Whether a module of a training draws from the generator that all networks of a process share."""
    name, rates = type(module).__name__, [getattr(module, key, 0.0) for key in ("p", "dropout", "drop_prob")]
    if "drop" not in name.lower() and not isinstance(module, nn.RNNBase | nn.MultiheadAttention):
        return False
    return any(isinstance(rate, float) and rate > 0 for rate in rates)


def _name(model: Network, network: nn.Module) -> str:
    """The function's own name where it has one that means something; a lambda's does not."""
    name: str = getattr(model, "__name__", "")
    return name if name.isidentifier() else type(network).__name__
