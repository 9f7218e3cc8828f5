"""Figures of an attack: what a longer search takes, who is fooled by whose images, and where chains ended."""

from collections.abc import Mapping, Sequence

import numpy as np

from oodscope.document.bins import bin_shares, even_edges
from oodscope.document.figure import (
    Axis,
    Figure,
    Heatmap,
    Histogram,
    Line,
    Position,
    figure_name,
    numbers,
    positions_of,
)
from oodscope.runs.attack.run import BUDGET, TRANSFER, Attack

BINS = 24

_FALLING = "a line that still falls at its right end says that a longer search would find worse."


def auroc_against_budget(
    attack: Attack,
    variation: str,
    detectors: Sequence[str] | None = None,
    positions: Mapping[str, Position] | None = None,
) -> Figure:
    """What is left of each detector after so many evaluations per chain.

    Parameters
    ----------
    detectors : those of the attack by default.
    positions : of detectors on the page; their places among ``detectors`` by default.
    """
    hover = "{name}\nAUROC {y:.2%} after {x:,} evaluations"
    return Figure(
        figure_name("budget", variation),
        f"{variation}: AUROC against the budget of the search",
        "Evaluations of the detector per chain, on a logarithmic axis. Higher is better for the detector; " + _FALLING,
        _against_budget(attack, variation, "auroc", hover, detectors, positions),
        Axis("evaluations per chain", scale="log"),
        Axis("AUROC", percent=True, range=(0.0, 1.02)),
    )


def lowest_against_budget(
    attack: Attack,
    variation: str,
    detectors: Sequence[str] | None = None,
    positions: Mapping[str, Position] | None = None,
) -> Figure:
    """The lowest score of all chains after so many evaluations of each.

    Parameters
    ----------
    detectors, positions : as in :func:`auroc_against_budget`.
    """
    hover = "{name}\nlowest score {y:.3g} after {x:,} evaluations"
    return Figure(
        figure_name("lowest", variation),
        f"{variation}: lowest score against the budget of the search",
        "The lowest score of all chains: 0 is the mean, 1 the standard deviation of ID validation images. Lower is "
        "worse for the detector; " + _FALLING,
        _against_budget(attack, variation, "lowest_score", hover, detectors, positions),
        Axis("evaluations per chain", scale="log"),
        Axis("lowest score, standardised"),
    )


def transfer_matrix(attack: Attack, variation: str, detectors: Sequence[str] | None = None) -> Figure:
    """AUROC of each detector on the images that were found against another one.

    Parameters
    ----------
    detectors : in the order of rows and columns; those of the attack by default.
    """
    chosen = tuple(detectors or attack.detectors)
    rows = attack.result.measurements.filter(protocol=TRANSFER, group=variation, metric="auroc")
    values = {(row.detector, row.set): row.value for row in rows}
    return Figure(
        figure_name("transfer", variation),
        f"{variation}: do images found against one detector fool the others?",
        "Rows: the detector that judges. Columns: the one that was attacked. On the diagonal each meets its own worst "
        "images. A strong row holds against images found for others; a pale column finds images that fool everyone.",
        (
            Heatmap(
                chosen,
                chosen,
                tuple(tuple(values.get((judge, against)) for against in chosen) for judge in chosen),
                ".0%",
                low=0.0,
                high=1.0,
                hover="{row} has AUROC {value:.2%}\non images found against {column}",
                strong=tuple(tuple(judge == against for against in chosen) for judge in chosen),
            ),
        ),
        Axis("attacked", scale="names", categories=chosen),
        Axis("judges", scale="names", categories=chosen),
    )


def found_parameters(
    attack: Attack,
    variation: str,
    detectors: Sequence[str] | None = None,
    positions: Mapping[str, Position] | None = None,
) -> list[Figure]:
    """A figure for each parameter of a variation: with what values chains ended, a line for each detector.

    Empty where coordinates mean nothing, such as the pixels of a perturbation.

    Parameters
    ----------
    detectors, positions : as in :func:`auroc_against_budget`.
    """
    chosen = list(detectors or attack.detectors)
    places = positions or positions_of(chosen)
    searches = {name: attack.search(name, variation) for name in chosen}
    samples_by_name = {name: np.asarray(each.found, dtype=np.float64) for name, each in searches.items()}
    figures = []
    for column, parameter in enumerate(next(iter(searches.values())).parameters):
        samples = {name: values[:, column] for name, values in samples_by_name.items()}
        together = np.concatenate(list(samples.values()))
        edges = even_edges(float(together.min()), float(together.max()), BINS)
        lines = (
            Histogram(
                name,
                numbers(edges),
                numbers(bin_shares(sample, edges)),
                places[name],
                hover="{name}: {y:.1%} of its chains",
            )
            for name, sample in samples.items()
        )
        figures.append(
            Figure(
                figure_name("found", variation, parameter),
                f"{variation}: {parameter}",
                "Where the chains ended: share of chains in each bin. A peak at an end says that the worst images may "
                "lie beyond what the variation allows.",
                tuple(lines),
                Axis(parameter),
                Axis("share of chains", percent=True, from_zero=True),
                shape="low",
            )
        )
    return figures


def _against_budget(
    attack: Attack,
    variation: str,
    metric: str,
    hover: str,
    detectors: Sequence[str] | None,
    positions: Mapping[str, Position] | None,
) -> tuple[Line, ...]:
    chosen = list(detectors or attack.detectors)
    places = positions or positions_of(chosen)
    rows = attack.result.measurements.filter(protocol=BUDGET, group=variation, metric=metric)
    curves = []
    for detector in chosen:
        own = sorted((int(row.set), row.value) for row in rows.filter(detector=detector))
        if own:
            budgets, values = zip(*own)
            curves.append(Line(detector, numbers(budgets), numbers(values), places[detector], hover, markers=True))
    return tuple(curves)
