"""Attack: what searches for the worst outliers of several detectors found, in memory and as a folder."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from oodscope.base.errors import DataError
from oodscope.base.files import atomic_path, write_text
from oodscope.document.chapter import Block, Chapter, Gallery, Picture, Prose
from oodscope.document.table import Table
from oodscope.document.trial import Trial
from oodscope.document.weakness import Subject, Weakness
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord
from oodscope.results.run import Run
from oodscope.results.runfile import expect_kind, read_runfile, refuse_overwriting
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result

Numbers = NDArray[np.float64]

_ARRAYS = ("x", "y", "scores")
_MAPS = ("paths", "lowest")


@dataclass(frozen=True)
class Landscape:
    """The score of one outlier over two coordinates of a variation, with the paths of samplers that stay in this plane.

    All scores are in the unit of an attack: 0 is the mean of ID validation, 1 their standard deviation.

    Parameters
    ----------
    chain : place of the outlier among the source images.
    coordinates : the names of both, with their units; all others stay where they leave the image as it is.
    x, y : values of the first and of the second coordinate.
    scores : ``[len(y), len(x)]``.
    paths : by sampler, ``[steps + 1, 3]``: both coordinates and the score of every state of one chain.
    budgets : evaluations per chain.
    lowest : by sampler, ``[len(budgets), chains]``: the lowest score within each budget, over all coordinates of the
        variation, one chain per source image, the same images for all samplers.
    """

    detector: str
    variation: str
    chain: int
    coordinates: tuple[str, str]
    x: Numbers
    y: Numbers
    scores: Numbers
    paths: Mapping[str, Numbers]
    budgets: tuple[int, ...]
    lowest: Mapping[str, Numbers]

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        words = {name: getattr(self, name) for name in ("detector", "variation", "chain", "coordinates", "budgets")}
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        for name in _MAPS:
            kept: Mapping[str, Numbers] = getattr(self, name)
            words[name] = list(kept)
            arrays |= {f"{name}.{number}": array for number, array in enumerate(kept.values())}
        with atomic_path(path) as temporary:
            whole = {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()}
            save_file(whole, temporary, metadata={"landscape": json.dumps(words, ensure_ascii=False)})

    @classmethod
    def load(cls, path: Path) -> "Landscape":
        """Read what ``save`` wrote."""
        try:
            with safe_open(path, framework="numpy") as content:
                words: dict[str, Any] = json.loads(content.metadata()["landscape"])
                arrays = {name: content.get_tensor(name) for name in _ARRAYS}
                for name in _MAPS:
                    words[name] = {
                        each: content.get_tensor(f"{name}.{number}") for number, each in enumerate(words[name])
                    }
            words |= {name: tuple(words[name]) for name in ("coordinates", "budgets")}
            return cls(**words, **arrays)
        except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
            raise DataError(f"{path}: not the landscape of an attack: {error}") from error


PROTOCOL = "attack"
BUDGET, TRANSFER, SEARCH = f"{PROTOCOL}_budget", f"{PROTOCOL}_transfer", f"{PROTOCOL}_search"
"""Views of one attack beside its headline rows. ``budget``: AUROC and lowest score after so many evaluations (the
``set``). ``transfer``: AUROC of a detector on the images found against another one (the ``set``). ``search``: how the
chains moved, and how many reasons there are not to trust them."""

CLEAN, ANY = "clean", "any"
"""``group`` of a row about the source images as they are, and about the worst of all variations of each of them."""

RECORD, _FOLDER, _LANDSCAPE = "attack.json", "attack", "landscape.safetensors"
_EXAMPLES = "examples."

_SHOWN = 5
"""Images of each search in a chapter."""


@dataclass(frozen=True)
class FoundImages:
    """What some chains of one search found.

    Parameters
    ----------
    chains : their places among the source images, or among the chains of a generator.
    scores, ranks : of the detector, and the ID test images strictly below that score.
    images : uint8 ``[K, H, W, C]``.
    sources : the images that they are variations of; None for a generator.
    """

    chains: NDArray[np.int64]
    scores: NDArray[np.float64]
    ranks: NDArray[np.int64]
    images: NDArray[np.uint8]
    sources: NDArray[np.uint8] | None


@dataclass(frozen=True)
class SearchedPair:
    """One detector under one variation.

    Parameters
    ----------
    settings : variation, sampler, energy, chains and budget, as plain JSON values.
    parameters : names of the coordinates with their units; empty where coordinates mean nothing.
    found : ``[chains, len(parameters)]``, what each chain ended with, in those units.
    worst : the most ID-like images of all chains, worst first.
    examples : the images of the first chains: the same source images for every detector; None for a generator, and in
        attacks older than this field.
    flags : why the search may have stopped too early, in words; empty if nothing speaks for it.
    """

    detector: str
    variation: str
    settings: Mapping[str, Any]
    parameters: tuple[str, ...]
    found: NDArray[np.float32]
    worst: FoundImages
    flags: tuple[str, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    examples: FoundImages | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the folder keeps as tensors."""
        named = {"found": self.found, **vars(self.worst)}
        if self.examples is not None:
            named |= {f"{_EXAMPLES}{name}": array for name, array in vars(self.examples).items()}
        return {name: np.ascontiguousarray(array) for name, array in named.items() if array is not None}

    def record(self) -> dict[str, Any]:
        """What the folder keeps as JSON."""
        names = ("detector", "variation", "settings", "parameters", "flags", "costs")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Attack(Run):
    """Several detectors attacked with several variations of one set of outliers.

    Parameters
    ----------
    result : every number as measurements (protocols ``attack``, ``attack_budget``, ``attack_transfer``
        and ``attack_search``), and the scores they were computed from: rows of unit ``clean`` hold the source
        images, rows of another unit the worst that the variation of that name found against each column's detector.
    searches : what each search found, detector by detector.
    landscape : of one outlier under one detector, to look at; None unless it was asked for.
    """

    kind: ClassVar[str] = "attack"

    result: Result
    searches: tuple[SearchedPair, ...]
    landscape: Landscape | None = None

    @property
    def record(self) -> RunRecord:
        """That of its result."""
        return self.result.record

    @property
    def measurements(self) -> Measurements:
        """Those of its result."""
        return self.result.measurements

    @property
    def scores(self) -> ScoreTable:
        """Those of its result: source images, and the worst that each variation found."""
        return self.result.scores

    @property
    def about(self) -> Mapping[str, Any]:
        """How it was made: the set of outliers, chains, budget, runs."""
        about: Mapping[str, Any] = self.scores.context.extra["attack"]
        return about

    @property
    def detectors(self) -> list[str]:
        """Whom it attacked."""
        return list(dict.fromkeys(each.detector for each in self.searches))

    @property
    def variations(self) -> list[str]:
        """What it attacked with."""
        return list(dict.fromkeys(each.variation for each in self.searches))

    def search(self, detector: str, variation: str) -> SearchedPair:
        """What one variation found against one detector."""
        for each in self.searches:
            if (each.detector, each.variation) == (detector, variation):
                return each
        raise DataError(f"{detector} was not attacked with {variation!r}")

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def tables(self) -> Mapping[str, Table]:
        """The table of the attack, which has all that its protocol measured, and that of every other view of it."""
        from oodscope.runs.attack.table import attack_table  # which is made of attacks

        views = {name: table for name, table in self.result.tables().items() if name != self.kind}
        return {self.kind: attack_table(self), **views}

    def table(self, name: str | None = None, metric: str | None = None) -> Table:
        """The table of the attack; with a protocol or a metric, that of its measurements."""
        if metric is None and name in (None, self.kind):
            return self.tables()[self.kind]
        return self.result.table(name, metric)

    def score_tables(self) -> Mapping[str, ScoreTable]:
        """The one table, ``scores``."""
        return {"scores": self.scores}

    def trials(self) -> Sequence[Trial]:
        """What is left of each detector under the worst of all variations."""
        from oodscope.runs.attack.trials import trial_of

        return (trial_of(self),)

    def weaknesses(self, subject: Subject) -> Sequence[Weakness]:
        """The largest fall of a detector."""
        from oodscope.runs.attack.trials import weaknesses_of

        return list(weaknesses_of(self, subject))

    def chapter(self) -> Chapter:
        """What is left of each detector, how the budget counts, and the images that fool each of them most."""
        from oodscope.runs.attack.figures import auroc_against_budget  # which are drawn from attacks
        from oodscope.runs.attack.verdict import attack_verdict, broken_first

        record, about, broken = self.record, self.about, broken_first(self)
        words = f"{about['chains']:,} chains of {about['budget']:,} evaluations for each detector and variation."
        galleries = (
            Gallery(
                f"{each.detector} under {each.variation}",
                tuple(
                    Picture(image, f"below {rank:,} ID test images")
                    for image, rank in zip(each.worst.images[:_SHOWN], each.worst.ranks)
                ),
            )
            for each in sorted(self.searches, key=lambda each: broken.index(each.detector))
        )
        figures = (auroc_against_budget(self, name) for name in self.variations)
        blocks: tuple[Block, ...] = (Prose(words), *galleries, self.table(), *figures)
        return Chapter(
            f"Attack on {record.model}: outliers from {about['outliers']}", self.kind, attack_verdict(self), blocks
        )

    def save(self, folder: Path | str) -> Path:
        """Write the result's own files and, beside them, ``attack.json`` and ``attack/``; pictures and parameters."""
        folder = Path(folder)
        refuse_overwriting(folder)
        records = []
        for number, each in enumerate(self.searches):
            name = f"{number:03d}.safetensors"
            with atomic_path(folder / _FOLDER / name) as temporary:
                save_file(each.arrays(), temporary)
            records.append(each.record() | {"file": name})
        self.save_landscape(folder)
        write_text(folder / RECORD, json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        return self.result.save_as(self.kind, folder)

    def save_landscape(self, folder: Path) -> None:
        """Write the landscape, if there is one, into the folder of this attack, which may be finished already."""
        if self.landscape is not None:
            self.landscape.save(folder / _FOLDER / _LANDSCAPE)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        expect_kind(read_runfile(folder), folder, cls.kind)
        result = Result.load(folder)
        seen = folder / _FOLDER / _LANDSCAPE
        return cls(result, tuple(_searches(folder)), Landscape.load(seen) if seen.exists() else None)


def _searches(folder: Path) -> Iterator[SearchedPair]:
    try:
        records = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        for record in records:
            arrays: dict[str, Any] = load_file(folder / _FOLDER / record.pop("file"))
            found = arrays.pop("found")
            examples = {
                name.removeprefix(_EXAMPLES): arrays.pop(name) for name in list(arrays) if name.startswith(_EXAMPLES)
            }
            record |= {"parameters": tuple(record["parameters"]), "flags": tuple(record["flags"])}
            yield SearchedPair(
                **record,
                found=found,
                worst=FoundImages(**{"sources": None, **arrays}),
                examples=FoundImages(**examples) if examples else None,
            )
    except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
        raise DataError(f"{folder}: what the attack found cannot be read: {error}") from error
