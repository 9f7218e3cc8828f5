"""What a stream of scores is measured by: separation within windows, alarms at thresholds, bursts."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.metrics.scores import FloatArray

Flags = NDArray[np.bool_]


def window_auroc(scores: FloatArray, is_ood: Flags, windows: int = 10) -> float:
    """AUROC of OOD against ID images of the same window, ties counting half; NaN where no window holds both.

    A score that drifts along the stream ranks late images above early ones, whatever they show; within a window it
    cannot. Windows are weighted by their pairs.
    """
    wins = pairs = 0.0
    for won, tried in window_pairs(scores, is_ood, windows):
        wins, pairs = wins + won, pairs + tried
    return wins / pairs if pairs else float("nan")


def window_pairs(scores: FloatArray, is_ood: Flags, windows: int) -> Iterator[tuple[float, int]]:
    """For each window, in order: pairs of an OOD and an ID image that the score orders rightly, and all pairs."""
    for part in np.array_split(np.arange(len(scores)), windows):
        known, foreign = np.sort(scores[part][~is_ood[part]]), scores[part][is_ood[part]]
        won = (known.searchsorted(foreign, "left") + known.searchsorted(foreign, "right")).sum() / 2
        yield float(won), len(known) * len(foreign)


def rolling_thresholds(held_out: FloatArray, scores: FloatArray, share: float, window: int) -> FloatArray:
    """For each image of a stream the quantile ``1 - share`` of the ``window`` scores before it.

    The window begins with the last scores of ``held_out`` ID images; every score enters it, since nobody says which
    images are OOD. So about ``share`` of all images is flagged, however many are OOD: such a threshold follows a drift,
    and it follows the outliers too.
    """
    if len(held_out) < window:
        raise DataError(
            f"a rolling threshold over {window} scores needs as many ID validation images, not {len(held_out)}"
        )
    before = np.concatenate([held_out[-window:], scores])[:-1]
    rows: FloatArray = np.quantile(sliding_window_view(before, window), 1 - share, axis=1, method="higher")
    return rows


@dataclass(frozen=True)
class Burst:
    """A run of OOD images: how many, and how many had come when half of them were flagged; None if that never was."""

    images: int
    until_half: int | None

    @property
    def waited(self) -> int:
        """Images until half of the burst was flagged, at most its length: what survival analysis calls restricted."""
        return self.images if self.until_half is None else self.until_half


def bursts(is_ood: Flags, flagged: Flags) -> list[Burst]:
    """Every run of consecutive OOD images; two bursts that touch are one."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_ood, [False]]).astype(np.int8)))
    found = []
    for start, stop in edges.reshape(-1, 2).tolist():
        caught = flagged[start:stop].cumsum()
        half = np.flatnonzero(2 * caught >= stop - start)
        found.append(Burst(stop - start, int(half[0]) + 1 if len(half) else None))
    return found
