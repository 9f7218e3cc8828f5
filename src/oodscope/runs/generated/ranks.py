"""Does a ranking of detectors on generated images hold on real ones? Kendall's τ, over all networks and within each."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oodscope.metrics.generated.rank_agreement import kendall, kendall_interval, kendall_within
from oodscope.metrics.interval import Interval
from oodscope.metrics.metric import MEAN
from oodscope.runs.generated.run import GeneratedStudy

ALL, INDEPENDENT, WITHIN = "all networks", "networks that made nothing", "within networks"
FEWEST, FEWEST_DETECTORS = 8, 5
"""Rows, and different detectors among them, below which τ gets no interval."""

NETWORKS = 7
"""Fewest networks by which an order of detectors may be called the same or another; from there on they are redrawn."""


@dataclass(frozen=True)
class RankAgreement:
    """How far the AUROC on a generated set orders detectors as that on a real one does.

    Parameters
    ----------
    real : a set, or ``"mean"``: the mean AUROC over all real sets of OOD images.
    scope : ``all networks``: every pair of rows (network, detector); ``within networks``: pairs of one network only,
        pooled; the name of a network: its detectors alone.
    rows : how many were ranked.
    tau : Kendall's τ_b: 1, the same order; 0, none in common; -1, reversed.
    interval : bootstrap over networks, with the rows of a network drawn together; None where there are too few, or the
        pairs are pooled. With fewer than seven networks detectors are drawn instead, which says nothing of other
        networks.
    over : what was redrawn for it: ``networks`` or ``detectors``.
    """

    generated: str
    real: str
    scope: str
    rows: int
    tau: float
    interval: Interval | None
    over: str = "detectors"


def rank_agreements(study: GeneratedStudy, seed: int = 0) -> list[RankAgreement]:
    """Of each generated set of OOD images with each real one and with the mean of those: over all, and within."""
    others = [name for name in study.networks if name not in study.circular]
    scopes = {ALL: study.networks, WITHIN: study.networks} if len(study.networks) > 1 else {}
    if 1 < len(others) < len(study.networks):
        scopes[INDEPENDENT] = others
    scopes |= {name: [name] for name in study.networks}
    return [
        each
        for generated in study.sanity.near()
        for real in (*study.real, MEAN)
        if study.real
        for scope, networks in scopes.items()
        for each in _agreement(study, generated, real, scope, networks, seed)
    ]


def _agreement(
    study: GeneratedStudy, generated: str, real: str, scope: str, networks: list[str], seed: int
) -> Iterator[RankAgreement]:
    """At most one: columns that do not vary have no order."""
    found = study.separation("auroc")
    rows = list(dict.fromkeys((network, detector) for network, detector, _ in found if network in networks))
    sets = study.real if real == MEAN else [real]
    ours = np.array([found[*row, generated].value for row in rows])
    theirs = np.array([np.mean([found[*row, name].value for name in sets]) for row in rows])
    if len(np.unique(ours)) < 2 or len(np.unique(theirs)) < 2:
        return
    detectors = [detector for _, detector in rows]
    over = "networks" if len(networks) >= NETWORKS else "detectors"
    if scope == WITHIN:
        yield RankAgreement(
            generated, real, scope, len(rows), kendall_within(ours, theirs, [name for name, _ in rows]).pooled, None
        )
        return
    interval = None
    if len(rows) >= FEWEST and len(set(detectors)) >= FEWEST_DETECTORS:
        clusters = [network for network, _ in rows] if over == "networks" else detectors
        interval = kendall_interval(ours, theirs, clusters, seed=seed)
    yield RankAgreement(generated, real, scope, len(rows), kendall(ours, theirs), interval, over)
