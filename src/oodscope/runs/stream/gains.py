"""Gains: what an entry of a stream does better than a constant baseline, in the same streams."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from oodscope.document.table import Column, Entry, Row, Table, columns
from oodscope.document.wording import higher_is_better, label, unit_of
from oodscope.metrics.interval import t_interval
from oodscope.runs.stream.protocol import Values, gain_values

MARGIN = 0.01
"""Differences of AUROC that make no difference in practice: one point."""

Word = Literal["better", "worse", "no difference", "cannot say"]


@dataclass(frozen=True)
class Gain:
    """Entry minus baseline over the streams of one schedule and OOD set, with the paired 95 % interval.

    Parameters
    ----------
    streams : how many had a value for both; without 2 of them there is no difference to speak of.
    """

    schedule: str
    set: str
    entry: str
    baseline: str
    metric: str
    streams: int
    value: float = 0.0
    low: float | None = None
    high: float | None = None

    @property
    def word(self) -> Word:
        """What the interval says: beyond 0, within the margin around it, or neither."""
        if self.low is None or self.high is None:
            return "cannot say"
        if self.low > 0 or self.high < 0:
            return "better" if (self.low > 0) == higher_is_better(self.metric) else "worse"
        margin = MARGIN if unit_of(self.metric) == "percent" else 0.0
        return "no difference" if -margin < self.low and self.high < margin else "cannot say"


def gains(values: Values, detectors: Sequence[str], baseline: str, metric: str) -> Iterator[Gain]:
    """Every entry but the baseline, on every schedule and OOD set.

    Parameters
    ----------
    values : of :meth:`StreamProtocol.values`.
    """
    for (schedule, name), metrics in values.items():
        for entry in detectors:
            if entry == baseline:
                continue
            gaps = gain_values(metrics[metric], detectors, entry, baseline)
            found = Gain(schedule, name, entry, baseline, metric, len(gaps))
            if len(gaps) < 2:
                yield found
                continue
            each = t_interval(gaps)
            yield Gain(schedule, name, entry, baseline, metric, len(gaps), float(gaps.mean()), each.low, each.high)


def summary(found: Sequence[Gain]) -> str:
    """How often each entry is better or worse than the baseline, as one sentence."""
    if not found:
        return "There is nothing to compare."
    cells = len({(each.schedule, each.set) for each in found})
    parts = []
    for entry in dict.fromkeys(each.entry for each in found):
        words = [each.word for each in found if each.entry == entry]
        parts.append(f"{entry} " + ", ".join(f"{word} in {words.count(word)}" for word in dict.fromkeys(words)))
    kinds = f"{cells} pair{'s' * (cells > 1)} of schedule and OOD set"
    return f"{label(found[0].metric)} against {found[0].baseline}, of {kinds}: {'; '.join(parts)}."


def gain_table(found: Sequence[Gain]) -> Table:
    """One row per entry, one column per schedule and set, each with its interval and its word."""
    heads = tuple(dict.fromkeys(Column(each.schedule, each.set) for each in found))
    cells = {(each.entry, Column(each.schedule, each.set)): each for each in found}
    rows = tuple(
        Row((Entry(entry),), tuple(_cell(cells.get((entry, column))) for column in heads))
        for entry in dict.fromkeys(each.entry for each in found)
    )
    baseline, metric = found[0].baseline, found[0].metric
    return Table(
        "gains",
        f"{label(metric)}, minus {baseline} in the same streams",
        columns("detector"),
        heads,
        rows,
        notes=(
            "Points with the paired 95 % interval over streams, not corrected for the number of cells; no difference: "
            f"the interval lies within {100 * MARGIN:g} point of 0.",
        ),
        facts={"metric": metric, "baseline": baseline},
    )


def _cell(each: Gain | None) -> Entry | None:
    if each is None:
        return None
    if each.low is None or each.high is None:
        return Entry("cannot say: no window holds both", "cannot say")
    scale = 100 if unit_of(each.metric) == "percent" else 1
    low, value, high = (scale * number for number in (each.low, each.value, each.high))
    return Entry(f"{value:+.2f} ({low:+.2f} to {high:+.2f}), {each.word}", each.value)
