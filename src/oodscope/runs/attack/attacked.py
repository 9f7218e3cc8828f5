"""Attacked: a detector under attack, with what it says of the in-distribution images."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from oodscope.base.errors import DataError, DetectorError, StorageError
from oodscope.base.files import atomic_path
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.deploy.scorer import Scorer
from oodscope.execution.progress import SILENT, Progress
from oodscope.generation.variations.base import Variation
from oodscope.metrics.scores import FloatArray, IntArray, check_scores
from oodscope.models.classifier.network import full_precision

BATCH = 500


class PixelView:
    """Reads images as float pixels in [0, 1] of the size that the scorers take.

    A scorer with a classifier sees what its preprocessing leaves of a picture, before the scaling of pixel values;
    a function sees pictures as they are, all of one size. An attack shows one detector's worst images to all others,
    so all of them must take images of one size.

    Parameters
    ----------
    scorers : whoever is attacked, by name.
    """

    def __init__(self, scorers: Mapping[str, TensorScorer]) -> None:
        if not scorers:
            raise DetectorError("no detector to attack; give at least one scorer")
        shaped = {name: scorer for name, scorer in scorers.items() if isinstance(scorer, Scorer)}
        shapes = {name: (len(each.pixels.scale), *each.pixels.size) for name, each in shaped.items()}
        if len(set(shapes.values())) > 1:
            sizes = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
            raise DetectorError(f"detectors attacked together must take images of one size; these differ: {sizes}")
        self._scorer = next(iter(shaped.values()), None)

    def read(self, images: ImageSet, rows: Sequence[int] | IntArray) -> Tensor:
        """Pixels ``[len(rows), C, H, W]`` on the CPU."""
        numbers = np.asarray(rows, dtype=np.int64)
        if self._scorer is not None:
            scale, offset = (part.cpu() for part in (self._scorer.pixels.scale, self._scorer.pixels.offset))
            prepared = self._scorer.classifier.prepare(images.pictures(numbers))
            return ((prepared - offset) / scale).clamp(0, 1)
        pictures = [np.atleast_3d(picture) for picture in images.images(numbers)]
        if len({picture.shape for picture in pictures}) > 1:
            raise DataError(f"images of {images.name} differ in size; a function of tensors needs images of one size")
        return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255

    def batches(self, images: ImageSet) -> Iterator[Tensor]:
        """The whole set, some images at a time."""
        for start in range(0, len(images), BATCH):
            yield self.read(images, range(start, min(start + BATCH, len(images))))

    def rows(self, images: ImageSet, rows: Sequence[int] | IntArray) -> Tensor:
        """Some images of a set, in this order: the sources of chains."""
        starts = range(0, len(rows), BATCH)
        return torch.cat([self.read(images, rows[start : start + BATCH]) for start in starts])


def as_pictures(pixels: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Pixels in [0, 1] as uint8 pictures ``[N, H, W, C]``."""
    levels = (pixels.detach().float().cpu() * 255).round().clamp(0, 255).to(torch.uint8)
    return np.ascontiguousarray(levels.permute(0, 2, 3, 1).numpy())


_LOOKS, _SAME = 16, 1e-2
"""Images that remembered scores are checked on, and how far they may be off, in deviations of ID validation."""


@dataclass(frozen=True)
class Attacked:
    """A scorer and its scores of ID and source images, in float32 and from the same pixels that a search starts from.

    Parameters
    ----------
    id_val : they set the scale of its energy.
    id_test : what outliers are ranked among.
    sources : scores of the images that chains start from.
    seconds : that it took to score ``id_test``.
    """

    name: str
    scorer: TensorScorer
    id_val: FloatArray
    id_test: FloatArray
    sources: FloatArray
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
    view: PixelView,
    id_val: ImageSet,
    id_test: ImageSet,
    pool: Tensor,
    file: Path | None = None,
    progress: Progress = SILENT,
) -> Attacked:
    """Score ID images and source images once. Validation comes first: the time of the others holds no warming up.

    Parameters
    ----------
    pool : the source images.
    file : where the scores are kept. A search that goes on needs the very numbers that it began with: they set the
        scale of its energy, and a device may round them otherwise the next time.
    """
    sets = {"id_val": id_val.fingerprint, "id_test": id_test.fingerprint, "sources": fingerprint(pool.numpy())}
    if file is not None and file.exists():
        return _remembered(name, scorer, view, id_val, sets, file)
    with progress.stage(f"{name}: ID images", len(id_val) + len(id_test)) as advance:
        val = _scores(name, scorer, view.batches(id_val))
        advance(len(id_val))
        test, seconds = [], 0.0
        for pixels in view.batches(id_test):
            on_device = pixels.to(scorer.device)
            started = perf_counter()
            test.append(_scores(name, scorer, [on_device]))
            seconds += perf_counter() - started
            advance(len(pixels))
    sources = _scores(name, scorer, torch.split(pool, BATCH))
    attacked = Attacked(name, scorer, val, np.concatenate(test), sources, seconds)
    if file is not None:
        with atomic_path(file) as temporary:
            kept = {each: getattr(attacked, each) for each in sets}
            save_file(kept, temporary, metadata={**sets, "seconds": repr(seconds)})
    return attacked


def _remembered(
    name: str, scorer: TensorScorer, view: PixelView, id_val: ImageSet, sets: Mapping[str, str], file: Path
) -> Attacked:
    """What an earlier attack found, if it was one on this detector and these images."""
    try:
        with safe_open(file, framework="numpy") as content:
            header = content.metadata()
            val, test, sources = (np.asarray(content.get_tensor(each), dtype=np.float64) for each in sets)
            attacked = Attacked(name, scorer, val, test, sources, float(header["seconds"]))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{file}: not the ID scores of an attack ({error}); delete it") from error
    again = _scores(name, scorer, [view.read(id_val, range(min(_LOOKS, len(id_val))))])
    apart = float(np.abs(again - val[: len(again)]).max())
    if {role: header.get(role) for role in sets} != sets or apart > _SAME * max(float(val.std()), 1e-12):
        raise StorageError(f"{file.parent} belongs to an attack on another detector, or with other images; delete it")
    return attacked


def _scores(name: str, scorer: TensorScorer, batches: Iterable[Tensor]) -> FloatArray:
    # as a search scores its best states: without the shortcuts of tensor cores
    with full_precision(scorer.device), torch.no_grad():
        parts = [scorer.score_tensor(pixels.to(scorer.device)).double().cpu().numpy() for pixels in batches]
    return check_scores(np.concatenate(parts), f"{name}: scores")


def found_images(variation: Variation, points: Tensor, images: Tensor) -> Iterator[Tensor]:
    """The images that points stand for, some at a time, on the device of the variation's parameters."""
    for start in range(0, len(points), BATCH):
        part = slice(start, start + BATCH)
        own = images[part].to(points.device) if variation.conditional else None
        with torch.no_grad():
            yield variation(points[part], own)


def transfer(
    attacked: Sequence[Attacked], variation: Variation, points: Mapping[str, Tensor], images: Tensor
) -> dict[tuple[str, str], FloatArray]:
    """Scores by (judge, detector that the images were found against).

    Parameters
    ----------
    points : what each detector's own search found.
    """
    scores = {}
    for against in attacked:
        device = against.scorer.device
        pixels = list(found_images(variation.to(device), points[against.name].to(device), images))
        for judge in attacked:
            scores[judge.name, against.name] = judge.score(pixels)
    return scores
