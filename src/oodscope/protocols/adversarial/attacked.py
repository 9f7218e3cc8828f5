"""Attacked: a detector under attack, with what it says of the in-distribution images."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from oodscope.base.errors import StorageError
from oodscope.base.files import atomic_path
from oodscope.data.imageset import ImageSet
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.execution.progress import SILENT, Progress
from oodscope.metrics.scores import FloatArray, check_scores
from oodscope.models.classifier.network import full_precision
from oodscope.protocols.adversarial.frame import Frame

_LOOKS, _SAME = 16, 1e-2
"""Images that remembered scores are checked on, and how far they may be off, in deviations of ID validation."""


@dataclass(frozen=True)
class Attacked:
    """A scorer and its scores of the ID images, in float32 and from the same pixels that a search starts from.

    Parameters
    ----------
    id_val : they set the scale of its energy.
    id_test : what outliers are ranked among.
    seconds : that it took to score ``id_test``.
    """

    name: str
    scorer: TensorScorer
    id_val: FloatArray
    id_test: FloatArray
    seconds: float

    @property
    def microseconds_per_image(self) -> float:
        """Of one pass over ID test images, network included."""
        return 1e6 * self.seconds / self.id_test.size

    def standardised(self, scores: FloatArray) -> FloatArray:
        """Scores in the unit of an attack: 0 is the mean of ID validation, 1 their standard deviation."""
        return np.asarray((scores - self.id_val.mean()) / max(float(self.id_val.std()), 1e-12))

    def score(self, batches: Iterable[Tensor]) -> FloatArray:
        """What it says of pixels; NaN and infinity are refused by name."""
        return _scores(self.name, self.scorer, batches)


def aim(
    name: str,
    scorer: TensorScorer,
    frame: Frame,
    id_val: ImageSet,
    id_test: ImageSet,
    file: Path | None = None,
    progress: Progress = SILENT,
) -> Attacked:
    """Score the ID images once. Validation images come first, so that the time of the others holds no warming up.

    Parameters
    ----------
    file : where the scores are kept. A search that goes on needs the very numbers that it began with: they set the
        scale of its energy, and a device may round them otherwise the next time.
    """
    sets = {"id_val": id_val.fingerprint, "id_test": id_test.fingerprint}
    if file is not None and file.exists():
        return _remembered(name, scorer, frame, id_val, sets, file)
    with progress.stage(f"{name}: ID images", len(id_val) + len(id_test)) as advance:
        val = _scores(name, scorer, frame.batches(id_val))
        advance(len(id_val))
        test, seconds = [], 0.0
        for pixels in frame.batches(id_test):
            on_device = pixels.to(scorer.device)
            started = perf_counter()
            test.append(_scores(name, scorer, [on_device]))
            seconds += perf_counter() - started
            advance(len(pixels))
    attacked = Attacked(name, scorer, val, np.concatenate(test), seconds)
    if file is not None:
        with atomic_path(file) as temporary:
            kept = {"id_val": attacked.id_val, "id_test": attacked.id_test}
            save_file(kept, temporary, metadata={**sets, "seconds": repr(seconds)})
    return attacked


def _remembered(
    name: str, scorer: TensorScorer, frame: Frame, id_val: ImageSet, sets: Mapping[str, str], file: Path
) -> Attacked:
    """What an earlier attack found, if it was one on this detector and these images."""
    try:
        with safe_open(file, framework="numpy") as content:
            told = content.metadata()
            val, test = (np.asarray(content.get_tensor(each), dtype=np.float64) for each in sets)
            attacked = Attacked(name, scorer, val, test, float(told["seconds"]))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{file}: not the ID scores of an attack ({error}); delete it") from error
    again = _scores(name, scorer, [frame.read(id_val, range(min(_LOOKS, len(id_val))))])
    apart = float(np.abs(again - val[: len(again)]).max())
    if {role: told.get(role) for role in sets} != sets or apart > _SAME * max(float(val.std()), 1e-12):
        raise StorageError(
            f"{file.parent} belongs to an attack on another detector, or with other ID images; delete it"
        )
    return attacked


def _scores(name: str, scorer: TensorScorer, batches: Iterable[Tensor]) -> FloatArray:
    # as a search scores its best states: without the shortcuts of tensor cores
    with full_precision(scorer.device), torch.no_grad():
        found = [scorer.score_tensor(pixels.to(scorer.device)).double().cpu().numpy() for pixels in batches]
    return check_scores(np.concatenate(found), f"{name}: scores")
