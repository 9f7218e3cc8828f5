"""ShiftedRecipe: how a generator of shifted images is trained."""

from typing import Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel


class ShiftedRecipe(StrictModel):
    r"""pix2pix that redraws images so that they look different and mean the same.

    .. math:: L_G = \mathrm{softplus}(-D(x, G(x))) - λ_p\, d(x, G(x)) + λ_s\, I(G(x)) + λ_y\, \mathrm{CE}(G(x), y)

    with perceptual distance d, mutual information I of an ensemble, and the members' mean cross-entropy (Mukhoti et
    al., "Raising the Bar on the Evaluation of Out-of-Distribution Detection", 2022). pix2pix' own L1 term is left out,
    as it asks for the opposite; its saturating log(1 - D) is the non-saturating form.

    Parameters
    ----------
    steps : of generator and discriminator each.
    batch_size : images of a step.
    learning_rate : of both networks; Adam(.5, .999).
    lambda_perceptual : λ_p; 2 in the paper, with LPIPS. With the features of a classifier for the same classes, images
        of CIFAR-10 hardly change at 2, and are farther from the training images than most corruptions at 9.
    lambda_semantic : λ_s; 1 in the paper.
    lambda_label : λ_y; 0 in the paper, whose loss never sees the label. Low information means that the ensemble is
        sure, not that it is right, and without this term all images may become one class: on CIFAR-10, 93 % frogs.
    partner : the real pairs of the discriminator, on which the paper is silent. ``itself``: (x, x), as in a pix2pix
        that learns to reproduce; ``class``: (x, another image of its class), which asks for a real look of the class
        and not for x.
    flip : mirror every second image.
    width, discriminator_width : channels at full size; see ``UnetShape``.
    seed : decides initial weights, batches and noise.
    precision : of the passes, those of ensemble and distance included; weights are always 32-bit.
    """

    steps: int = Field(default=4_000, gt=0)
    batch_size: int = Field(default=128, gt=1)
    learning_rate: float = Field(default=2e-4, gt=0)
    lambda_perceptual: float = Field(default=9.0, ge=0)
    lambda_semantic: float = Field(default=1.0, ge=0)
    lambda_label: float = Field(default=1.0, ge=0)
    partner: Literal["itself", "class"] = "itself"
    flip: bool = False
    width: int = Field(default=64, gt=0)
    discriminator_width: int = Field(default=64, gt=0)
    seed: int = Field(default=0, ge=0)
    precision: Literal["32-true", "bf16-mixed"] = "32-true"

    def identity(self) -> dict[str, Any]:
        """Everything that decides the weights after a given number of steps."""
        return self.model_dump(mode="json", exclude={"steps"})
