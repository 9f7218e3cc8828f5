"""Training on noise: Gaussian or speckle noise, or noise that a small network learns to be the worst."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.optim import Optimizer

from oodscope.base.paper import Paper
from oodscope.models.classifier.clip import clip
from oodscope.training.augment.base import Chain
from oodscope.training.augment.crop import Augment
from oodscope.training.augment.noise import Noise
from oodscope.training.augment.reading import AnyAugment
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import Batch, Step, TrainingFacts

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams

_PAPER = Paper(
    "A Simple Way to Make Neural Networks Robust Against Diverse Image Corruptions", "Rusak et al.", "ECCV 2020"
)
_GENERATOR = "noise_generator"
_WIDTH, _PAST, _OLD = 20, 8, 0.1
_TINY = 1e-12


class NoiseTraining(CrossEntropy):
    """Cross-entropy with Gaussian noise on half of each batch.

    Speckle noise is ``augment: [crop, {kind: noise, form: speckle}]``; several strengths are a list of ``sigma``.
    """

    name: ClassVar[str] = "noise"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = _PAPER

    augment: AnyAugment = Chain(steps=(Augment(), Noise()))


class NoiseGenerator(nn.Module):
    """Four layers over the channels of each pixel for itself: Gaussian noise becomes noise of another law.

    Beside its weights it keeps those of the last epochs, because a network that only meets the present noise forgets
    what earlier noise was like.

    Parameters
    ----------
    channels : of an image.
    """

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.channels = channels
        widths = (channels, _WIDTH, _WIDTH, _WIDTH, channels)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.past: Tensor
        self.stored: Tensor
        self.register_buffer("past", torch.zeros(_PAST, sum(each.numel() for each in self.parameters())))
        self.register_buffer("stored", torch.zeros((), dtype=torch.long))

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return {"channels": self.channels}

    def forward(self, noise: Tensor) -> Tensor:
        return self.with_weights(noise, [(each.weight, each.bias) for each in self.layers])  # type: ignore[misc]

    def with_weights(self, noise: Tensor, weights: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Of Gaussian noise ``[B, C, H, W]``, by these weights."""
        values = noise.movedim(1, -1)
        for place, (weight, bias) in enumerate(weights):
            values = linear(values.relu() if place else values, weight, bias)
        return values.movedim(-1, 1)

    @torch.no_grad()
    def store(self) -> None:
        """Keep the present weights among those of the past, in the place of the oldest."""
        flat = torch.cat([each.flatten() for each in self.parameters()])
        self.past[self.stored % _PAST] = flat
        self.stored += 1

    def earlier(self, chance: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Weights of a past epoch, by a random number of [0, 1); the only ones there are before the second epoch."""
        place = (chance * self.stored.clamp(min=1, max=_PAST)).long()
        row = self.past.index_select(0, place.view(1))[0]
        shapes = [each.shape for layer in self.layers for each in layer.parameters()]
        parts = [part.view(shape) for part, shape in zip(torch.split(row, [shape.numel() for shape in shapes]), shapes)]
        return list(zip(parts[::2], parts[1::2]))


class ANT(CrossEntropy):
    r"""Adversarial noise training: the classifier and a generator of noise, in turns against each other.

    .. math:: \min_f \max_g\; \mathrm{CE}(f(x + \delta), y), \qquad \delta = \varepsilon\,\frac{g(\xi)}
              {\lVert g(\xi)\rVert_2}, \quad \xi \sim \mathcal N(0, I)

    Half of each batch is noisy; a tenth of that has the noise of earlier epochs. The generator's gradient is reversed,
    so one step descends for the classifier and climbs for it. The study that this is a regime of calls it "additive
    Gaussian and speckle noise", which are that paper's baselines (recipe ``noise``). Starts from a trained network.

    Parameters
    ----------
    epsilon : length of the noise of an image in pixels of [0, 1], above 0: 4.4 is a root mean square of .08 at 32 px.
    share : of the images that get noise.
    rate : learning rate of the generator.
    """

    name: ClassVar[str] = "ant"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = _PAPER

    epochs: int = Field(default=40, gt=0)
    learning_rate: float = Field(default=0.01, gt=0)
    epsilon: float = 4.4
    share: float = Field(default=0.5, gt=0, le=1)
    rate: float = Field(default=0.01, gt=0)

    @field_validator("epsilon")
    @classmethod
    def _check_length(cls, epsilon: float) -> float:
        if not epsilon > 0:
            raise ValueError(f"must be above 0, not {epsilon:g}: without noise this is the recipe cross_entropy")
        return epsilon

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        first = next((part for part in model.modules() if isinstance(part, nn.Conv2d)), None)
        model.add_module(_GENERATOR, NoiseGenerator(3 if first is None else first.in_channels))
        return model

    def optimizer(self, model: nn.Module) -> Optimizer:
        return self.descent(model, _generator(model).parameters(), lr=self.rate, weight_decay=0.0)

    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        _generator(model).store()

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.draws is not None and batch.scale is not None, "the loop gives each batch both"
        images, place = batch.scale.to_pixels(batch.images), batch.draws.device
        noise = torch.randn(images.shape, generator=batch.draws, device=place).to(images.device)
        chance = torch.rand(len(images) + 1, generator=batch.draws, device=place).to(images.device)
        with torch.autocast(images.device.type, enabled=False):
            generator = _generator(model)
            made, old = generator(noise), generator.with_weights(noise, generator.earlier(chance[-1]))
            reversed_ = 2 * made.detach() - made  # the same values, and minus the gradient
            which = chance[:-1].view(-1, 1, 1, 1)
            delta = scaled(torch.where(which < self.share * _OLD, old, reversed_), self.epsilon)
            noisy = clip(images + delta.masked_fill(which >= self.share, 0.0), 0, 1)
        return super().loss(model, batch._replace(images=batch.scale.from_pixels(noisy)))


def scaled(noise: Tensor, epsilon: float) -> Tensor:
    """Noise whose every image has this length."""
    length: Tensor = torch.linalg.vector_norm(noise.flatten(1), dim=1).clamp(min=_TINY)
    return epsilon * noise / length.view(-1, 1, 1, 1)


def _generator(model: nn.Module) -> NoiseGenerator:
    generator = model.get_submodule(_GENERATOR)
    assert isinstance(generator, NoiseGenerator), "prepared by this recipe"
    return generator
