"""Weakness: where the detector that leads one protocol does worst, under each of the others too."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from oodscope.document.trial import Entry, Trial
from oodscope.document.wording import higher_is_better, label, percent
from oodscope.metrics.metric import MEAN, Tuning
from oodscope.protocols.registry import headline_metrics, protocol_of
from oodscope.report.page.trials import finished_study, section
from oodscope.results.measurement import Measurement
from oodscope.runs.attack import run as attacks
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated import run as generated_studies
from oodscope.runs.opened import CROSS_VALIDATION, OpenedRuns


@dataclass(frozen=True)
class Weakness:
    """One fact against a detector.

    Parameters
    ----------
    kind : in two or three words.
    value : a share of 1, shown in percent between the words ``before`` and ``after``.
    anchor : the section that tells more.
    """

    kind: str
    before: str
    value: float
    after: str
    anchor: str

    @property
    def number(self) -> str:
        """The value in percent."""
        return percent(self.value)


def weaknesses(runs: OpenedRuns, trial: Trial, entry: Entry) -> list[Weakness]:
    """The worst that is known of one detector: its worst set, error rate, attack, folds and generated set.

    Its worst set is that of the trial's own protocol where this ranks sets, else of any. What was found with another
    network is left out, except across folds, where every fold has its own.
    """
    detector, tuning, model = entry.detector, entry.tuning, trial.model
    return [
        *_worst_set(runs.results, detector, tuning, model, trial.protocol),
        *_worst_error(runs.results, detector, tuning, model),
        *_largest_fall(runs, detector, model),
        *_spread(runs, detector),
        *_worst_generated(runs, detector, tuning, model),
    ]


def _fits(model: str, other: str) -> bool:
    return not model or not other or model == other


def _worst_set(results: Sequence[Result], detector: str, tuning: Tuning, model: str, own: str) -> Iterator[Weakness]:
    rows = _rows(results, detector, tuning, model, lambda protocol: headline_metrics(protocol)[0] == "auroc")
    rows = [each for each in rows if each[1].protocol == own] or rows
    if worst := min(rows, key=lambda each: each[1].value, default=None):
        number, row = worst
        yield Weakness("worst set", f"{row.set}, AUROC", row.value, f"({row.protocol})", section(row.protocol, number))


def _worst_error(results: Sequence[Result], detector: str, tuning: Tuning, model: str) -> Iterator[Weakness]:
    rows = _rows(results, detector, tuning, model, lambda protocol: not higher_is_better(headline_metrics(protocol)[0]))
    if worst := max(rows, key=lambda each: each[1].value, default=None):
        number, row = worst
        yield Weakness("worst error", f"{row.set}, {label(row.metric)}", row.value, "", section(row.protocol, number))


def _rows(
    results: Sequence[Result], detector: str, tuning: Tuning, model: str, wanted: Callable[[str], bool]
) -> list[tuple[int, Measurement]]:
    """The headline rows of one detector on single sets, each with the number of its run."""
    return [
        (number, row)
        for number, result in enumerate(results, 1)
        if _fits(model, result.record.model_fingerprint)
        for protocol in result.record.protocols
        if wanted(protocol)
        for row in result.measurements.filter(protocol=protocol, metric=headline_metrics(protocol)[0])
        if (row.detector, row.tuning) == (detector, tuning)
        and row.set != MEAN
        and row.group not in protocol_of(protocol).unranked
    ]


def _largest_fall(runs: OpenedRuns, detector: str, model: str) -> Iterator[Weakness]:
    falls = []
    for number, attack in enumerate(runs.attacks, 1):
        rows = attack.result.measurements.filter(protocol=attacks.PROTOCOL, metric="auroc", detector=detector)
        clean = {row.set: row.value for row in rows.filter(group=attacks.CLEAN)}
        if _fits(model, attack.result.record.model_fingerprint):
            falls += [(clean[row.set] - row.value, number, clean[row.set], row) for row in rows if row.set in clean]
    if falls:
        _, number, before, row = max(falls, key=lambda each: each[0])
        variation = "any variation" if row.group == attacks.ANY else row.group
        words = f"{row.set} under {variation}: AUROC {percent(before)} →"
        yield Weakness("largest fall", words, row.value, "", section(attacks.PROTOCOL, number))


def _spread(runs: OpenedRuns, detector: str) -> Iterator[Weakness]:
    spreads = []
    for number, table in enumerate(runs.crossvals, 1):
        study = finished_study(table)
        if study is not None and study.has_folds and detector in study.detectors:
            spread = study.folds[:, :, study.detectors.index(detector)].std(axis=1, ddof=1).mean(axis=0)
            spreads += [(float(sd), number, cell) for sd, cell in zip(spread, study.cells)]
    if spreads:
        sd, number, cell = max(spreads, key=lambda each: each[0])
        yield Weakness(
            "unstable folds",
            f"{cell}: standard deviation",
            sd,
            "points of AUROC between folds",
            section(CROSS_VALIDATION, number),
        )


def _worst_generated(runs: OpenedRuns, detector: str, tuning: Tuning, model: str) -> Iterator[Weakness]:
    rows = [
        (number, row)
        for number, study in enumerate(runs.generated, 1)
        for row in study.separation("auroc").values()
        if (row.detector, row.tuning) == (detector, tuning) and row.set in study.sanity.near()
        if _fits(model, study.result(row.model).record.model_fingerprint)
    ]
    if rows:
        number, row = min(rows, key=lambda each: each[1].value)
        yield Weakness("generated", f"{row.set}, AUROC", row.value, "", section(generated_studies.PROTOCOL, number))
