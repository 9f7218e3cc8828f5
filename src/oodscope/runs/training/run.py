"""Training: networks trained by one recipe, one for each seed, and their learning curves."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DataError
from oodscope.base.files import write_text
from oodscope.document.chapter import Block, Card, Cards, Chapter
from oodscope.document.number import Number
from oodscope.document.table import Cell, Entry, Row, Table, columns
from oodscope.document.wording import percent
from oodscope.metrics.catalog import ACCURACY
from oodscope.metrics.interval import wilson_interval
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.results.run import Run
from oodscope.results.runfile import expect_kind, read_runfile, write_runfile
from oodscope.training.loop.history import Epoch

_FILE = "networks.json"
_LEVEL = 0.95


class TrainedNetwork(StrictModel):
    """One network of a training.

    Parameters
    ----------
    seed : of initial weights, order and augmentation.
    folder : where its weights lie.
    fingerprint : of its weights.
    stages : the epochs of each stage; one stage unless recipes were chained.
    correct, n_test : how many images of ``id_test`` it classifies correctly, and of how many; None where it learnt no
        classes.
    score : of a network that scores images by itself, the mean over ``id_test``.
    """

    seed: int
    folder: str
    fingerprint: str
    stages: list[list[Epoch]] = Field(min_length=1)
    correct: int | None = Field(default=None, ge=0)
    n_test: int = Field(gt=0)
    score: float | None = None

    @property
    def epochs(self) -> list[Epoch]:
        """The epochs of all stages, in order."""
        return [epoch for stage in self.stages for epoch in stage]

    @property
    def accuracy(self) -> float | None:
        """On ``id_test``."""
        return None if self.correct is None else self.correct / self.n_test


class _Networks(StrictModel):
    networks: list[TrainedNetwork] = Field(min_length=1)


@dataclass(frozen=True)
class Training(Run):
    """Networks trained by one recipe, one for each seed, with their learning curves.

    The weights lie in a folder for each network (``model.safetensors``), beside the folder of the run.

    Parameters
    ----------
    recipes : the recipe of each stage with all its settings, as a job file declares it.
    networks : one for each seed.
    """

    kind: ClassVar[str] = "training"

    record: RunRecord
    recipes: Sequence[Mapping[str, Any]]
    networks: Sequence[TrainedNetwork]

    @property
    def recipe(self) -> str:
        """The names of its stages."""
        return " + ".join(str(each["recipe"]) for each in self.recipes)

    @property
    def measurements(self) -> Measurements:
        """The accuracy of each network on ``id_test``."""
        shared: dict[str, Any] = {
            "run": self.record.id,
            "benchmark": self.record.benchmark,
            "benchmark_version": self.record.benchmark_version,
            "model": self.record.model,
            "recipe": self.recipe,
        }
        return Measurements(
            Measurement(
                **shared,
                protocol=self.kind,
                set="id_test",
                group="id",
                metric=ACCURACY.name,
                value=each.correct / each.n_test,
                low=(interval := wilson_interval(each.correct, each.n_test, _LEVEL)).low,
                high=interval.high,
                interval=interval.method,
                level=interval.level,
                n_id=each.n_test,
                seed=each.seed,
            )
            for each in self.networks
            if each.correct is not None
        )

    def tables(self) -> Mapping[str, Table]:
        """``networks``: how each ended; ``epochs``: how it got there; ``settings``: those of the recipe."""
        return {"networks": self._networks(), "epochs": self._epochs(), "settings": self._settings()}

    def _networks(self) -> Table:
        rows = [
            Row((Entry(str(each.seed), each.seed),), (_count(len(each.epochs)), *_cells(each.epochs), self._end(each)))
            for each in self.networks
        ]
        accuracies = self._accuracies()
        if len(accuracies) > 1:
            mean = Number(float(np.mean(accuracies)), sd=float(np.std(accuracies, ddof=1)))
            rows.append(Row((Entry("mean ± sd"),), (None,) * 5 + (mean,)))
        last = "test accuracy" if accuracies else "mean test score"
        heads = columns("epochs", "loss", "training accuracy, %", "validation accuracy, %", "seconds", last)
        title = f"{self.recipe}: {self.record.model} on {self.record.benchmark}"
        notes = (f"Loss and training accuracy are those of the last epoch; {last} is that of the kept weights.",)
        return Table("networks", title, columns("seed"), heads, tuple(rows), notes=notes)

    def _end(self, network: TrainedNetwork) -> Cell:
        """The accuracy of a classifier with its interval, the mean score of any other network."""
        if network.correct is not None:
            interval = wilson_interval(network.correct, network.n_test, _LEVEL)
            return Number(network.correct / network.n_test, interval.low, interval.high)
        return None if network.score is None else Entry(f"{network.score:.4f}", network.score)

    def _accuracies(self) -> list[float]:
        return [each.accuracy for each in self.networks if each.accuracy is not None]

    def _epochs(self) -> Table:
        rows = tuple(
            Row((Entry(str(each.seed), each.seed), _count(stage), _count(number)), _cells([epoch]))
            for each in self.networks
            for stage, epochs in enumerate(each.stages, 1)
            for number, epoch in enumerate(epochs, 1)
        )
        heads = columns("loss", "training accuracy, %", "validation accuracy, %", "seconds")
        return Table("epochs", f"{self.recipe}: every epoch", columns("seed", "stage", "epoch"), heads, rows)

    def _settings(self) -> Table:
        rows = tuple(
            Row((_count(stage), Entry(key)), (Entry(str(value)),))
            for stage, recipe in enumerate(self.recipes, 1)
            for key, value in recipe.items()
            if key != "seed"  # each network has its own
        )
        return Table("settings", f"{self.recipe}: settings", columns("stage", "setting"), columns("value"), rows)

    def chapter(self) -> Chapter:
        """Accuracy in boxes, how each network ended, learning curves, settings."""
        from oodscope.runs.training.figures import learning_curves

        tables = self.tables()
        cards = Cards(
            tuple(
                Card(f"{what}, seed {seed}", value, f"of {count:,} images")
                for what, seed, value, count in self._cards()
            )
        )
        blocks: tuple[Block, ...] = (cards, tables["networks"], *learning_curves(self), tables["settings"])
        title = f"Training: {self.recipe}, {self.record.model} on {self.record.benchmark}"
        return Chapter(title, self.kind, self.verdict(), blocks)

    def _cards(self) -> Iterator[tuple[str, int, str, int]]:
        for each in self.networks:
            if each.accuracy is not None:
                yield "Test accuracy", each.seed, percent(each.accuracy), each.n_test
            elif each.score is not None:
                yield "Mean test score", each.seed, f"{each.score:.4f}", each.n_test

    def verdict(self) -> str:
        """The accuracy in one sentence, or the score of a network that learnt no classes."""
        accuracies = self._accuracies()
        if not accuracies:
            scores = [f"{each.score:.4f} (seed {each.seed})" for each in self.networks if each.score is not None]
            ending = f" The mean score of test images is {', '.join(scores)}." if scores else ""
            return f"{self.recipe} learns no classes, so it has no accuracy.{ending}"
        if len(accuracies) == 1:
            return f"{self.recipe} reaches a test accuracy of {percent(accuracies[0])}."
        low, high = percent(min(accuracies)), percent(max(accuracies))
        mean, seeds = percent(float(np.mean(accuracies))), len(accuracies)
        return f"{self.recipe} reaches a mean test accuracy of {mean} over {seeds} seeds ({low} to {high})."

    def save(self, folder: Path | str) -> Path:
        """Write ``networks.json`` and, last, ``run.json``; the weights stay where they are, and are found from here.

        A training that is called again with the same settings gives the same run, so it may replace itself.
        """
        folder = Path(folder)
        networks = [
            each.model_copy(update={"folder": os.path.relpath(each.folder, folder)}).model_dump(mode="json")
            for each in self.networks
        ]
        text = json.dumps({"networks": networks}, indent=1, ensure_ascii=False, allow_nan=False)
        write_text(folder / _FILE, text + "\n")
        about = {"recipes": [dict(each) for each in self.recipes]}
        return write_runfile(folder, self.kind, self.record, [_FILE], about)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        try:
            content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
            recipes = [dict(each) for each in file.about["recipes"]]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{folder}: not the record of a training: {error}") from error
        networks = parse(_Networks, content, str(folder / _FILE)).networks
        placed = [each.model_copy(update={"folder": os.path.normpath(folder / each.folder)}) for each in networks]
        return cls(file.record, recipes, placed)


def _count(number: int) -> Entry:
    return Entry(str(number), number)


def _cells(epochs: Sequence[Epoch]) -> tuple[Cell, ...]:
    """Loss and accuracies of the last of these epochs, and the seconds of all."""
    last = epochs[-1]
    accuracies = (
        None if share is None else Entry(f"{100 * share:.2f}", share)
        for share in (last.train_accuracy, last.val_accuracy)
    )
    seconds = sum(epoch.seconds for epoch in epochs)
    return (Entry(f"{last.loss:.4f}", last.loss), *accuracies, Entry(f"{seconds:.1f}", seconds))
