"""SetPlan: what is asked of a generated set, before anything is computed."""

from typing import Literal

from pydantic import Field, model_validator

from oodscope.base.config import StrictModel
from oodscope.generation.near.recipe import LAMBDAS, NearRecipe
from oodscope.generation.sets.ensemble import HETEROGENEOUS
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.training.methods.cross_entropy import CrossEntropy

Kind = Literal["near", "shifted"]
Method = Literal["gan", "latent", "recombination"]


class SetPlan(StrictModel):
    """Everything that is decided about a generated set; the rest follows from it, the images and the seed.

    Parameters
    ----------
    kind : ``near`` looks familiar and means something else; ``shifted`` looks different and means the same.
    method : ``gan`` trains generators, one λ after the other; ``latent`` searches the latents of one plain generator;
        ``recombination`` lays patches of images and trains nothing but the ensemble.
    count : images of the set; fewer if fewer fall into the window.
    pool : images made for it to be chosen from.
    seed : of everything random but the networks.
    architectures, ensemble : members of the ensemble that measures meaning, and how they are trained; member i with
        the seed of the recipe plus i.
    perceptual : the distance, see ``open_perceptual``.
    window : lower and upper end of the mutual information of near images, in nats; by default found, see
        ``select_near``.
    generator : file of the plain generator, or ``python:PACKAGE.MODULE:FUNCTION`` (``latent``).
    lambdas : weights of the semantic term of near images; the samples of all are pooled.
    lambda_perceptual : weight of the perceptual term (``latent``; those of generators are in their recipes).
    budget : energies per chain (``latent``).
    near, shifted : how generators are trained (``gan``).
    pieces, sources : cells a side, and images that one is laid from (``recombination``).
    """

    kind: Kind = "near"
    method: Method = "recombination"
    count: int = Field(gt=0)
    pool: int = Field(gt=0)
    seed: int = Field(default=0, ge=0)
    architectures: tuple[str, ...] = Field(default=HETEROGENEOUS, min_length=2)
    ensemble: CrossEntropy = CrossEntropy(epochs=30)
    perceptual: str = "ensemble"
    window: tuple[float, float] | None = None
    generator: str | None = None
    lambdas: tuple[float, ...] = Field(default=LAMBDAS, min_length=1)
    lambda_perceptual: float = Field(default=1.0, ge=0)
    budget: int = Field(default=200, gt=0)
    near: NearRecipe = NearRecipe()
    shifted: ShiftedRecipe = ShiftedRecipe()
    pieces: int = Field(default=4, ge=2)
    sources: int = Field(default=2, ge=2)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "SetPlan":
        if self.pool < self.count:
            raise ValueError(f"a pool of {self.pool} images cannot give {self.count}")
        if self.kind == "shifted" and self.method != "gan":
            raise ValueError(f"shifted images are made by method gan only, not by {self.method}")
        if (self.generator is not None) != (self.method == "latent"):
            raise ValueError("method latent, and no other, needs the generator whose latents it searches")
        return self
