"""Scrutiny: what a scorer must be before chains are sent against it."""

import torch
from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.generation.target import Pipeline

SPREAD, ROUNDING = 1e-5, 1e-6
"""Two evaluations may differ by this share of the scores' spread, and by float32 rounding."""


def check_pipeline(scorer: str, pipeline: Pipeline, points: Tensor, images: Tensor | None) -> None:
    """Refuse a scorer whose scores have the wrong shape, are not finite, or change when asked again.

    The minimum over many noisy scores is biased low: it finds luck, not weakness.
    """
    with torch.no_grad():
        first, second = pipeline(points, images), pipeline(points, images)
    for scores in (first, second):
        if not isinstance(scores, Tensor) or scores.shape != points.shape[:1]:
            shape = list(getattr(scores, "shape", ())) or type(scores).__name__
            raise DetectorError(f"{scorer}: turns {len(points)} images into {shape}; needed: one score per image")
    broken = (~torch.isfinite(first)).nonzero().flatten().tolist()
    if broken:
        raise DetectorError(
            f"{scorer}: scores are NaN or infinite for {len(broken)} of {len(first)} start images (row {broken[0]})"
        )
    apart = float((first - second).abs().max())
    if apart > max(SPREAD * float(first.double().std(correction=0)), ROUNDING * float(first.abs().max())):
        raise DetectorError(
            f"{scorer}: not deterministic: the same images scored twice differ by {apart:.3g}. "
            "Fix its randomness (dropout, noise) before searching for its worst images"
        )
