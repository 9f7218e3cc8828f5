"""Schedule: in which order ID and OOD images come. A number of a stream detector without its schedule is no number."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from oodscope.base.errors import DataError

Order = Literal["mixed", "bursts", "id_first", "ood_first"]


@dataclass(frozen=True)
class Schedule:
    """A seeded stream over two pools of images.

    Parameters
    ----------
    share : of OOD images in the stream.
    order : ``mixed``; ``bursts`` of ``burst`` OOD images; all ID images first; all OOD images first.
    images : length of the stream.
    batch : images that arrive together.
    delay : images at the beginning that are ID whatever the order says.
    drift : the ID images come from the second ID pool (csID) with a chance that grows to this share at the end.
    burst : OOD images in a burst; for the order ``bursts``.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # a misspelt key of a job is an error

    share: float = 0.5
    order: Order = "mixed"
    images: int = 1000
    batch: int = 64
    delay: int = 0
    drift: float = 0.0
    burst: int = 50

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or self.order not in get_args(Order):
            raise DataError(f"a schedule has a share between 0 and 1 and one of {', '.join(get_args(Order))}: {self}")
        if not 0 <= self.delay < self.images or min(self.batch, self.burst) < 1 or not 0 <= self.drift <= 1:
            raise DataError(f"a schedule needs images, batches, bursts and a delay that fit together: {self}")

    @property
    def name(self) -> str:
        """For tables."""
        order = f"bursts of {self.burst}" if self.order == "bursts" else self.order.replace("_", " ")
        parts = [f"{100 * self.share:g} % OOD", order, f"batch {self.batch}"]
        parts += [f"delay {self.delay}"] if self.delay else []
        return ", ".join(parts + ([f"drift to {100 * self.drift:g} %"] if self.drift else []))

    def foreign(self, seed: int) -> NDArray[np.bool_]:
        """Which places of the stream hold OOD images: exactly the share, rounded, and at least one."""
        rng, rest = np.random.default_rng([seed, 0]), self.images - self.delay
        count = max(1, round(self.share * self.images))
        if count >= rest:
            raise DataError(f"{self.name}: {count} OOD images do not fit behind a delay of {self.delay}")
        places = np.zeros(rest, dtype=bool)
        if self.order == "mixed":
            places[rng.permutation(rest)[:count]] = True
        elif self.order == "bursts":
            lengths = [self.burst] * (count // self.burst) + ([count % self.burst] if count % self.burst else [])
            blocks = [np.ones(n, dtype=bool) for n in lengths] + [np.zeros(1, dtype=bool)] * (rest - count)
            places = np.concatenate([blocks[number] for number in rng.permutation(len(blocks))])
        else:
            places[:count] = True
            places = places[::-1].copy() if self.order == "id_first" else places
        return np.concatenate([np.zeros(self.delay, dtype=bool), places])

    def draw(self, seed: int, known: int, foreign: int, shifted: int = 0) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
        """Pool (``id``, ``ood``, ``csid``) and row of each image; rows are drawn anew for a seed, without repeats."""
        rng, is_ood = np.random.default_rng([seed, 1]), self.foreign(seed)
        pools = np.where(is_ood, "ood", "id").astype("<U4")
        if self.drift:
            chance = self.drift * np.arange(self.images) / self.images
            pools[~is_ood & (rng.random(self.images) < chance)] = "csid"
        rows = np.empty(self.images, dtype=np.int64)
        for pool, size in (("id", known), ("ood", foreign), ("csid", shifted)):
            chosen = pools == pool
            if chosen.sum() > size:
                raise DataError(f"{self.name}: needs {chosen.sum()} images of the pool {pool!r}, which has {size}")
            rows[chosen] = rng.permutation(size)[: chosen.sum()]
        return pools, rows


def default_schedules(images: int = 1000, batch: int = 64) -> tuple[Schedule, ...]:
    """One of each kind: equal shares, few OOD images, bursts of them, a drift of the ID images, a late onset."""
    burst, delay = max(1, images // 20), images // 6
    return (
        Schedule(share=0.5, images=images, batch=batch),
        Schedule(share=0.1, images=images, batch=batch),
        Schedule(share=0.1, images=images, batch=batch, order="bursts", burst=burst),
        Schedule(share=0.1, images=images, batch=batch, delay=delay, drift=0.3),
        Schedule(share=0.5, images=images, batch=batch, order="id_first"),
    )
