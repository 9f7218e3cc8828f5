"""Does a ranking of detectors on generated images hold on real ones? Kendall's τ, over all networks and within each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from oodscope.metrics import Interval
from oodscope.metrics.rank_agreement import kendall, kendall_interval
from oodscope.results.generated import GeneratedStudy
from oodscope.results.measurement import MEAN

ALL, INDEPENDENT = "all networks", "networks without a part in making"
FEWEST = 4
"""Detectors below which no ranking is worth comparing."""


@dataclass(frozen=True)
class RankAgreement:
    """How far the AUROC on a generated set orders detectors as that on a real one does.

    Parameters
    ----------
    real : a set, or ``"mean"``: the mean AUROC over all real sets of foreign images.
    scope : one network, or all of them together: then rows are (network, detector).
    rows : how many were ranked.
    tau : Kendall's τ-b: 1, the same order; 0, none in common; -1, reversed.
    interval : bootstrap over detectors; over all networks, a detector's rows are drawn together.
    """

    generated: str
    real: str
    scope: str
    rows: int
    tau: float
    interval: Interval


def rank_agreements(study: GeneratedStudy, seed: int = 0) -> list[RankAgreement]:
    """For each generated set of foreign images and each real one, and the mean of the real ones: over all and within."""
    scopes = {ALL: study.networks} if len(study.networks) > 1 else {}
    others = [name for name in study.networks if name not in study.circular]
    if 1 < len(others) < len(study.networks):
        scopes[INDEPENDENT] = others
    scopes |= {name: [name] for name in study.networks}
    return [
        each
        for generated in study.sanity.near()
        for real in (*study.real, MEAN)
        for scope, networks in scopes.items()
        for each in _agreement(study, generated, real, scope, networks, seed)
    ]


def _agreement(
    study: GeneratedStudy, generated: str, real: str, scope: str, networks: Sequence[str], seed: int
) -> Iterator[RankAgreement]:
    found = study.separation("auroc")
    sets = study.real if real == MEAN else [real]
    ranked = [
        (network, detector)
        for network, detector in dict.fromkeys((network, detector) for network, detector, _ in found)
        if network in networks
    ]
    if not sets or len({detector for _, detector in ranked}) < FEWEST:
        return
    ours = np.array([found[*row, generated].value for row in ranked])
    theirs = np.array([np.mean([found[*row, name].value for name in sets]) for row in ranked])
    clusters = [detector for _, detector in ranked]
    interval = kendall_interval(ours, theirs, clusters=clusters, seed=seed)
    yield RankAgreement(generated, real, scope, len(ranked), kendall(ours, theirs), interval)
