"""GanRecipe: how a generator is trained."""

from typing import Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel


class GanRecipe(StrictModel):
    """Adversarial training with the non-saturating logistic loss, R1, Adam(0, .99) and an averaged generator.

    The defaults are those of StyleGAN2 for CIFAR where it names them (two mapping layers, R1 of .01, learning rate
    2.5e-3, neither style mixing nor path lengths), in a network small enough that a search spends its time in the
    detector. The rate is constant: a training that was stopped by the clock is one that took fewer steps.

    Parameters
    ----------
    steps : of generator and discriminator each.
    batch_size : images of a step, a multiple of 4.
    learning_rate : of both networks, constant.
    r1 : weight γ of the gradient penalty; raise it tenfold where training is unstable.
    r1_every : the penalty is taken every so many steps, that many times as strong.
    average_images : after so many images the averaged generator has half forgotten a weight; early on it forgets
        faster, after a twentieth of the images seen.
    augment : the share of images, real and generated alike, that the discriminator sees shifted, recoloured and partly
        covered; 0 for none. Some thousands of images are otherwise known to it by heart, and it stops teaching.
    flip : mirror every second real image; off, because mirrored digits and letters are other signs.
    latent : dimension of the sphere.
    width, discriminator_width : channels at full size; see ``GeneratorShape``.
    mapping_layers : of the generator.
    seed : decides initial weights, noise, latents, batches and views.
    precision : of the passes; weights, styles and the gradient penalty are always 32-bit.
    """

    steps: int = Field(default=10_000, gt=0)
    batch_size: int = Field(default=128, gt=0, multiple_of=4)
    learning_rate: float = Field(default=2.5e-3, gt=0)
    r1: float = Field(default=0.01, ge=0)
    r1_every: int = Field(default=16, gt=0)
    average_images: int = Field(default=500_000, gt=0)
    augment: float = Field(default=0.5, ge=0, le=1)
    flip: bool = False
    latent: int = Field(default=64, ge=2)
    width: int = Field(default=48, gt=0)
    discriminator_width: int = Field(default=64, gt=0)
    mapping_layers: int = Field(default=2, gt=0)
    seed: int = Field(default=0, ge=0)
    precision: Literal["32-true", "bf16-mixed"] = "32-true"

    def identity(self) -> dict[str, Any]:
        """Everything that decides the weights after a given number of steps."""
        return self.model_dump(mode="json", exclude={"steps"})
