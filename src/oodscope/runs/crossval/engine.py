"""``cross_validate``: from pairs of image sets to a table of every metric of every draw."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

from oodscope.base.errors import DataError, DetectorError
from oodscope.detectors.base import parameters_json
from oodscope.execution.lookahead import ahead
from oodscope.execution.progress import SILENT, Progress
from oodscope.runs.crossval.draws import Divisions, Pair, compact_pairs, distinct_sets
from oodscope.runs.crossval.journal import Journal
from oodscope.runs.crossval.judging import FoldScores
from oodscope.runs.crossval.leaks import find_leaks, refuse_leaks
from oodscope.runs.crossval.outcome import metadata_of, record_of, table_of
from oodscope.runs.crossval.plan import CrossValidationPlan, FoldDetector
from oodscope.runs.crossval.run import CrossValidation
from oodscope.runs.crossval.trainer import Trainer
from oodscope.runs.crossval.units import Unit, UnitScorer, batches_of_units

TRAININGS = "trainings"
"""The folder of trainings that are not finished."""

NO_PRE_ACTIVATION = (
    "features before the ReLU (pre_activation, preset dcv-paper) are known of two-layer heads on frozen embeddings "
    "only: take the backbone 'frozen', or leave them out"
)

METRIC_THREADS = 4
"""That compute metrics while the next unit is scored; more would only wait for Python's lock."""


def cross_validate(
    plan: CrossValidationPlan,
    pairs: Sequence[Pair],
    trainer: Trainer,
    *,
    folder: Path | str,
    allow_leak: bool = False,
    stop_after: float | None = None,
    progress: Progress = SILENT,
) -> CrossValidation:
    """Cross-validation of detectors (DCV-ROOD, arXiv 2509.05778).

    For each draw: train on the ID training images, fit and score every detector on the draw's test images, fine-tune
    with Outlier Exposure on the OOD training classes and score again. Pairs with one ID set share its plain networks.

    Killed at any moment and called again with the same arguments, it goes on after the last finished draw and ends with
    the same numbers; a finished one is read back. The table and the record are in ``folder`` too, as
    ``crossval.parquet`` and ``run.json``, and every score in ``scores``, so that a metric thought of later needs no
    training (``CrossValidation.with_metrics``).

    Parameters
    ----------
    plan : what is drawn and judged.
    pairs : ID and OOD sets.
    trainer : ``FrozenEmbeddings``, ``FullTraining`` or ``FineTuning``.
    folder : where finished draws are recorded and the table is written.
    allow_leak : go on although the trainer's network is known to have been trained on folded images or their classes;
        the result says so.
    stop_after : seconds after which no new draw is begun. What is finished is in the result, and the next call goes on.
    progress : advanced at every draw of every ID set.

    Examples
    --------
    >>> from oodscope.runs.crossval.draws import Pair
    >>> from oodscope.runs.crossval.frozen import FrozenEmbeddings
    >>> from oodscope.runs.crossval.plan import CrossValidationPlan
    >>> plan = CrossValidationPlan(folds=2, repetitions=1, hold_outs=0, detectors=("msp",))
    >>> pair, trainer = Pair(bench.id_train, bench.near[0]), FrozenEmbeddings(clf)
    >>> oods.cross_validate(plan, [pair], trainer, folder=folder).draws.detectors
    ['msp']
    """
    started = perf_counter()
    work = CrossvalWork(plan, pairs, trainer, folder, allow_leak=allow_leak)
    costs = work.do(work.batches, progress, stop_after=stop_after)
    outcome = work.outcome(costs, started)
    outcome.save(folder)
    return outcome


class CrossvalWork:
    """A cross-validation between its plan and its result: draws in batches, which several processes may share.

    Parameters
    ----------
    plan, pairs, trainer, folder, allow_leak : see ``cross_validate``.
    """

    def __init__(
        self,
        plan: CrossValidationPlan,
        pairs: Sequence[Pair],
        trainer: Trainer,
        folder: Path | str,
        *,
        allow_leak: bool = False,
    ) -> None:
        self.plan, self.trainer, self.folder = plan, trainer, Path(folder)
        self.detectors, self.pairs = plan.make_detectors(), compact_pairs(pairs)
        if plan.pre_activation and not trainer.has_pre_activation:
            raise DetectorError(NO_PRE_ACTIVATION)
        self.divisions = Divisions(plan, self.pairs)
        self.leaks = _leaks(trainer, self.pairs, allow_leak)
        self.journal = Journal(self.folder, _identity(plan, self.pairs, trainer, self.detectors))
        self.batches = batches_of_units(plan, self.pairs, trainer.at_once)
        if not self.batches:
            raise DataError("the plan draws nothing: ask for repetitions, hold_outs (--truth) or a variance_design")
        self._open = False

    def do(
        self, batches: Sequence[Sequence[Unit]], progress: Progress = SILENT, *, stop_after: float | None = None
    ) -> dict[str, Any]:
        """Train, score and record what is not finished of these batches; what each kind of work took."""
        started = perf_counter()
        missing = [unit for batch in batches for unit in batch if self.journal.read(unit.name) is None]
        if missing and not self._open:
            self.trainer.open(distinct_sets(self.pairs), progress)
            self._open = True
        costs: dict[str, Any] = {"open_seconds": perf_counter() - started}
        scorer = UnitScorer(self.plan, self.trainer, self.detectors, self.divisions, self.folder / TRAININGS)

        def scored() -> Iterator[tuple[Unit, list[FoldScores]]]:
            for batch in batches:
                if wanted := [unit for unit in batch if unit in missing]:
                    for each in scorer.score(batch, wanted):
                        yield each
                        if stop_after is not None and perf_counter() - started > stop_after:
                            return

        def keep(each: tuple[Unit, list[FoldScores]]) -> None:
            unit, scores = each
            frame = pd.concat([part.frame(unit.draw.name) for part in scores], ignore_index=True)
            self.journal.write(unit.name, [cell for part in scores for cell in part.cells()], frame)
            scorer.forget(unit)

        with progress.stage("cross-validate", sum(map(len, batches))) as advance:
            advance(sum(map(len, batches)) - len(missing))
            with closing(ahead(scored(), keep, depth=METRIC_THREADS, workers=METRIC_THREADS)) as finished:
                for _ in finished:
                    advance(1)
        return costs | {f"{what}_seconds": seconds for what, seconds in scorer.seconds.items()}

    def outcome(self, costs: Mapping[str, Any], started: float) -> CrossValidation:
        """The result, from what the journal holds."""
        units = [unit for batch in self.batches for unit in batch]
        found = {unit: cells for unit in units if (cells := self.journal.read(unit.name)) is not None}
        left = len(units) - len(found)
        known = {**costs, "seconds": perf_counter() - started, "units": len(found), "unfinished": left}
        notes = _notes(self.divisions, self.leaks, left)
        about = metadata_of(self.plan, self.pairs, self.trainer, self.detectors, self.leaks, notes)
        record = record_of(self.plan, self.pairs, self.trainer, notes, known)
        return CrossValidation(table_of(found, about), record, left, self.folder)


def _leaks(trainer: Trainer, pairs: Sequence[Pair], allow_leak: bool) -> list[str]:
    network = trainer.begins_from()
    leaks = [] if network is None else find_leaks(network, pairs)
    if not allow_leak:
        refuse_leaks(leaks)
    return leaks


def _identity(
    plan: CrossValidationPlan, pairs: Sequence[Pair], trainer: Trainer, detectors: Sequence[FoldDetector]
) -> dict[str, Any]:
    """Everything that decides the numbers; the device is not part of it, as in a training."""
    return {
        "plan": plan.identity,
        "detectors": [[each.id, each.detector.version, parameters_json(each.detector)] for each in detectors],
        "pairs": [
            [pair.name, pair.level, pair.deepest, pair.id_set.fingerprint, pair.ood_set.fingerprint] for pair in pairs
        ],
        "trainer": trainer.describe(),
    }


def _notes(divisions: Divisions, leaks: Sequence[str], left: int) -> list[str]:
    notes = [f"LEAK: {leak}; these numbers are not evidence" for leak in leaks]
    notes += divisions.notes()
    if left:
        notes.append(f"stopped before {left} draws of ID sets; call again to go on")
    return notes
