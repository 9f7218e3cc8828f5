"""NearRecipe: how generators of near-OOD images are trained."""

from typing import Any, Literal

from pydantic import Field, model_validator

from oodscope.base.config import StrictModel

LAMBDAS = tuple(0.25 * number for number in range(2, 13))
"""The weights of the semantic term that the paper pools: 0.5, 0.75, ... 3.0."""

_FINE = {"fine_steps", "lambda_perceptual", "semantic_ceiling", "pairing", "nearest_of"}


class NearRecipe(StrictModel):
    r"""One plain generator, then a copy of it fine-tuned for each weight λ_s of the semantic term.

    .. math:: L_G = -D(G(z, y)) + λ_p\, d(x, G(z, y)) - λ_s\, I(G(z, y))

    with a perceptual distance d to a real image x, and the mutual information I of an ensemble's prediction and its
    member, in nats (Mukhoti et al., "Raising the Bar on the Evaluation of Out-of-Distribution Detection", 2022). The
    paper trains one GAN per λ_s from the start; here all start from one plain GAN, which costs a small part of that.
    The paper's saturating log(1 - D) is the hinge loss here, as in BigGAN.

    Parameters
    ----------
    network : ``biggan``: class-conditional; ``dcgan``: without classes, the paper's choice for MNIST.
    steps, fine_steps : of the generator, before and after the terms are added.
    batch_size : images of a step.
    discriminator_steps : for each step of the generator.
    learning_rate : of both networks; Adam(.5, .999).
    lambda_perceptual : λ_p; 1 in the paper, with LPIPS. With the features of a classifier for the same classes, images
        that had lost their class were easier than CIFAR-100 at 1 to 4, and about as hard at 8.
    semantic_ceiling : information above which an image earns no more, such as the upper end of the window that samples
        are filtered by; ``None`` for no ceiling. Information can be driven up by noise without end.
    pairing : which real image x an image is compared with, on which the paper is silent. ``class``: a random one of the
        same class; ``nearest``: the nearest of ``nearest_of`` random ones, without which images of a generator that
        knows no classes are drawn to the mean image. ``None``: ``class`` where there are classes, else ``nearest``.
    average_images : half-life of the averaged generator, the one that is kept; see ``GanRecipe``.
    augment, flip : as in ``GanRecipe``.
    latent, width, discriminator_width : sizes of the networks; see ``BigGanShape`` and ``DcganShape``.
    seed : decides initial weights, latents, batches and pairs.
    precision : of the passes, those of ensemble and distance included; weights are always 32-bit.
    """

    network: Literal["biggan", "dcgan"] = "biggan"
    steps: int = Field(default=20_000, gt=0)
    fine_steps: int = Field(default=1_000, gt=0)
    batch_size: int = Field(default=256, gt=1)
    discriminator_steps: int = Field(default=2, gt=0)
    learning_rate: float = Field(default=2e-4, gt=0)
    lambda_perceptual: float = Field(default=8.0, ge=0)
    semantic_ceiling: float | None = Field(default=None, gt=0)
    pairing: Literal["class", "nearest"] | None = None
    nearest_of: int = Field(default=8, gt=0)
    average_images: int = Field(default=500_000, gt=0)
    augment: float = Field(default=0.0, ge=0, le=1)
    flip: bool = False
    latent: int = Field(default=80, gt=0)
    width: int = Field(default=64, gt=0)
    discriminator_width: int = Field(default=64, gt=0)
    seed: int = Field(default=0, ge=0)
    precision: Literal["32-true", "bf16-mixed"] = "32-true"

    @model_validator(mode="after")
    def _classes_are_known(self) -> "NearRecipe":
        if self.network == "dcgan" and self.pairing == "class":
            raise ValueError("a dcgan knows no classes: pairing must be nearest")
        return self

    @property
    def paired_by_class(self) -> bool:
        """Whether a drawn image is compared with a random one of its class, and not with the nearest of some."""
        return self.pairing == "class" or (self.pairing is None and self.network == "biggan")

    def identity(self, *, fine: bool) -> dict[str, Any]:
        """Everything that decides the weights after a given number of steps."""
        return self.model_dump(mode="json", exclude={"steps", "fine_steps"} | (set() if fine else _FINE))
