"""Units: what is trained together, and what is finished, recorded and skipped as one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodscope.data.folds.fold import CrossvalFold
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT
from oodscope.runs.crossval.draws import Divisions, Draw, Pair, Rows, TrainingRows, all_draws
from oodscope.runs.crossval.judging import FoldScores, Judges, Sample
from oodscope.runs.crossval.plan import CrossValidationPlan, FoldDetector
from oodscope.runs.crossval.trainer import FoldModel, Trainer


@dataclass(frozen=True, eq=False)
class Unit:
    """A draw of one ID set, with all the pairs that the set is part of.

    Parameters
    ----------
    number : of the ID set.
    """

    number: int
    draw: Draw
    pairs: tuple[Pair, ...]

    @property
    def name(self) -> str:
        """Of its record."""
        return f"{self.draw.name}-id{self.number}"

    @property
    def id_set(self) -> ImageSet:
        return self.pairs[0].id_set


def batches_of_units(plan: CrossValidationPlan, pairs: Sequence[Pair], at_once: int) -> list[list[Unit]]:
    """Units that are trained together: so many draws of one ID set, then the same draws of the next.

    The grouping follows from the plan alone. Whatever is already finished, a batch is trained whole, because the last
    digits of a batched computation may depend on the batch.
    """
    members: dict[str, list[Pair]] = {}
    for pair in pairs:
        members.setdefault(pair.id_set.name, []).append(pair)
    draws = list(all_draws(plan))
    return [
        [Unit(number, draw, tuple(group)) for draw in draws[start : start + at_once]]
        for start in range(0, len(draws), at_once)
        for number, group in enumerate(members.values())
    ]


class UnitScorer:
    """Trains the networks of a batch of units and scores its units one by one.

    Parameters
    ----------
    places : the folder that long trainings keep what they need to go on in, one folder per unit.
    """

    def __init__(
        self,
        plan: CrossValidationPlan,
        trainer: Trainer,
        detectors: Sequence[FoldDetector],
        divisions: Divisions,
        places: Path,
    ) -> None:
        self.plan, self.trainer, self.divisions, self.places = plan, trainer, divisions, places
        self.judges = Judges(detectors, trainer.device)
        self.seconds = {"train": 0.0, "expose": 0.0, "score": 0.0}
        """What each kind of work took; each ends on the host, so an accelerator has finished it."""
        self._names: dict[str, NDArray[Any]] = {}

    def score(self, batch: Sequence[Unit], wanted: Sequence[Unit]) -> Iterator[tuple[Unit, list[FoldScores]]]:
        """The scores of the ``wanted`` units of a batch, each when the one before was taken."""
        images, pairs = batch[0].id_set, batch[0].pairs
        with self._clock("train"):
            plain = self.trainer.train(images, [self._rows(unit, pairs[0], "plain") for unit in batch], SILENT)
        with self._clock("expose"):
            exposed = {
                pair: self.trainer.expose(
                    plain, images, pair.ood_set, [self._rows(unit, pair, f"exposed-{at}") for unit in batch], SILENT
                )
                for at, pair in enumerate(pairs if self.plan.outlier_exposure else ())
            }
        for position, unit in enumerate(batch):
            if unit in wanted:
                with self._clock("score"):
                    scores = [self._judge("plain", plain[position], unit, pairs)]
                    scores += [
                        self._judge("outlier_exposure", models[position], unit, [pair])
                        for pair, models in exposed.items()
                    ]
                yield unit, scores

    def _judge(self, training: str, model: FoldModel, unit: Unit, pairs: Sequence[Pair]) -> FoldScores:
        fold = self.divisions.of(pairs[0], unit.draw)
        train, val, test = (model.activations(unit.id_set, rows) for rows in (fold.id_train, fold.id_val, fold.id_test))
        outliers = {
            pair.name: model.activations(pair.ood_set, self.divisions.of(pair, unit.draw).ood_test) for pair in pairs
        }
        samples = [self._sample(unit.id_set, rows) for rows in (fold.id_val, fold.id_test)]
        samples += [self._sample(pair.ood_set, self.divisions.of(pair, unit.draw).ood_test) for pair in pairs]
        return replace(self.judges.score(training, train, val, test, outliers), samples=tuple(samples))

    def _sample(self, images: ImageSet, rows: Rows) -> Sample:
        if images.name not in self._names:
            self._names[images.name] = np.array(images.sample_ids(), dtype=object)
        return Sample(images.name, self._names[images.name][rows], images.labels[rows])

    def forget(self, unit: Unit) -> None:
        """Remove what its trainings left, once its scores are recorded."""
        rmtree(self.places / unit.name, ignore_errors=True)

    def _rows(self, unit: Unit, pair: Pair, training: str) -> TrainingRows:
        fold: CrossvalFold = self.divisions.of(pair, unit.draw)
        place = self.places / unit.name / training
        return TrainingRows(fold.id_train, fold.id_val, unit.draw.seed(self.plan), fold.ood_train, place)

    @contextmanager
    def _clock(self, what: str) -> Iterator[None]:
        begun = perf_counter()
        yield
        self.seconds[what] += perf_counter() - begun
