"""How much wider an AUROC's interval is if the classes, not only the images, might have been others."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from oodscope.metrics.ranking.clusters import class_interval, sampling_noise
from oodscope.protocols.samples import Separation, separate
from oodscope.results.scoretable import ScoreTable


def class_ends(separation: Separation, names: Sequence[str], level: float) -> dict[str, Any]:
    """The fields ``class_low`` and ``class_high`` of a measurement; none where a set has fewer than 5 classes."""
    interval = class_interval(
        separation.placements(names),
        id_classes=separation.id_classes,
        ood_classes=separation.ood_classes,
        level=level,
    )
    return {} if interval is None else {"class_low": interval.low, "class_high": interval.high}


def standard_errors(scores: ScoreTable, negatives: Sequence[str] = ("id_test",)) -> pd.DataFrame:
    """The standard error of each AUROC if other images, other OOD classes, or other classes on both sides were drawn.

    One row per detector and OOD set that has classes: ``image``, ``ood_class``, ``both_classes``, the number of
    OOD classes, and ``ratio`` = ``ood_class / image``. A ratio of 2 says that DeLong's interval, which knows of
    images only, is half as wide as a claim about other classes needs.
    """
    rows = []
    for detector, separation in separate(scores, negatives).items():
        for name, classes in separation.ood_classes.items():
            placed = separation.placements([name])
            by_class = {name: classes}
            image = sampling_noise(placed).error
            ood_class = sampling_noise(placed, ood_classes=by_class).error
            rows.append(
                {
                    "detector": detector,
                    "set": name,
                    "auroc": placed.mean,
                    "classes": len(set(classes.tolist())),
                    "image": image,
                    "ood_class": ood_class,
                    "both_classes": sampling_noise(
                        placed, id_classes=separation.id_classes, ood_classes=by_class
                    ).error,
                    "ratio": ood_class / image if image > 0.0 else float("nan"),
                }
            )
    return pd.DataFrame(rows)
