r"""GanVariation: all images that a generator can draw."""

import copy
import logging
import math
from typing import Literal

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.domain import Box, Domain, Product, Sphere
from oodscope.models.classifier.clip import clip
from oodscope.models.classifier.fingerprint import weights_fingerprint
from oodscope.models.generators.biggan import BigGanGenerator
from oodscope.models.generators.dcgan import DcganGenerator
from oodscope.models.generators.pix2pix import UnetGenerator
from oodscope.models.generators.stylegan import StyleGenerator

_LOG = logging.getLogger(__name__)
_LOOKS = 8
"""Latents that a generator is tried on."""

_SAME = 1e-3
"""How far two drawings of one latent may be apart, of the range: rounding on a GPU stays below, noise above."""

_OVERSHOOT = 0.25
"""How far pixels may leave the range, as a share of it, and be clamped: generators without a last tanh do."""


class GanVariation(Variation):
    """What a generator draws from latents on a sphere or in a box.

    The unconditional variation of evaluation via generation: there the generator is trained on the outliers (``oodscope
    generate gan``) and the latents lie on the unit sphere of 64 dimensions. Pixels are brought to [0, 1] and clamped.

    The generator is copied, put into evaluation mode, and tried on a few latents, because a search multiplies every
    fault of it: it must draw finite images in its range, the same ones each time, whatever else is in the batch.

    Parameters
    ----------
    generator : from ``load_generator``, or any ``nn.Module`` from latents ``[N, D]`` to images ``[N, C, H, W]``; with
        ``classes``, from latents and classes ``[N]``. A published BigGAN, which takes class vectors, needs a module of
        a few lines around it.
    truncation : 1 is the full variety. Style-based generators of oodscope draw styles towards their mean; others get
        shorter latents, which is what truncated Gaussian latents are on a sphere.
    dimension : of the latents; generators of oodscope know theirs.
    domain : ``"sphere"``: latents of unit length; ``"box"``: each coordinate in [0, 1].
    output_range : the values of black and white.
    latent_scale : latents are multiplied by it. None: √D for the generators of oodscope that were trained on Gaussian
        latents (BigGAN, DCGAN), whose length is near √D; 1 for others. StyleGAN normalises its latents, and needs none.
    classes : how many classes the generator is asked for by number; class-conditional ones of oodscope know it. The
        class is then a coordinate of the search.
    label : the class that every image is drawn of, instead.
    """

    name = "gan"
    conditional = False

    def __init__(
        self,
        generator: nn.Module,
        truncation: float = 1.0,
        *,
        dimension: int | None = None,
        domain: Literal["sphere", "box"] = "sphere",
        output_range: tuple[float, float] = (-1.0, 1.0),
        latent_scale: float | None = None,
        classes: int | None = None,
        label: int | None = None,
    ) -> None:
        self._own = isinstance(generator, StyleGenerator)
        if not (math.isfinite(truncation) and truncation >= 0):
            raise ModelError(f"truncation must be a number from 0 on, 1 for none, not {truncation}")
        if isinstance(generator, UnetGenerator):
            raise ModelError("this generator redraws images and draws none from latents; give one of `generate gan`")
        known = getattr(generator, "latent_dimension", None) or dimension
        if known is None:
            raise ModelError(f"{type(generator).__name__}: say how long its latents are: dimension=...")
        self.classes = getattr(generator, "classes", None) or classes
        if classes not in (None, self.classes):
            raise ModelError(f"classes is {classes}, but the generator knows {self.classes}")
        if label is not None and not (self.classes and 0 <= label < self.classes):
            raise ModelError(f"label {label} is not one of the generator's {self.classes or 'no'} classes")
        if dimension not in (None, known):
            raise ModelError(f"dimension is {dimension}, but the generator's latents have {known}")
        if not output_range[0] < output_range[1]:
            raise ModelError(f"output_range must be (black, white) with black < white, not {tuple(output_range)}")
        if domain not in ("sphere", "box"):
            raise ModelError(f"unknown domain {domain!r}: use 'sphere' or 'box'")
        gaussian = isinstance(generator, (BigGanGenerator, DcganGenerator))
        own_scale = math.sqrt(known) if gaussian else 1.0
        self.truncation, self.latent_scale = float(truncation), float(latent_scale or own_scale)
        self.label, self._latent = label, known
        self.output_range = (float(output_range[0]), float(output_range[1]))
        latents: Domain = Sphere(known) if domain == "sphere" else Box(known)
        self._domain = Product((latents, Box(1))) if self.classes and label is None else latents
        self.generator = copy.deepcopy(generator).eval().requires_grad_(False)
        self.size = self._try()

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def identity(self) -> None:
        return None

    @property
    def parameters(self) -> tuple[str, ...]:
        return ()

    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        black, white = self.output_range
        return clip((self._draw(points).float() - black) / (white - black), 0, 1)

    def to(self, device: torch.device | str) -> "GanVariation":
        moved = copy.copy(self)
        moved.generator = copy.deepcopy(self.generator).to(device)
        return moved

    def describe(self) -> dict[str, object]:
        return {
            "name": self.name,
            "generator": type(self.generator).__name__,
            "weights": weights_fingerprint(self.generator),
            "domain": type(self._domain).__name__.lower(),
            "dimension": self._domain.dimension,
            "output_range": list(self.output_range),
            "latent_scale": self.latent_scale,
            "truncation": self.truncation,
            **({"classes": self.classes, "label": self.label} if self.classes else {}),
        }

    def truncated(self, truncation: float) -> "GanVariation":
        """The same generator with another truncation."""
        other = copy.copy(self)
        other.truncation = float(truncation)
        return other

    def classes_of(self, points: Tensor) -> Tensor | None:
        """The class that each point asks for; None where the generator knows none."""
        if not self.classes:
            return None
        if self.label is not None:
            return torch.full((len(points),), self.label, device=points.device)
        return (points[:, self._latent] * self.classes).long().clamp(0, self.classes - 1)

    def _draw(self, points: Tensor) -> Tensor:
        latents = points[:, : self._latent] * self.latent_scale
        asked = self.classes_of(points.detach())
        given = (latents, self.truncation) if self._own else (latents * self.truncation,)
        drawn: Tensor = self.generator(*given, *(() if asked is None else (asked,)))
        return drawn

    @torch.no_grad()
    def _try(self) -> tuple[int, int, int]:
        """Channels, height and width of the images, or one line that says why a search cannot use the generator."""
        name = type(self.generator).__name__
        device = next((tensor.device for tensor in self.generator.parameters()), torch.device("cpu"))
        points = self._domain.draw(_LOOKS, torch.Generator().manual_seed(0)).to(device)
        try:
            drawn = self._draw(points)
        except (RuntimeError, ValueError, TypeError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ModelError(f"{name} cannot draw latents of shape {list(points.shape)}: {reason}") from error
        if not isinstance(drawn, Tensor) or drawn.ndim != 4 or len(drawn) != _LOOKS:
            found = list(drawn.shape) if isinstance(drawn, Tensor) else type(drawn).__name__
            raise ModelError(f"{name} turns {_LOOKS} latents into {found}; needed: images [{_LOOKS}, C, H, W]")
        if not bool(drawn.isfinite().all()):
            raise ModelError(f"{name} draws images with NaN or infinite pixels; its weights are damaged, or diverged")
        self._check_range(name, drawn)
        black, white = self.output_range
        if float((self._draw(points) - drawn).abs().max()) > _SAME * (white - black):
            raise ModelError(f"{name} draws another image each time it is asked; switch noise inputs to constants")
        if float((self._draw(points[:1]) - drawn[:1]).abs().max()) > _SAME * (white - black):
            raise ModelError(f"{name}: an image changes with the other latents of its batch; each must stand alone")
        return int(drawn.shape[1]), int(drawn.shape[2]), int(drawn.shape[3])

    def _check_range(self, name: str, drawn: Tensor) -> None:
        if self._own:
            return
        (black, white), low, high = self.output_range, float(drawn.min()), float(drawn.max())
        slack = _OVERSHOOT * (white - black)
        if low < black - slack or high > white + slack:
            raise ModelError(
                f"{name} draws pixels from {low:.4g} to {high:.4g}, outside of output_range=({black:g}, {white:g}); "
                "set output_range to the values of its black and white"
            )
        if black < 0 <= low:
            _LOG.warning(
                "%s draws no pixel below %.4g although output_range=(%g, %g); if its black is 0, set output_range",
                *(name, low, black, white),
            )
