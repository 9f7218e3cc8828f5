"""The first screen of a report: what to do, the scorecard drawn, the data, and where the advised detector fails."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from oodscope.document.number import Number
from oodscope.document.trial import Entry, Trial
from oodscope.document.wording import TRACKS
from oodscope.metrics.metric import Tuning
from oodscope.report.page.gallery import Thumbnail, failures
from oodscope.report.page.placing import placed_weaknesses
from oodscope.report.page.scorecard import Scorecard
from oodscope.results.gallery import examples, shown_sets
from oodscope.results.opening import of_kind
from oodscope.results.run import Run
from oodscope.runs.comparison.advice import Advice, advise
from oodscope.runs.comparison.recommendation import recommended
from oodscope.runs.evaluation.run import Result

DRAWN = 6
"""Columns of the chart; more would leave no space for their dots."""

FAILURES = 3

ROLE_WORDS = {"id_test": "ID test", "near": "near-OOD", "far": "far-OOD", "csid": "covariate-shifted ID"}


@dataclass(frozen=True)
class Dot:
    """A number on its column's axis, all in percent of the axis: the value, and the ends of both intervals."""

    entry: Entry
    at: float
    wide: tuple[float, float] | None
    narrow: tuple[float, float] | None


@dataclass(frozen=True)
class DotColumn:
    """One trial as a column of dots, best first from left or right as its arrow says."""

    trial: Trial
    low: float
    high: float

    @property
    def ends(self) -> tuple[str, str]:
        """What stands at both ends of the axis."""
        percent = self.trial.entries[0].cell.unit == "percent"
        low, high = (100 * self.low, 100 * self.high) if percent else (self.low, self.high)
        return f"{low:.0f}", f"{high:.0f}"

    def dot(self, entry: Entry) -> Dot:
        """Where a number stands on the axis."""
        cell = entry.cell
        return Dot(
            entry, self._at(cell.value), self._span(cell.class_low, cell.class_high), self._span(cell.low, cell.high)
        )

    def _at(self, value: float) -> float:
        return 100 * (value - self.low) / (self.high - self.low)

    def _span(self, low: float | None, high: float | None) -> tuple[float, float] | None:
        return None if low is None or high is None else (self._at(low), self._at(high) - self._at(low))


@dataclass(frozen=True)
class DotChart:
    """Detectors by trials: the scorecard drawn.

    Parameters
    ----------
    rows : detector, tuning, its position among the colours of the page, and a dot for each column.
    more : trials that are in the scorecard alone.
    """

    columns: list[DotColumn]
    rows: list[tuple[str, Tuning, int, list[Dot | None]]]
    more: int


@dataclass(frozen=True)
class DataSet:
    """A set of images as it was used: its role, how many, and a few of them by their number in the gallery."""

    name: str
    role: str
    n: int
    pictures: list[int]
    exposure: str


@dataclass(frozen=True)
class Network:
    """One evaluation on the first screen.

    Parameters
    ----------
    number : of the run among evaluations, which scopes its pictures.
    accuracy : of the classifier, by set.
    others : what is recommended for OOD images of other kinds, and of detectors tuned otherwise; nothing that the
        advice says already, and nothing where nothing can be recommended.
    """

    number: int
    result: Result
    advice: Advice | None
    accuracy: Sequence[tuple[str, Number]]
    data: list[DataSet]
    failures: list[tuple[str, Thumbnail]]
    others: list[str]


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees without scrolling; the first network in full, of the others the advice."""

    networks: list[Network]
    chart: DotChart | None
    commands: list[str]


def first_screen(runs: Sequence[Run], card: Scorecard, positions: Mapping[str, int]) -> FirstScreen:
    """The first screen over all runs.

    Parameters
    ----------
    positions : of the detectors among the colours of the page.
    """
    results = of_kind(runs, Result)
    networks = [_network(runs, result, number) for number, result in enumerate(results, 1)]
    commands = list(dict.fromkeys(record.command for run in runs for record in run.records() if record.command))
    model = results[0].record.model_fingerprint if results else ""
    return FirstScreen(networks, dot_chart(card, positions, model), commands)


def dot_chart(card: Scorecard, positions: Mapping[str, int], model: str = "") -> DotChart | None:
    """The chart of a scorecard; None where it is empty.

    Parameters
    ----------
    model : fingerprint of the network whose trials are drawn; all by default.
    """
    own = [place for place, trial in enumerate(card.trials) if not (model and trial.model) or trial.model == model]
    columns = [(place, _column(card.trials[place])) for place in own[:DRAWN]]
    if not columns:
        return None
    rows = []
    for row in card.rows:
        entries = [(column, row.entries[place]) for place, column in columns]
        dots = [None if entry is None else column.dot(entry) for column, entry in entries]
        if any(dots):
            rows.append((row.detector, row.tuning, positions.get(row.detector, 0), dots))
    return DotChart([column for _, column in columns], rows, len(card.trials) - len(columns))


def _column(trial: Trial) -> DotColumn:
    cells = [entry.cell for entry in trial.entries]
    known = [(cell.value, cell.low, cell.high, cell.class_low, cell.class_high) for cell in cells]
    ends = [end for each in known for end in each if end is not None]
    low, high = min(ends), max(ends)
    margin = 0.06 * (high - low) or 0.01
    return DotColumn(trial, low - margin, high + margin)


def _network(runs: Sequence[Run], result: Result, number: int) -> Network:
    advice = advise(result, lambda subject: placed_weaknesses(runs, subject))
    accuracy = next((table.accuracy for table in result.tables().values() if table.accuracy), ())
    worst = failures(result, advice.detector, FAILURES) if advice and advice.detector else []
    return Network(number, result, advice, accuracy, list(_data(result)), worst, _others(result, advice))


def _others(result: Result, advice: Advice | None) -> list[str]:
    if advice is not None and not advice.detector:
        return []
    said = "" if advice is None else advice.claim
    return [sentence for sentence in recommended(result) if _without_track(sentence) != said]


def _without_track(sentence: str) -> str:
    """A sentence without the words of a tuning track, which the advice on that track leaves out."""
    for words in TRACKS.values():
        sentence = sentence.replace(f" ({words})", "")
    return sentence


def _data(result: Result) -> Iterator[DataSet]:
    """Every set of the record, those with pictures in the order of the gallery."""
    pictures = _pictures(result)
    record = result.record
    judged = [name for _, name in shown_sets(result.scores)]
    roles = ("id_test", "near", "far", "csid")
    ordered = sorted(judged, key=lambda name: roles.index(record.sets[name].role) if name in record.sets else 0)
    for name in ordered:
        known = record.sets.get(name)
        frame = result.scores.frame
        n = known.n if known else int((frame["set"] == name).sum())
        role = known.role if known else str(frame.loc[frame["set"] == name, "role"].iloc[0])
        yield DataSet(name, role, n, pictures.get(name, []), known.exposure if known else "")


def _pictures(result: Result) -> dict[str, list[int]]:
    """The examples of each set; of an older run, those of its hardest images that come first in the set."""
    if result.gallery is None:
        return {}
    found: dict[str, list[int]] = {}
    samples = result.scores.frame["sample_id"]
    for role, name in shown_sets(result.scores):
        rows = examples(result.scores, role, name)
        numbers = [place for row in rows if (place := result.gallery.places.get((name, str(samples[row])))) is not None]
        any_of = [place for (own, _), place in result.gallery.places.items() if own == name]
        found[name] = (numbers if len(numbers) == len(rows) else any_of)[: len(rows)]
    return found
