"""Figures of a study by cross-validation: estimates, ranks, a truth that settles, and where spread comes from."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.document.figure import (
    Axis,
    Band,
    Bars,
    Figure,
    Heatmap,
    Line,
    Mark,
    Points,
    Position,
    Text,
    figure_name,
    guide,
    matrix,
    numbers,
    positions_of,
)
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.crossval.convergence import running_mean
from oodscope.runs.crossval.study import MetricStudy

SOURCES = {
    "id_sample": "ID sample",
    "ood_classes": "OOD classes",
    "interaction": "both together",
    "training_seed": "training seed",
}
"""The sources of variance, as a legend calls them."""

_SETTLED = 0.005
"""Half a point: a mean that moves by less is called settled."""

_BAR, _ROW = 0.32, 1.0
"""Heights in the diagram of ranks: from one bar to the next, and from one name to the next."""


def estimates(study: MetricStudy) -> Figure:
    """The estimate of the metric for each experiment (rows: ID/OOD pair and training) and detector (columns).

    The estimate is the truth by repeated hold-outs, or the mean of the cross-validations where none were made.
    """
    estimate = study.estimate
    metric = METRICS[study.metric]
    ranks = 1 + (estimate[None, :, :] > estimate[:, None, :]).sum(axis=1)
    cells = tuple(str(cell) for cell in study.cells)
    return Figure(
        figure_name("estimates", study.metric),
        f"{metric.label} of every detector in every experiment",
        f"The mean over the {'hold-outs' if study.has_truth else 'cross-validations'}, in percent, higher is better. A "
        "pointer shows the rank among the detectors of an experiment.",
        (
            Heatmap(
                cells,
                study.detectors,
                matrix(estimate.T),
                ".1%",
                low=float(estimate.min()),
                high=float(estimate.max()),
                hover=f"{{column}} on {{row}}: {{value:.2%}}\nrank {{beside[0]}} of {len(study.detectors)}",
                beside=tuple(tuple((float(rank),) for rank in row) for row in ranks.T.tolist()),
            ),
        ),
        Axis(scale="names", categories=study.detectors),
        Axis(scale="names", categories=cells),
    )


def convergence(study: MetricStudy, positions: Mapping[str, Position] | None = None) -> Figure:
    """How far the mean of the first n hold-outs lies from the last one, a line for each detector, averaged over cells.

    The band is twice the standard error of the mean after n hold-outs, the largest of the detectors: what is still
    open at its right end stays open.

    Parameters
    ----------
    positions : of detectors on the page; their places in the study by default.
    """
    if len(study.hold_outs) < 2:
        raise DataError("a mean settles over 2 complete hold-outs or more; the study has fewer")
    series = study.hold_outs.mean(axis=2)
    running = running_mean(series)
    away = 100 * (running.mean - running.mean[-1])
    n = np.arange(1, len(series) + 1, dtype=np.float64)
    reach = 200 * float(series.std(axis=0, ddof=1).max()) / np.sqrt(n)
    top = 1.05 * max(float(np.abs(away).max()), float(reach[1]))
    places = positions or positions_of(study.detectors)
    settled = study.convergence.settled_after(_SETTLED)
    hover = "{name}\nafter {x} hold-outs {y:+.3f} points from the last mean"
    return Figure(
        figure_name("convergence", study.metric),
        f"How the truth settles: {METRICS[study.metric].label}",
        f"Mean over {len(study.cells)} cells of the first n hold-outs, in points from the mean of all {len(series):,}. "
        "The area is twice the standard error after n hold-outs: what is still open at its right end stays open. Cell "
        f"by cell, {_settling(settled, len(series))}",
        (
            Band("± 2 standard errors", numbers(n), numbers(-reach), numbers(reach), "id"),
            *(
                Line(name, numbers(n), numbers(away[:, index]), places[name], hover)
                for index, name in enumerate(study.detectors)
            ),
        ),
        Axis("hold-outs", whole=True, range=(1.0, float(len(n))), log_range=(1.0, float(len(n)))),
        Axis(f"{METRICS[study.metric].label}, points from last mean", range=(-top, top)),
    )


def _settling(settled: NDArray[np.int64], runs: int) -> str:
    """After how many hold-outs the means stay within half a point; the last one always does, and says nothing."""
    done = settled < runs
    if not done.any():
        return f"no mean is known to stay within half a point: all of the {runs:,} hold-outs were needed."
    words = f"{int(done.sum())} of {settled.size} means stay within half a point before the last hold-out"
    return f"{words}, after {np.median(settled[done]):.0f} (median)."


def fold_values(study: MetricStudy, positions: Mapping[str, Position] | None = None) -> Figure:
    """The mean over the cells in every fold, the mean of all folds, and its interval for other OOD classes.

    Parameters
    ----------
    positions : of detectors on the page; their places in the study by default.
    """
    if not study.has_folds:
        raise DataError("values of folds are those of cross-validations; the study has none")
    by_fold = study.folds.mean(axis=3).reshape(-1, len(study.detectors))
    means = study.cross_validated.mean(axis=1)
    low, high = study.mean_intervals
    known = not bool(np.isnan(low).any())
    places = positions or positions_of(study.detectors)
    order = np.argsort(-means, kind="stable").tolist()
    metric = METRICS[study.metric]
    marks: list[Mark] = []
    for at, row in enumerate(order):
        name = study.detectors[row]
        shift = np.linspace(-0.18, 0.18, len(by_fold)) if len(by_fold) > 1 else np.zeros(1)
        hover = "{name}: {y:.2%}"
        own = Points(
            f"{name}, folds", numbers(at + shift), numbers(by_fold[:, row]), places[name], filled=False, hover=hover
        )
        ends = (numbers([low[row]]), numbers([high[row]])) if known else ((), ())
        marks += [own, Points(name, (float(at),), numbers([means[row]]), places[name], *ends, hover=hover)]
    ticks = tuple((float(at), study.detectors[row]) for at, row in enumerate(order))
    interval = ", with the 95 % interval for other OOD classes" if known else ""
    return Figure(
        figure_name("folds", study.metric),
        f"{metric.label} in every fold, best detector first",
        f"Open: the mean over {len(study.cells)} cells in each of {len(by_fold):,} folds. Filled: their "
        f"mean{interval}. {'Higher' if metric.higher_is_better else 'Lower'} is better.",
        tuple(marks),
        Axis(range=(-0.5, len(order) - 0.5), ticks=ticks),
        Axis(f"mean {metric.label}", percent=True),
        legend=False,
    )


def agreement(study: MetricStudy, positions: Mapping[str, Position] | None = None) -> Figure:
    """How far the cross-validations lie from the truth, for each detector in each cell: mean and range, in points.

    Parameters
    ----------
    positions : of detectors on the page; their places in the study by default.
    """
    if not study.has_truth or not study.has_folds:
        raise DataError("agreement is between hold-outs and cross-validations; the study lacks one of them")
    truth, away = 100 * study.truth, 100 * study.repetitions - 100 * study.truth
    places = positions or positions_of(study.detectors)
    label = METRICS[study.metric].label
    ends = numbers([truth.min(), truth.max()])
    return Figure(
        figure_name("agreement", study.metric),
        f"Cross-validation against the truth: {label}",
        f"A point for each detector in each cell: the mean of {len(study.folds)} cross-validations and their range. On "
        "the dotted line they find the mean of the hold-outs.",
        (
            guide(ends, (0.0, 0.0)),
            *(
                Points(
                    name,
                    numbers(truth[index]),
                    numbers(away[:, index].mean(axis=0)),
                    places[name],
                    numbers(away[:, index].min(axis=0)),
                    numbers(away[:, index].max(axis=0)),
                    hover="{name}\ntruth {x:.2f}, cross-validation {y:+.2f} points from it",
                )
                for index, name in enumerate(study.detectors)
            ),
        ),
        Axis(f"truth: {label}, mean of {len(study.hold_outs)} hold-outs, %"),
        Axis(f"cross-validation − truth, points (range of {len(study.folds)})"),
    )


def average_ranks(study: MetricStudy, alpha: float = 0.05) -> Figure:
    """Average ranks over the cells on a line, best to the left; a bar joins what Nemenyi's test cannot separate."""
    if not study.testable or len(study.detectors) < 3:
        raise DataError(f"average ranks want at least 3 detectors and 8 cells; the study has {len(study.detectors)}")
    found = study.ranks(alpha)
    ranks, count = found.average_ranks, len(study.detectors)
    order = np.argsort(ranks, kind="stable").tolist()
    bars = _BAR * len(found.groups)
    depth = bars + _ROW * ((count + 1) // 2)
    margin = 0.42 * (count - 1)
    listed = ", ".join(f"{study.detectors[index]} {ranks[index]:.2f}" for index in order)
    return Figure(
        figure_name("ranks", study.metric),
        f"{METRICS[study.metric].label}: average ranks over {len(study.cells)} cells, 1 is best",
        f"A bar joins detectors that Nemenyi's test at {alpha:g} does not distinguish (critical difference "
        f"{found.difference:.2f}; p of Friedman's test {study.friedman():.2g}). {listed}.",
        (
            *_ruler(count, found.difference),
            *_joined(ranks, found.groups),
            *_leaders(study.detectors, ranks, order, bars),
        ),
        Axis(range=(1 - margin, count + margin), shown=False),
        Axis(range=(-(depth + 0.4), 2.2), shown=False),
        legend=False,
        shape="low",
    )


def _ruler(count: int, difference: float) -> Iterator[Mark]:
    yield _ink((1.0, float(count)), (0.0, 0.0))
    for rank in range(1, count + 1):
        yield _ink((float(rank), float(rank)), (0.0, 0.25))
        yield Text(float(rank), 0.35, str(rank), "above")
    reach = 1 + difference
    yield _ink((1.0, reach), (1.6, 1.6))
    yield Text(reach + 0.02 * count, 1.6, f"CD {difference:.2f}")


def _joined(ranks: tuple[float, ...], groups: tuple[tuple[int, ...], ...]) -> Iterator[Mark]:
    for number, group in enumerate(groups):
        height = -0.35 - _BAR * number
        yield _ink((ranks[group[0]] - 0.05, ranks[group[-1]] + 0.05), (height, height), "heavy")


def _leaders(names: tuple[str, ...], ranks: tuple[float, ...], order: list[int], bars: float) -> Iterator[Mark]:
    """A line from the rank of each detector to its name: the better half to the left, the others to the right."""
    count, half = len(order), (len(order) + 1) // 2
    for place, index in enumerate(order):
        rank, left = ranks[index], place < half
        height = -(bars + 0.9 + _ROW * (place if left else count - 1 - place))
        end = 1 - 0.03 * count if left else count + 0.03 * count
        yield Line("", (rank, rank, end), (0.0, height, height), "soft", weight="thin", listed=False)
        words = f"{names[index]} {rank:.2f}" if left else f"{rank:.2f} {names[index]}"
        yield Text(end, height, f" {words} ", "left" if left else "right")


def _ink(x: tuple[float, ...], y: tuple[float, ...], weight: str = "thin") -> Line:
    return Line("", x, y, "ink", weight="heavy" if weight == "heavy" else "thin", listed=False)


def variance_bars(metric: str, components: pd.DataFrame) -> Figure:
    """A bar for each detector, split by the source of its spread; components are averaged over cells, then shared out.

    Parameters
    ----------
    components : a row per detector and cell, as :func:`variance_table` makes it.
    """
    means = components.groupby("detector", sort=False, observed=True)[list(SOURCES)].mean().clip(lower=0.0)
    total = means.sum(axis=1)
    shares = means.div(total.where(total > 0.0, 1.0), axis=0)
    names = tuple(f"{name} (sd {100 * np.sqrt(value):.2f})" for name, value in total.items())
    runs = f" of {int(components['runs'].median())} runs for a cell" if "runs" in components else ""
    return Figure(
        figure_name("variance", metric),
        f"Sources of variance: {METRICS[metric].label}",
        "Where the spread of one run comes from, averaged over cells; sd is that of one run, in points. Crossed design"
        f"{runs}, method of moments.",
        tuple(
            Bars(words, names, numbers(shares[source]), place, hover="{y}\n{name}: {x:.0%} of the variance")
            for place, (source, words) in enumerate(SOURCES.items())
        ),
        Axis("share of the variance", percent=True, range=(0.0, 1.0)),
        Axis(scale="names", categories=names),
    )


def pair_p_values(study: MetricStudy, alpha: float) -> Figure:
    """p of every pair of detectors by the truth, below the diagonal; bold where a pair differs."""
    p = study.truth_tests.p
    texts = [["<.001" if value < 0.001 else f"{value:.3f}" for value in row] for row in p[1:, :-1]]
    return _pairs(
        study,
        figure_name("pairs", study.metric),
        f"truth: p of {len(study.hold_outs)} hold-outs (bold: p ≤ {alpha:g})",
        p,
        p <= alpha,
        high=1.0,
        texts=texts,
        hover="{row} against {column}\np {value:.4f}",
    )


def pair_counts(study: MetricStudy, alpha: float) -> Figure:
    """In how many cross-validations each pair differs, below the diagonal; bold where it differs by the truth."""
    return _pairs(
        study,
        figure_name("counts", study.metric, f"{alpha:g}"),
        f"repetitions of {len(study.folds)} with p ≤ {alpha:g} (bold: so in the truth)",
        study.counts(alpha).astype(np.float64),
        study.truth_tests.p <= alpha,
        high=float(len(study.folds)),
        hover="{row} against {column}\n{value:.0f} repetitions",
    )


def _pairs(
    study: MetricStudy,
    name: str,
    title: str,
    values: np.ndarray,
    strong: np.ndarray,
    *,
    high: float,
    hover: str,
    texts: list[list[str]] | None = None,
) -> Figure:
    """What stands below the diagonal, without the empty row and column: a pair is shown once."""
    below = np.where(np.tri(len(values), k=-1, dtype=bool), values, np.nan)[1:, :-1]
    rows, columns = study.detectors[1:], study.detectors[:-1]
    heat = Heatmap(
        rows,
        columns,
        matrix(below),
        ".0f",
        low=0.0,
        high=high,
        hover=hover,
        texts=tuple(map(tuple, texts or ())),
        strong=tuple(map(tuple, strong[1:, :-1].tolist())),
    )
    axes = Axis(scale="names", categories=columns), Axis(scale="names", categories=rows)
    return Figure(name, title, f"{METRICS[study.metric].label}, every pair of detectors once.", (heat,), *axes)
