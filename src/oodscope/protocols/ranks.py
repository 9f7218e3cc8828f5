"""The ranks that paired tests allow each detector, by the mean AUROC of a group of sets."""

from collections.abc import Mapping

from oodscope.metrics.comparison.multiplicity import rank_ranges
from oodscope.protocols.samples import Separation

Ranks = dict[str, int]
"""The fields ``rank_low`` and ``rank_high`` of a measurement; empty where nothing can be tested."""


def group_ranks(separations: Mapping[str, Separation], tracks: Mapping[str, str]) -> dict[str, dict[str, Ranks]]:
    """For each detector and group its range of ranks among the detectors of its tuning track.

    See :func:`rank_ranges`. A detector alone in its track has no rank, and none has
    one where a sample is a single image.
    """
    found: dict[str, dict[str, Ranks]] = {
        name: {group: {} for group in each.groups} for name, each in separations.items()
    }
    for track in dict.fromkeys(tracks.values()):
        rivals = [name for name in separations if tracks[name] == track]
        if len(rivals) < 2 or not separations[rivals[0]].testable:
            continue
        for group, names in separations[rivals[0]].groups.items():
            ranges = rank_ranges([separations[rival].placements(names) for rival in rivals])
            for rival, (low, high) in zip(rivals, ranges):
                found[rival][group] = {"rank_low": low, "rank_high": high}
    return found
