"""Scores of changed copies of an image: pushed along a gradient, with noise on it, corrupted."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from oodscope.activations.probes.probe import RECORDED, Passes, Probe
from oodscope.data.addressed import Draws, content_keys
from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.models.classifier.pixels import pixel_scale

LogitFunction = Callable[[Tensor], Tensor]
"""Scores ``[N]`` of logits ``[N, C]``, larger = more OOD."""


class PushedScores(Probe):
    r"""A score at every step of a walk that raises it, ``[N, steps + 1]``, the image itself first.

    .. math:: x_0 = x, \qquad x_{t+1} = x_t + \varepsilon\,\mathrm{sign}\,\nabla_x s(x_t)

    in the network's (normalised) input. Chen et al., "Leveraging Perturbation Robustness to Enhance Out-of-Distribution
    Detection", CVPR 2025. Walks of the same score and length of step share what they have in common.

    Parameters
    ----------
    name : of the score, parameters included.
    score : the score itself.
    epsilon : length of a step.
    steps : how many.
    clip : whether pixels stay in [0, 1].
    """

    def __init__(self, name: str, score: LogitFunction, epsilon: float, steps: int, clip: bool = False) -> None:
        self.name, self.score, self.epsilon, self.steps, self.clip = name, score, epsilon, steps, clip

    @property
    def column(self) -> str:
        return f"pushed_scores({self._walk}, steps={self.steps})"

    @property
    def _walk(self) -> str:
        return f"{self.name}, epsilon={self.epsilon:g}{', clipped' if self.clip else ''}"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset({RECORDED, *(f"{self._walk}, step {step}" for step in range(1, self.steps + 1))})

    @property
    def backwards(self) -> frozenset[str]:
        later = (f"{self._walk}, step {step}" for step in range(1, self.steps))
        return frozenset({self.start, *later})

    @property
    def start(self) -> str:
        """The gradient at the image itself, which all walks of this score share."""
        return f"score {self.name}"

    def __call__(self, passes: Passes) -> Tensor:
        walk = passes.kept(f"walk of {self._walk}", lambda: _Walk(self, passes))
        return walk.scores(self.steps)


class _Walk:
    """One batch on its way; whoever asks for more steps makes it go on."""

    def __init__(self, probe: PushedScores, passes: Passes) -> None:
        self.probe, self.passes = probe, passes
        _, outputs = passes.recorded
        self.found = [probe.score(outputs.logits.detach().float())]
        self.last: tuple[Tensor, Tensor] | None = None

    def scores(self, steps: int) -> Tensor:
        while len(self.found) <= steps:
            leaf = self._next().detach().requires_grad_(True)
            scores = self.probe.score(self.passes.classifier.forward(leaf, grad=True).logits.float())
            self.found.append(scores.detach())
            self.last = scores, leaf
        return torch.stack(self.found[: steps + 1], dim=1).float()

    def _next(self) -> Tensor:
        """Where the next step leads; the gradient of the last place is taken only now that somebody goes on."""
        probe, passes = self.probe, self.passes
        if self.last is None:
            place = passes.images
            gradient = passes.gradient(probe.start, lambda outputs: probe.score(outputs.logits.float()).sum())
        else:
            scores, place = self.last
            (gradient,) = torch.autograd.grad(scores.sum(), place)
        moved = place.detach() + probe.epsilon * gradient.sign()
        if not probe.clip:
            return moved
        scale = pixel_scale(passes.classifier)
        ends = torch.stack([scale.offset, scale.offset + scale.scale])
        return torch.minimum(torch.maximum(moved, ends.amin(dim=0)), ends.amax(dim=0))


class _CopyScores(Probe):
    """Scores of several copies of an image, ``[N, copies]``; a copy depends on the image and on nothing else."""

    name: str
    score: LogitFunction

    @abstractmethod
    def copies(self, passes: Passes) -> Iterable[Tensor]:
        """Batches of copies, as the network reads them."""

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, passes: Passes) -> Tensor:
        with torch.no_grad():
            logits = (passes.classifier.forward(copy).logits.float() for copy in self.copies(passes))
            return torch.stack([self.score(each) for each in logits], dim=1).float()


class NoisyScores(_CopyScores):
    r"""A score of copies :math:`x+\sigma n`, :math:`n` normal, in the network's (normalised) input.

    The noise of a copy is a function of the image's content, the copy's number and the seed: the same in every batch.

    Parameters
    ----------
    name, score : as in ``PushedScores``.
    count : how many.
    sigma : size of the noise.
    seed : of the noise.
    """

    def __init__(self, name: str, score: LogitFunction, count: int, sigma: float, seed: int = 0) -> None:
        self.name, self.score, self.count, self.sigma, self.seed = name, score, count, sigma, seed

    @property
    def column(self) -> str:
        return f"noisy_scores({self.name}, {self._noise}, copies={self.count})"

    @property
    def _noise(self) -> str:
        return f"sigma={self.sigma:g}, seed={self.seed}"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset(f"noise {number}, {self._noise}" for number in range(self.count))

    def copies(self, passes: Passes) -> Iterable[Tensor]:
        images = passes.images
        draws = Draws(self.seed, "noisy scores", content_keys(images))
        for number in range(self.count):
            yield images + self.sigma * draws.normal(f"copy {number}", *images.shape[1:]).to(images)


class CorruptedScores(_CopyScores):
    """A score of an image under several corruptions.

    Parameters
    ----------
    name, score : as in ``PushedScores``.
    corruptions : their names.
    severity : of all of them.
    """

    def __init__(self, name: str, score: LogitFunction, corruptions: Sequence[str], severity: float) -> None:
        self.name, self.score, self.corruptions, self.severity = name, score, tuple(corruptions), severity

    @property
    def column(self) -> str:
        return f"corrupted_scores({self.name}, {' '.join(self.corruptions)}, severity={self.severity:g})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset(f"{name} at {self.severity:g}" for name in self.corruptions)

    def copies(self, passes: Passes) -> Iterable[Tensor]:
        scale = pixel_scale(passes.classifier)
        pixels = ((passes.images.float() - scale.offset) / scale.scale).clamp(0, 1)
        keys = content_keys(pixels).cpu().numpy()
        for name in self.corruptions:
            yield scale(corrupt_batch(pixels, name, self.severity, keys=keys))
