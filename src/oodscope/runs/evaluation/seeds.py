"""Several runs of one recipe as one row: how much of a number is the luck of the seed?"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from oodscope.base.errors import DataError
from oodscope.document.table import Table
from oodscope.metrics.interval import t_interval
from oodscope.protocols.arrange import pivot
from oodscope.protocols.registry import headline_metrics
from oodscope.results.measurement import Measurement, Measurements
from oodscope.runs.evaluation.run import Result

Key = tuple[str, str, str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class OverSeeds:
    """One number over the runs of a recipe.

    Parameters
    ----------
    mean, sd : over the runs.
    low, high : Student's interval of the mean: where the mean over many more runs would lie.
    within_low, within_high : the mean of the runs' own interval ends: the noise of the images, which more runs do
        not reduce. ``None`` where a run has no interval.
    runs : how many.
    """

    detector: str
    tuning: str
    protocol: str
    group: str
    set: str
    metric: str
    mean: float
    sd: float
    low: float
    high: float
    level: float
    within_low: float | None
    within_high: float | None
    runs: int


@dataclass(frozen=True)
class SeedSummary:
    """The numbers of several runs of one recipe, each with its spread over the runs."""

    rows: tuple[OverSeeds, ...]
    first: Result
    runs: tuple[str, ...]

    def to_dataframe(self) -> pd.DataFrame:
        """One row each, as fractions."""
        return pd.DataFrame([asdict(row) for row in self.rows])

    def table(self, protocol: str | None = None, metric: str | None = None) -> Table:
        """The table people publish: mean and standard deviation over the runs, with the interval of the mean."""
        chosen = protocol or self.first.record.protocols[0]
        metric = metric or headline_metrics(chosen, self.first.measurements)[0]
        table = pivot(Measurements(self._measurements()), chosen, metric)
        spread = {(r.tuning, r.detector, r.group, r.set): r.sd for r in self.rows_of(chosen, metric)}
        rows = tuple(
            replace(
                row,
                cells=tuple(
                    number and replace(number, sd=spread[row.section, row.name, column.group, column.name])
                    for column, number in zip(table.columns, row.numbers)
                ),
            )
            for row in table.rows
        )
        return replace(table, rows=rows, notes=(*table.notes, self._note(chosen, metric)))

    def rows_of(self, protocol: str, metric: str) -> list[OverSeeds]:
        """Those of one metric under one protocol."""
        return [row for row in self.rows if (row.protocol, row.metric) == (protocol, metric)]

    def _note(self, protocol: str, metric: str) -> str:
        said = f"Means over {len(self.runs)} runs ± their standard deviation; intervals: Student's t over runs."
        within = [
            100 * (row.within_high - row.within_low) / 2
            for row in self.rows_of(protocol, metric)
            if row.within_low is not None and row.within_high is not None
        ]
        if within:
            said += f" The images add noise of their own: ±{np.median(within):.2f} within a run (median half-width)."
        return said

    def _measurements(self) -> Iterator[Measurement]:
        record = self.first.record
        for row in self.rows:
            yield Measurement(
                run=f"{row.runs} runs",
                benchmark=record.benchmark,
                benchmark_version=record.benchmark_version,
                model=record.model,
                detector=row.detector,
                tuning=row.tuning,  # type: ignore[arg-type]
                protocol=row.protocol,
                set=row.set,
                group=row.group,
                metric=row.metric,
                value=row.mean,
                low=row.low,
                high=row.high,
                interval=f"t-{row.runs}-runs",
                level=row.level,
            )


def over_seeds(results: Sequence[Result], level: float = 0.95) -> SeedSummary:
    """Summarise runs that differ in nothing but the seed of their training.

    Refused are runs of other benchmarks or versions, other models by name, or other detectors: their spread would be
    taken for that of seeds.
    """
    if len(results) < 2:
        raise DataError(f"the spread over seeds needs at least 2 runs; there is {len(results)}")
    ids = [result.record.id for result in results]
    if len(set(ids)) < len(ids):
        raise DataError(f"run {next(i for i in ids if ids.count(i) > 1)} is given twice; seeds are different runs")
    first = results[0]
    tables = [_by_key(result) for result in results]
    for result, table in zip(results, tables):
        for what in ("benchmark", "benchmark_version", "model"):
            mine, theirs = getattr(first.record, what), getattr(result.record, what)
            if mine != theirs:
                raise DataError(
                    f"runs of one recipe share their {what.replace('_', ' ')}; {ids[0]} has {mine!r}, "
                    f"{result.record.id} {theirs!r}"
                )
        if odd := set(table) ^ set(tables[0]):
            detector, _, protocol, _, name, metric = min(odd)
            raise DataError(
                f"runs of one recipe measure the same; {metric} of {detector or 'the classifier'} on {name} "
                f"({protocol}) is missing from one of {ids[0]} and {result.record.id}"
            )
    fingerprints = [result.record.model_fingerprint for result in results]
    if len(set(fingerprints)) < len(fingerprints):
        raise DataError("two of the runs judge the same weights; seeds are separately trained networks")
    rows = [_summarise(key, [table[key] for table in tables], level) for key in tables[0]]
    return SeedSummary(tuple(rows), first, tuple(ids))


def _by_key(result: Result) -> dict[Key, Measurement]:
    return {(m.detector, m.tuning, m.protocol, m.group, m.set, m.metric): m for m in result.measurements}


def _summarise(key: Key, rows: Sequence[Measurement], level: float) -> OverSeeds:
    values = np.array([row.value for row in rows])
    interval = t_interval(values, level)
    lows, highs = [row.low for row in rows], [row.high for row in rows]
    complete = None not in lows and None not in highs
    detector, tuning, protocol, group, name, metric = key
    return OverSeeds(
        detector=detector,
        tuning=tuning,
        protocol=protocol,
        group=group,
        set=name,
        metric=metric,
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)),
        low=interval.low,
        high=interval.high,
        level=level,
        within_low=float(np.mean(np.array(lows, dtype=np.float64))) if complete else None,
        within_high=float(np.mean(np.array(highs, dtype=np.float64))) if complete else None,
        runs=len(rows),
    )
