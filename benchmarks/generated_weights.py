"""What each weight of the semantic term does to near images, and what another window of information would keep.

    OODSCOPE_DATA=path/to/packs python benchmarks/generated_weights.py cifar10 --train cifar10_train.npz \\
        --work scratch --output results --device cuda

After the stages makers, base, fine and judges of ``generated_study.py``, with the same options. Two tables in markdown:
for each weight the makers' mutual information and how often the judges see the class that an image was made from; for
windows of the makers' information, over all weights together, the same share, and the AUROC of MSP and energy on each
network under test, beside the first real near set.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import oodscope as oods
from generated_making import JUDGES, UNDER_TEST
from generated_study import Study, read_options
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.sets.pool import draw_near, read_pool
from oodscope.metrics.generated.information import Window
from oodscope.metrics.ranking.ranking import Ranking

DRAWN = 2000
WINDOWS = ((0, 0.1), (0.1, 0.2), (0.2, 0.3), (0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (0.6, 0.8), (0.8, 1.4))
WIDE = tuple((low / 100, low / 100 + 0.4) for low in range(10, 55, 5))

Scores = Sequence[NDArray[np.float64]]


@torch.no_grad()
def msp_and_energy(tested: EnsembleInformation, pixels: Tensor) -> Scores:
    """Of every network, larger = more OOD."""
    parts = [tested.logits(part.to(tested.device).float() / 255).cpu() for part in torch.split(pixels, 500)]
    logits = torch.cat(parts, 1)
    detectors = [oods.create_detector(name) for name in ("msp", "ebo")]
    return [detector.score(oods.Activations(logits=each)).numpy() for detector in detectors for each in logits]


def aurocs(known: Scores, unknown: Scores) -> str:
    return " | ".join(f"{100 * Ranking(inside, outside).auroc:.1f}" for inside, outside in zip(known, unknown))


def main() -> None:
    study = Study(read_options())
    _, makers = study.terms()
    judges = EnsembleInformation(study.ensemble(JUDGES))
    tested = EnsembleInformation(study.ensemble(UNDER_TEST))
    told, agreed, images = [], [], []
    print(f"# Weights of the information term, {study.options.dataset}\n")
    print("| λ_s | information | quartiles | judges see the class | variety |\n|---|---|---|---|---|")
    base = study.base()
    for number, made in enumerate([base, *study.fine()]):
        pool = draw_near(base, [made], makers, DRAWN, study.options.seed + number)
        right = (judges.information_and_class(pool.pixels)[1] == pool.labels).numpy()
        information = makers.of_pixels(pool.pixels)
        quartiles = ", ".join(f"{each:.3f}" for each in np.quantile(information, (0.25, 0.5, 0.75)))
        weight = "plain" if made.lambda_semantic is None else f"{made.lambda_semantic:g}"
        share = f"{100 * right.mean():.1f} %"
        print(f"| {weight} | {information.mean():.3f} | {quartiles} | {share} | {made.health.variety.share:.3f} |")
        if made.lambda_semantic is not None and made.health.collapsed is None:
            told.append(information)
            agreed.append(right)
            images.append(pool.pixels)
    every, right = np.concatenate(told), np.concatenate(agreed)
    heads = [f"{score} {name}" for score in ("MSP", "energy") for name in study.networks.tested]
    print(f"\n| images | count | judges see the class | {' | '.join(heads)} |\n|---|---|---|{'---|' * len(heads)}")
    known_scores = msp_and_energy(tested, read_pool(study.sets.test, study.frame).pixels)
    if study.sets.near:
        real = study.sets.near[0]
        scores = msp_and_energy(tested, read_pool(real, study.frame).pixels)
        print(f"| {real.name} | {len(real):,} | | {aurocs(known_scores, scores)} |")
    pooled = msp_and_energy(tested, torch.cat(images))
    for low, high in (*WINDOWS, *WIDE):
        inside = Window(low, high).keeps(every)
        if inside.any():
            share = f"{100 * right[inside].mean():.1f} %"
            kept = aurocs(known_scores, [scores[inside] for scores in pooled])
            print(f"| {low:.2f} to {high:.2f} | {inside.sum():,} | {share} | {kept} |", flush=True)


if __name__ == "__main__":
    main()
