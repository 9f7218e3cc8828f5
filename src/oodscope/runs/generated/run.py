"""GeneratedStudy: detectors of several networks on generated sets beside real ones, and what those sets are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from oodscope.base.config import parse
from oodscope.base.errors import DataError, UnknownNameError
from oodscope.base.files import atomic_path
from oodscope.base.hashing import fingerprint
from oodscope.document.chapter import Block, Chapter, Claims, Gallery, Picture
from oodscope.document.claim import claims_verdict
from oodscope.document.html import block, notebook_parts
from oodscope.document.table import Table
from oodscope.document.trial import Trial, leaders
from oodscope.document.weakness import Subject, Weakness
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.results.run import Run, choose_table
from oodscope.results.runfile import RECORD, expect_kind, read_runfile, refuse_overwriting, write_runfile
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.sanity import Sanity

PROTOCOL = "generated"
"""Of the calibration rows: metrics ``ece15``, ``adaptive_ece15``, ``classwise_ece15`` and ``accuracy``
of the classifier on ``id_test`` and every csid set."""

WORST = "max"
"""The ``set`` of a row that holds the largest value over the csid sets that were not generated."""

RELIABILITY, NETWORKS = "reliability", "networks"
"""Keys of a score table's metadata. ``reliability``: the bins of every set whose calibration was measured.
``networks``: fingerprints of the classifier and, if it is an ensemble, of its members."""

_SAMPLES = "samples.safetensors"
_DETECTORS, _CALIBRATION = "detectors", "calibration"


@dataclass(frozen=True)
class Samples:
    """A few images of a set, to look at.

    Parameters
    ----------
    images : uint8 ``[K, H, W, C]``.
    source : the class that each came from, -1 where there is none.
    judged : the class that the judging ensemble takes it for.
    originals : the images that they were made from; None where there are none.
    """

    images: NDArray[np.uint8]
    source: NDArray[np.int64]
    judged: NDArray[np.int64]
    originals: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class GeneratedStudy(Run):
    """Several networks judged on one benchmark, some of whose sets are generated.

    Every number on its page is a function of what it holds.

    Parameters
    ----------
    results : one per network: detectors under ``standard``, calibration under ``generated``.
    sanity : what the sets are, by networks that had no part in making them.
    samples : by the name of the set.
    """

    kind: ClassVar[str] = "generated"

    results: tuple[Result, ...]
    sanity: Sanity
    samples: Mapping[str, Samples]

    def __post_init__(self) -> None:
        if not self.results:
            raise DataError("a study of generated sets needs the result of at least one network")
        for name in self.networks:
            if self.networks.count(name) > 1:
                raise DataError(f"two networks of the study are called {name!r}; give each its own name")
        first = self.results[0].record
        for result in self.results:
            where = f"the run of {result.record.model}"
            if PROTOCOL not in result.record.protocols or "standard" not in result.record.protocols:
                raise DataError(f"{where} lacks measurements under standard and {PROTOCOL}")
            if result.record.sets.keys() != first.sets.keys():
                raise DataError(f"{where} was judged on other sets than that of {first.model}")

    @property
    def networks(self) -> list[str]:
        """Their names, in order."""
        return [result.record.model for result in self.results]

    def result(self, network: str) -> Result:
        """The run of one network."""
        for each in self.results:
            if each.record.model == network:
                return each
        raise UnknownNameError("network", network, self.networks)

    @property
    def circular(self) -> list[str]:
        """Networks, or ensembles with a member, whose disagreement shaped the images that they are judged on."""
        makers = set(self.sanity.makers.values())
        return [each.record.model for each in self.results if makers & set(each.scores.context.extra[NETWORKS])]

    @property
    def real(self) -> list[str]:
        """Sets of OOD images that were not generated, near ones first."""
        scores = self.results[0].scores
        return [name for role in ("near", "far") for name in scores.sets(role) if name not in self.sanity.generated]

    def separation(self, metric: str = "auroc") -> dict[tuple[str, str, str], Measurement]:
        """The rows of one ranking metric by network, detector and set; means over groups are left out."""
        return {
            (row.model, row.detector, row.set): row
            for result in self.results
            for row in result.measurements.filter(protocol="standard", metric=metric)
            if row.set in result.record.sets
        }

    def calibration(self, metric: str = "ece15") -> dict[tuple[str, str], Measurement]:
        """The rows of one calibration metric by network and set, the worst real csid set as ``max``."""
        rows = (row for each in self.results for row in each.measurements.filter(protocol=PROTOCOL, metric=metric))
        return {(row.model, row.set): row for row in rows}

    @property
    def record(self) -> RunRecord:
        """That of the first network's run, for all networks; ``records`` has every one."""
        records = [each.record for each in self.results]
        return records[0].model_copy(
            update={
                "id": f"generated-{fingerprint([each.id for each in records])[:12]}",
                "model": ", ".join(self.networks),
                "model_fingerprint": records[0].model_fingerprint if len(records) == 1 else "",
                "protocols": [PROTOCOL],
                "notes": [],
                "parts": [each.id for each in records],
            }
        )

    def records(self) -> Sequence[RunRecord]:
        """One for each network."""
        return [each.record for each in self.results]

    @property
    def measurements(self) -> Measurements:
        """Those of every network; each row names its run."""
        return Measurements(row for each in self.results for row in each.measurements)

    def score_tables(self) -> Mapping[str, ScoreTable]:
        """One for each network."""
        return {each.record.model: each.scores for each in self.results}

    def tables(self) -> Mapping[str, Table]:
        """``detectors`` on generated and real sets, and the ``calibration`` of networks."""
        from oodscope.runs.generated.table import calibration_table, separation_table  # which are made of studies

        return {_DETECTORS: separation_table(self), _CALIBRATION: calibration_table(self)}

    def table(self, name: str | None = None, metric: str | None = None) -> Table:
        """One of both tables; a metric of calibration chooses that of calibration."""
        from oodscope.runs.generated.table import calibration_table, separation_table

        if metric is None:
            return choose_table(self.tables(), name)
        calibrated = metric in {row.metric for row in self.measurements.filter(protocol=PROTOCOL)}
        table = calibration_table(self, metric) if calibrated else separation_table(self, metric)
        return choose_table({_CALIBRATION if calibrated else _DETECTORS: table}, name)

    def trials(self) -> Sequence[Trial]:
        """One for each network and generated near-OOD set."""
        from oodscope.runs.generated.trials import trials_of

        return list(trials_of(self))

    def weaknesses(self, subject: Subject) -> Sequence[Weakness]:
        """The generated near-OOD set that a detector separates worst."""
        from oodscope.runs.generated.trials import weaknesses_of

        return list(weaknesses_of(self, subject))

    def chapter(self) -> Chapter:
        """What the sets are claimed to be and whether they are, both tables, and a few images of each set."""
        from oodscope.runs.generated.claims import claims
        from oodscope.runs.generated.figures import reliability_of_network

        names = self.sanity.class_names
        galleries = (
            Gallery(name, tuple(Picture(image, names[seen]) for image, seen in zip(each.images, each.judged)))
            for name, each in self.samples.items()
        )
        figures = (reliability_of_network(self, name) for name in self.networks)
        stated = claims(self)
        blocks: tuple[Block, ...] = (*galleries, Claims(tuple(stated)), *self.tables().values(), *figures)
        title = f"Generated sets of {self.results[0].record.benchmark}"
        verdict = " ".join(filter(None, (claims_verdict(stated), leaders(self.trials()))))
        return Chapter(title, self.kind, verdict, blocks)

    def _repr_html_(self) -> str:
        return block(*(part for table in self.tables().values() for part in notebook_parts(table)))

    def save(self, folder: Path | str) -> Path:
        """Write each network's run to a folder of its own, the samples, and ``run.json``, which comes last."""
        folder = Path(folder)
        refuse_overwriting(folder)
        for result in self.results:
            result.save(folder / result.record.id)
        arrays = {
            f"{number}.{key}": np.ascontiguousarray(array)
            for number, each in enumerate(self.samples.values())
            for key, array in vars(each).items()
            if array is not None
        }
        with atomic_path(folder / _SAMPLES) as temporary:
            save_file(arrays, temporary)
        about = {"samples": list(self.samples), "sanity": self.sanity.model_dump(mode="json")}
        return write_runfile(folder, self.kind, self.record, [_SAMPLES], about)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        try:
            arrays: dict[str, Any] = load_file(folder / _SAMPLES)
            names, sanity = file.about["samples"], file.about["sanity"]
        except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
            raise DataError(f"{folder}: not a finished study of generated sets: {error}") from error
        samples = {
            name: Samples(**{key.partition(".")[2]: array for key, array in arrays.items() if key.startswith(f"{n}.")})
            for n, name in enumerate(names)
        }
        results = tuple(Result.load(folder / Path(run).name) for run in file.record.parts)
        return cls(results, parse(Sanity, sanity, str(folder / RECORD)), samples)


def with_calibration(result: Result, rows: list[Measurement], **added: Any) -> Result:
    """A result with calibration rows beside its own, and with what figures need in the metadata of its scores."""
    record = result.record.model_copy(update={"protocols": [*result.record.protocols, PROTOCOL]})
    scores = ScoreTable(result.scores.frame, {**result.scores.context.plain(), **added})
    return Result(record, result.measurements + Measurements(rows), scores, result.gallery)
