"""The plots of the report: which are shown for each kind of run, in which order, and for how many detectors."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from oodscope.document.figure import Figure
from oodscope.metrics.metric import MEAN
from oodscope.protocols.registry import headline_metrics, known_protocol, protocol_of, stored_protocol
from oodscope.runs.attack.figures import (
    auroc_against_budget,
    found_parameters,
    lowest_against_budget,
    transfer_matrix,
)
from oodscope.runs.attack.run import TRANSFER, Attack
from oodscope.runs.evaluation.figures.cost import cost_against_quality
from oodscope.runs.evaluation.figures.disagreement import rank_correlations, verdict_differences
from oodscope.runs.evaluation.figures.separation import roc_of_detector, roc_of_set, score_histograms
from oodscope.runs.evaluation.run import Result

FEW = 10
"""Detectors in a plot that lays their curves over each other: more cannot be distinguished."""


@dataclass(frozen=True)
class PlotGroup:
    """Plots that belong together."""

    title: str
    words: str
    figures: list[Figure]


def result_plots(result: Result, detectors: Sequence[str], run: int, positions: Mapping[str, int]) -> list[PlotGroup]:
    """The plots of one evaluation, those of single detectors last.

    Parameters
    ----------
    detectors : in the order in which the first table ranks them; the leading ones are compared.
    run : the number of the run, which separates its plots from those of others.
    positions : of the detectors on the page.
    """
    scores, leading = result.scores, list(detectors)[:FEW]
    ood_sets = [name for role in ("near", "far") for name in scores.sets(role)]
    limit = f" of the {FEW} leading detectors" if len(detectors) > FEW else ""
    groups = [
        PlotGroup(
            "ROC curves",
            f"One plot for each set, one curve for each{limit or ' detector'}: the upper left is best.",
            [roc_of_set(scores, name, leading, positions) for name in ood_sets],
        ),
        PlotGroup("Cost against quality", "What a better detector costs.", list(_costs(result, detectors, positions))),
        PlotGroup(
            "Disagreement",
            "Which detectors see different things.",
            [rank_correlations(scores, detectors), verdict_differences(scores, detectors)]
            if len(detectors) > 1
            else [],
        ),
    ]
    for name in result.record.protocols:
        if known_protocol(name):
            protocol = stored_protocol(scores, name)
            groups.append(PlotGroup(protocol.title, protocol.summary, protocol.figures(scores, leading, positions)))
    return [replace(each, figures=numbered(each.figures, run)) for each in groups if each.figures]


def detector_plots(result: Result, detectors: Sequence[str], run: int) -> dict[str, list[Figure]]:
    """Histograms of each detector, and its ROC curves unless detectors are many: those of sets hold the same curves."""
    scores, curves = result.scores, len(detectors) <= FEW
    shifted = bool(scores.sets("csid"))
    has_ood = bool(scores.sets("near") or scores.sets("far"))
    found = {}
    for name in detectors:
        own = [score_histograms(scores, name)]
        if has_ood and curves:
            own.append(roc_of_detector(scores, name))
            if shifted:
                own.append(roc_of_detector(scores, name, shifted=True))
        found[name] = numbered(own, run)
    return found


def attack_plots(attack: Attack, detectors: Sequence[str], run: int, positions: Mapping[str, int]) -> list[PlotGroup]:
    """What a larger budget takes, who is fooled by whose images, and where chains ended.

    Parameters
    ----------
    detectors : in the order of the attack's table.
    run, positions : as in :func:`result_plots`.
    """
    leading, ways = list(detectors)[:FEW], attack.variations
    transferred = bool(attack.result.measurements.filter(protocol=TRANSFER)) and len(detectors) > 1
    groups = [
        PlotGroup(
            "Budget",
            "What was left of each detector while the search went on.",
            [
                draw(attack, name, detectors, positions)
                for name in ways
                for draw in (auroc_against_budget, lowest_against_budget)
            ],
        ),
        PlotGroup(
            "Transfer",
            "Whether images found against one detector fool the others.",
            [transfer_matrix(attack, name, detectors) for name in ways if transferred],
        ),
        PlotGroup(
            "Parameters",
            "With which parameters the chains ended.",
            [figure for name in ways for figure in found_parameters(attack, name, leading, positions)],
        ),
    ]
    return [replace(each, figures=numbered(each.figures, run)) for each in groups if each.figures]


def _costs(result: Result, detectors: Sequence[str], positions: Mapping[str, int]) -> Iterator[Figure]:
    for protocol in result.record.protocols:
        metric = headline_metrics(protocol, result.measurements)[0]
        rows = result.measurements.filter(protocol=protocol, metric=metric, set=MEAN)
        groups = [group for group in protocol_of(protocol).groups if group in rows.distinct("group")]
        if groups and any(row.microseconds_per_image for row in rows):
            yield cost_against_quality(result, protocol, groups[0], metric, detectors, positions)


def numbered(figures: Iterable[Figure], run: int) -> list[Figure]:
    """Names are unique within a page: two runs may draw the same plot."""
    return [replace(figure, name=f"{figure.name}-run{run}") for figure in figures]
