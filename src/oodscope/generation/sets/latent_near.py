r"""Near outliers from a plain generator: a search of its latents instead of a training per λ."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.base.hashing import fingerprint
from oodscope.execution.progress import SILENT, Progress
from oodscope.generation.distances.perceptual import FeatureDistance, Perceptual
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.near.recipe import LAMBDAS
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.generation.search.search import search
from oodscope.generation.variations.base import Variation
from oodscope.training.loop.randomness import generator as random_numbers

REFERENCES = 8
"""In-distribution images that a drawn one is compared with; the nearest counts."""


class NearEnergy:
    r"""Low where an image looks like a training image and an ensemble cannot agree what it shows.

    .. math:: E(x) = λ_p \min_{m} d(x_m, x) - λ_s\, I(x)

    The terms of "Raising the Bar in OoD Detection" (arXiv 2209.11960) with the signs of its generator's loss. Which
    training image a drawn one is compared with, the paper leaves open; the nearest of a few is taken, because a mean
    over all would pull every image to the average one.

    Parameters
    ----------
    perceptual, semantic : the distance :math:`d` and the mutual information :math:`I`.
    references : ``[M, C, H, W]`` images in [0, 1].
    lambda_semantic, lambda_perceptual : weights.
    """

    name = "near-energy"
    differentiable = True

    def __init__(
        self,
        perceptual: Perceptual,
        semantic: EnsembleInformation,
        references: Tensor,
        lambda_semantic: float,
        lambda_perceptual: float = 1.0,
    ) -> None:
        self.perceptual, self.semantic = perceptual, semantic
        self.references = references.to(semantic.device)
        self.lambda_semantic, self.lambda_perceptual = lambda_semantic, lambda_perceptual

    @property
    def device(self) -> torch.device:
        return self.semantic.device

    @property
    def fingerprint(self) -> str:
        """Of all that decides an energy: a search that was begun with another one is not gone on with."""
        return fingerprint(
            self.perceptual.name,
            getattr(self.perceptual, "fingerprint", None),
            self.semantic.fingerprints,
            self.references.cpu().numpy(),
            [self.lambda_perceptual, self.lambda_semantic],
        )

    def score_tensor(self, images: Tensor) -> Tensor:
        """``[N]`` energies of images in [0, 1]."""
        images = images.to(self.device)
        nearest = self.distances(images).amin(dim=1)
        return self.lambda_perceptual * nearest - self.lambda_semantic * self.semantic(images).to(nearest)

    def distances(self, images: Tensor) -> Tensor:
        """``[N, M]`` perceptual distances to every reference."""
        if isinstance(self.perceptual, FeatureDistance):
            return self.perceptual.to_each(self.references, images)
        each = [self.perceptual(one.expand_as(images), images) for one in self.references.unsqueeze(1)]
        return torch.stack(each, dim=1)


def latent_near(
    variation: Variation,
    perceptual: Perceptual,
    semantic: EnsembleInformation,
    id_images: Tensor,
    labels: Tensor,
    count: int,
    *,
    lambdas: Sequence[float] = LAMBDAS,
    lambda_perceptual: float = 1.0,
    budget: int = 200,
    sampler: Sampler | None = None,
    chains: int = 100,
    seed: int = 0,
    folder: Path | str | None = None,
    progress: Progress = SILENT,
) -> tuple[Tensor, Tensor]:
    """``count`` images in [0, 1] on the CPU, and the class of the training image that each is nearest to.

    Chains walk in the generator's latents by the law of ``NearEnergy``; where they end, they are samples of it, as the
    samples of a generator trained with that loss would be. They are searched in rounds; every round has its own
    references and the next λ of the grid, so the pool has all of them in equal parts.

    Parameters
    ----------
    variation : ``GanVariation`` of a generator trained on in-distribution images.
    id_images, labels : uint8 ``[N, C, H, W]`` and ``[N]``: where references come from.
    count : images to make, over all λ.
    lambdas, lambda_perceptual : weights of the energy.
    budget : energies per chain.
    sampler : how chains move; by default Metropolis-Hastings at temperature .1, its step adapted in the first half.
    chains : of a round.
    seed : of references and chains.
    folder : where finished rounds are kept; a killed call goes on after the last of them.
    """
    if variation.conditional:
        raise DataError(f"{variation.name} varies images; near outliers are searched among the drawings of a generator")
    moves = sampler or MetropolisHastings(temperature=0.1, adapt=budget // 2)
    drawn, nearest = [], []
    for number, start in enumerate(range(0, count, chains)):
        rows = torch.randperm(len(id_images), generator=random_numbers("references", seed, number))[:REFERENCES]
        weight = float(lambdas[number % len(lambdas)])
        energy = NearEnergy(perceptual, semantic, id_images[rows].float() / 255, weight, lambda_perceptual)
        found = search(
            energy,
            variation,
            moves,
            budget,
            chains=min(chains, count - start),
            block=chains,
            seed=int(fingerprint("round", seed, number)[:8], 16),
            folder=None if folder is None else Path(folder) / f"round-{number:04d}",
            progress=progress,
        )
        with torch.no_grad():
            images = variation.to(energy.device)(found.last.to(energy.device))
            nearest.append(labels[rows[energy.distances(images).argmin(dim=1).cpu()]])
        drawn.append(images.cpu())
    return torch.cat(drawn), torch.cat(nearest)
