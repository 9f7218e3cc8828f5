"""Drawing: the images of a stream in their order, with the scores of every entry."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from oodscope.base.errors import DetectorError
from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.detectors.streaming import Described, StreamDetector
from oodscope.detectors.tuning import Fitted
from oodscope.metrics.scores import FloatArray
from oodscope.runs.evaluation.extraction import Extraction
from oodscope.runs.evaluation.scoring import describe_rows

if TYPE_CHECKING:
    import pandas as pd

HELD_OUT = "val"
"""The pool of ID validation images, which come before every stream."""


class Pool:
    """Images that a stream draws from, with what no stream changes: scores of constant entries, descriptions of others.

    Parameters
    ----------
    images : one set, or several taken together.
    """

    def __init__(
        self, benchmark: Benchmark, images: Sequence[ImageSet], extraction: Extraction, fitted: Sequence[Fitted]
    ) -> None:
        import pandas as pd

        roles = {each.name: role for role, each in benchmark.members()}
        probes = [probe for each in fitted for probe in each.detector.probes]
        parts = [extraction.extract(each, probes) for each in images]
        rows = [describe_rows(benchmark, roles[each.name], each, part) for each, part in zip(images, parts)]
        self.rows = pd.concat(rows, ignore_index=True)
        self.scores: dict[str, FloatArray] = {}
        self.described: dict[str, Described] = {}
        for each in fitted:
            if isinstance(each.detector, StreamDetector):
                columns = zip(*(each.detector.describe(part) for part in parts))
                self.described[each.id] = tuple(torch.cat(column) for column in columns)
            else:
                scores = [each.detector.score(part).cpu().numpy() for part in parts]
                self.scores[each.id] = np.concatenate(scores).astype(np.float64)

    def __len__(self) -> int:
        return len(self.rows)


class Arrivals:
    """The images of one stream in order, gathered from their pools.

    Parameters
    ----------
    drawn, rows : of each image its pool and its row there.
    """

    def __init__(self, pools: Mapping[str, Pool], drawn: NDArray[np.str_], rows: NDArray[np.int64]) -> None:
        places = {name: np.flatnonzero(drawn == name) for name in pools if (drawn == name).any()}
        self._parts = [(pools[name], rows[own]) for name, own in places.items()]
        self._order = np.argsort(np.concatenate(list(places.values())))

    def scored(self, fitted: Sequence[Fitted], batch: int) -> "pd.DataFrame":
        """One row per image, with the scores of every entry; stream detectors observe ``batch`` images at a time."""
        import pandas as pd

        rows = pd.concat([pool.rows.iloc[own] for pool, own in self._parts], ignore_index=True)
        frame = rows.iloc[self._order].reset_index(drop=True)
        for each in fitted:
            if isinstance(each.detector, StreamDetector):
                frame[each.id] = self._observed(each, batch)
            else:
                frame[each.id] = np.concatenate([pool.scores[each.id][own] for pool, own in self._parts])[self._order]
        return frame

    def _observed(self, fitted: Fitted, batch: int) -> FloatArray:
        detector = fitted.detector
        assert isinstance(detector, StreamDetector)
        images = self._described(fitted.id)
        detector.start()
        scores = [
            detector.observe_described(tuple(column[start : start + batch] for column in images))
            for start in range(0, len(self._order), batch)
        ]
        found: FloatArray = torch.cat(scores).cpu().numpy().astype(np.float64)
        if not np.isfinite(found).all():
            raise DetectorError(f"{detector.name}: scores of a stream are NaN or infinite")
        return found

    def _described(self, name: str) -> Described:
        order = torch.from_numpy(self._order)
        parts = [tuple(each[torch.from_numpy(own)] for each in pool.described[name]) for pool, own in self._parts]
        return tuple(torch.cat(column)[order.to(column[0].device)] for column in zip(*parts))
