"""Adversarial training: the network learns from the worst image in a ball around each training image."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.base.paper import Paper
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.perturbation import Attack, Ball
from oodscope.training.recipe import Batch, Step


class L2Adversarial(CrossEntropy):
    r"""Cross-entropy of attacked images, one for each training image and nothing else.

    .. math:: L = \max_{\lVert\delta\rVert \le \varepsilon} \mathrm{CE}(f(x + \delta), y)

    The maximum is looked for by a few steps of projected gradient ascent with the network in evaluation mode; its
    statistics then follow the attacked images. The regimes of the human-centric study (arXiv 2211.16778), with the
    networks of Salman et al., are ResNet-50 at 224 px with radii of .01 to 5. Equal root mean squares per pixel at
    32 px are a seventh of these: .0014 to .714. The radius is one of pixels of [0, 1], before normalisation.

    Parameters
    ----------
    norm : ``l2``, or ``linf`` with a radius such as 8/255.
    epsilon : :math:`\varepsilon`, above 0: a radius of 0 is the recipe ``cross_entropy``.
    attack_steps : of the ascent; 3 in the study's networks.
    attack_step : length of a step as a share of the radius.
    attack_start : ``random`` begins at a random image of the ball, ``image`` at the image itself.
    attack_keep : the image of the ``last`` step, or the ``best`` of all that were visited.
    """

    name: ClassVar[str] = "l2_adversarial"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Do Adversarially Robust ImageNet Models Transfer Better?", "Salman et al.", "NeurIPS 2020"
    )
    cost: ClassVar[float | None] = 3.1  # three steps of about .7 of an image forward and backward, and one of these

    epochs: int = Field(default=40, gt=0)
    norm: Literal["linf", "l2"] = "l2"
    epsilon: float = 0.125
    attack_steps: int = Field(default=3, ge=0)
    attack_step: float = Field(default=2 / 3, gt=0)
    attack_start: Literal["random", "image"] = "random"
    attack_keep: Literal["last", "best"] = "last"

    @field_validator("epsilon")
    @classmethod
    def _check_radius(cls, epsilon: float) -> float:
        if not epsilon > 0:
            raise ValueError(f"must be above 0, not {epsilon:g}: without a radius this is the recipe cross_entropy")
        return epsilon

    def attack(self) -> Attack:
        """How images are attacked."""
        return Attack(
            Ball(self.norm, self.epsilon),
            self.attack_steps,
            self.attack_step * self.epsilon,
            random_start=self.attack_start == "random",
            keep=self.attack_keep,
        )

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        def objective(images: Tensor) -> Tensor:
            return cross_entropy(logits_of(model(images)), batch.labels, reduction="none")

        images = self.attack()(model, objective, batch.images, batch.scale, batch.draws)
        return super().loss(model, batch._replace(images=images))
