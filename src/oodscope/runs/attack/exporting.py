"""What a search found, as an ordinary sealed set: to evaluate on, to train on, to send on."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.base.files import slug
from oodscope.data.generated.files import write_generated
from oodscope.data.imageset import ImageSet
from oodscope.generation.variations.base import Variation
from oodscope.metrics.ranking.minrank import outlier_ranks
from oodscope.runs.attack.attacked import BATCH, as_pictures, found_images
from oodscope.runs.attack.trace import AttackTrace

OUTLIERS = "outliers"
"""Folder of the exported sets, in that of an attack."""


def export_found(
    trace: AttackTrace,
    name: str,
    variation: Variation,
    sources: Tensor,
    outliers: ImageSet,
    rows: NDArray[np.int64],
    folder: Path,
) -> Path:
    """Write the worst image of every chain of one search as a generated set; its folder.

    It opens wherever images are asked for: ``--near DIR`` or ``--ood-train DIR``, ``source: generated`` in a benchmark.
    Pixels are rounded to 8 bits, and the recipe says the AUROC of the rounded images.

    Parameters
    ----------
    rows : of ``outliers``: the source image of each chain.
    folder : under which the set gets a folder of its own.
    """
    attacked, result = trace.attacked, trace.results[name]
    pixels = torch.cat(list(found_images(variation.to("cpu"), result.points, sources)))
    pictures = as_pictures(pixels)
    rounded = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    scores = attacked.score(torch.split(rounded, BATCH))
    recipe = {
        "attack": {**result.description, "detector": attacked.name, "variation_name": name},
        "outliers": {"name": outliers.name, "fingerprint": outliers.fingerprint},
        "auroc of these images": outlier_ranks(attacked.id_test, scores).auroc,
        "scores": [round(float(score), 6) for score in scores],
    }
    place = folder / slug(f"{attacked.name}-{name}")
    known = variation.conditional and bool(outliers.class_names)
    write_generated(
        place,
        pictures,
        outliers.labels[rows] if known else None,
        recipe,
        kind="attacked",
        class_names=outliers.class_names if known else (),
        rows=rows if variation.conditional else None,
    )
    return place
