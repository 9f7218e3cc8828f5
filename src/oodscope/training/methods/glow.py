"""Glow: maximum likelihood of an invertible network."""

from itertools import islice
from typing import TYPE_CHECKING, ClassVar, cast

from pydantic import Field
from torch import nn

from oodscope.base.paper import Paper
from oodscope.models.density.glow import Glow, GlowShape
from oodscope.training.density import DensityRecipe, uniform
from oodscope.training.recipe import Batch, Step, TrainingFacts

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams


class GlowRecipe(DensityRecipe):
    r"""Bits per dimension of a flow: :math:`-\log_2 p(x) / D`, exact, of dequantised pixels.

    Every actnorm takes its first shift and scale from the first batch, dequantised as all others.

    Parameters
    ----------
    levels : how often 2 x 2 pixels become channels.
    flow_steps : in each level; the paper has 32.
    width : hidden channels of a coupling; the paper has 512.
    alpha : margin of the logit transform of pixels; 0 does without.
    """

    name: ClassVar[str] = "glow"
    paper: ClassVar[Paper | None] = Paper(
        "Glow: Generative Flow with Invertible 1x1 Convolutions", "Kingma & Dhariwal", "NeurIPS 2018"
    )
    detectors: ClassVar[tuple[str, ...]] = ("glow", "input_complexity", "likelihood_ratio")
    recordable: ClassVar[bool] = True

    epochs: int = Field(default=30, gt=0)
    warmup_epochs: float = Field(default=1.0, ge=0)
    clip_norm: float = Field(default=50.0, ge=0)
    levels: int = Field(default=3, ge=1)
    flow_steps: int = Field(default=8, ge=1)
    width: int = Field(default=96, ge=1)
    alpha: float = Field(default=0.0, ge=0, lt=0.5)

    def shape(self, facts: TrainingFacts) -> GlowShape:
        return GlowShape(
            channels=facts.channels,
            size=facts.size,
            levels=self.levels,
            steps=self.flow_steps,
            width=self.width,
            alpha=self.alpha,
        )

    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        flow = cast(Glow, model)
        if not bool(flow.initialised):
            for batch in islice(streams.batches(0), 1):
                pixels = self.pixels(batch)
                flow.initialise(pixels, uniform(pixels, batch))

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        pixels = self.pixels(batch)
        return Step(cast(Glow, model).dequantised(pixels, uniform(pixels, batch)).mean())
