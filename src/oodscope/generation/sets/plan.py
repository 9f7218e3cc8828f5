"""SetPlan: what is asked of a generated set, before anything is computed."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from oodscope.base.config import StrictModel
from oodscope.generation.near.recipe import LAMBDAS, NearRecipe
from oodscope.generation.sets.ensemble import GREY, HETEROGENEOUS
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.training.methods.cross_entropy import CrossEntropy

Kind = Literal["near", "shifted"]
Method = Literal["gan", "latent", "recombination"]


PAPER: dict[Kind, dict[str, Any]] = {
    "near": {
        "method": "gan",
        "perceptual": "lpips",
        "lambdas": LAMBDAS,
        "near": {"network": "biggan", "lambda_perceptual": 1.0},
    },
    "shifted": {
        "method": "gan",
        "perceptual": "lpips",
        "shifted": {"lambda_perceptual": 2.0, "lambda_semantic": 1.0, "lambda_label": 0.0},
    },
}
"""The paper's configuration as far as it prints one: LPIPS, λ_p = 1 and λ_s from .5 to 3 for near images, λ_p = 2,
λ_s = 1 and no label term for shifted ones. Its ensembles (DenseNet-121, ResNet-50, ResNet-110, VGG-16, WRN-28-10,
Inception-v3) are named with ``architectures``."""

WEIGHTS: Mapping[str, Mapping[Kind, float]] = {"lpips": {"near": 1.0, "shifted": 2.0}}
"""λ_p by distance: the paper's with LPIPS. Distances of the form of LPIPS on another network are smaller: 8 and 9."""


def default_weight(perceptual: str, kind: Kind) -> float:
    """λ_p of a distance, where none is given."""
    return WEIGHTS.get(perceptual, {"near": 8.0, "shifted": 9.0})[kind]


def default_architectures(channels: int) -> tuple[str, ...]:
    """Members of the ensemble: small plain networks for grey images such as digits, where residual ones take hours."""
    return GREY if channels == 1 else HETEROGENEOUS


def default_epochs(channels: int) -> int:
    """Of the members: networks for grey images have learnt digits after a few."""
    return 8 if channels == 1 else 30


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
    keep_all : keep shifted images in which the ensemble sees another class, or is in doubt: filters that ask for the
        right class decide beforehand whether a network looks overconfident on the set.
    class_share : the largest share of the images made from one class in which the ensemble may still see it; what is
        above it is dropped, class by class. 1: no bound.
    least_per_class : images that every class should have left; classes with fewer are named in the recipe.

    Examples
    --------
    >>> oods.SetPlan(count=100, pool=500).method
    'recombination'
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
    keep_all: bool = False
    class_share: float = Field(default=0.5, gt=0, le=1)
    least_per_class: int = Field(default=200, ge=0)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "SetPlan":
        if self.pool < self.count:
            raise ValueError(f"a pool of {self.pool} images cannot give {self.count}")
        if self.kind == "shifted" and self.method != "gan":
            raise ValueError(f"shifted images are made by method gan only, not by {self.method}")
        if (self.generator is not None) != (self.method == "latent"):
            raise ValueError("method latent, and no other, needs the generator whose latents it searches")
        return self
