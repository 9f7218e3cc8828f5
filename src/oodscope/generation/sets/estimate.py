"""How long a generated set will take, from a few images, before anything is trained."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from oodscope.data.imageset import ImageSet
from oodscope.document.wording import duration
from oodscope.execution.pace import pace
from oodscope.generation.near.trained import build_networks, near_shape
from oodscope.generation.sets.ensemble import build_member
from oodscope.generation.sets.plan import SetPlan
from oodscope.generation.sets.pool import frame_of
from oodscope.models.classifier.network import choose_device
from oodscope.models.generators.pix2pix import UnetGenerator, UnetShape

LOOKED = 16
"""Images that a network is timed on."""


@dataclass(frozen=True)
class Estimate:
    """Seconds of the ensemble, of generators, and of everything together."""

    ensemble: float
    generators: float

    @property
    def seconds(self) -> float:
        return self.ensemble + self.generators

    def __str__(self) -> str:
        parts = f"ensemble {duration(self.ensemble)}"
        parts += f", generators {duration(self.generators)}" if self.generators else ""
        return f"about {duration(self.seconds)} ({parts})"


def estimate(plan: SetPlan, id_train: ImageSet, device: str = "auto") -> Estimate:
    """Time a forward and a backward pass of every network that the plan trains, and multiply.

    Recorded steps on a GPU are faster than these; work that is in the folder already is not known here.
    """
    place, frame = choose_device(device), frame_of(id_train)
    channels, side, classes = len(frame.mean), frame.size, max(1, len(id_train.class_names))
    images = torch.rand(LOOKED, channels, side, side, device=place)
    members = [build_member(each, classes, channels).to(place) for each in plan.architectures]
    member = sum(_seconds(partial(model, images), model) for model in members) / LOOKED
    trained = member * len(id_train) * plan.ensemble.epochs
    if plan.method == "latent":
        # one forward pass of all members for each energy, a third of a training pass
        return Estimate(trained, plan.pool * plan.budget * member / 3)
    if plan.method != "gan":
        return Estimate(trained, plan.pool * member / 3)
    if plan.kind == "shifted":
        unet = UnetGenerator(UnetShape(size=side, channels=channels, width=plan.shifted.width)).to(place)
        drawing = _seconds(lambda: unet(2 * images - 1, torch.Generator(place).manual_seed(0)), unet) / LOOKED
        return Estimate(trained, plan.shifted.steps * plan.shifted.batch_size * (2 * drawing + 2 * member))
    generator, discriminator = _gan(plan, id_train, place)
    recipe = plan.near
    plain = recipe.steps * recipe.batch_size * (recipe.discriminator_steps * 2 * discriminator + 2 * generator)
    fine = len(plan.lambdas) * recipe.fine_steps * recipe.batch_size * (3 * discriminator + 2 * generator + 2 * member)
    return Estimate(trained, plain + fine)


def _gan(plan: SetPlan, id_train: ImageSet, place: torch.device) -> tuple[float, float]:
    """Seconds per image of a training pass of generator and discriminator."""
    shape = near_shape(plan.near, id_train, frame_of(id_train).size)
    drawn, told = (each.to(place) for each in build_networks(plan.near, shape))
    labels, latents = (
        torch.zeros(LOOKED, dtype=torch.long, device=place),
        torch.randn(LOOKED, shape.latent, device=place),
    )
    images = torch.rand(LOOKED, shape.channels, shape.size, shape.size, device=place)
    return (
        _seconds(lambda: drawn(latents, labels), drawn) / LOOKED,
        _seconds(lambda: told(images, labels), told) / LOOKED,
    )


def _seconds(forward: Callable[[], Tensor], network: nn.Module) -> float:
    """Of a forward and a backward pass."""
    network.train()

    def both_ways() -> None:
        total = forward().float().sum()
        torch.autograd.backward(total)
        float(total.detach())

    return pace(both_ways)
