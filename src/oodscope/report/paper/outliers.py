"""Outliers: the attacks that started from one set of outliers, as a figure reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from oodscope.base.errors import DataError
from oodscope.results.opening import of_kind
from oodscope.results.record import SetRecord
from oodscope.results.run import Run
from oodscope.runs.attack.run import CLEAN, PROTOCOL, Attack, SearchedPair


@dataclass(frozen=True)
class Outliers:
    """Attacks on detectors that share source images; each brings variations of its own.

    Parameters
    ----------
    name : of the set that the source images are from.
    """

    name: str
    attacks: tuple[Attack, ...]

    @cached_property
    def sources(self) -> dict[str, Attack]:
        """The attack that used each variation, by the variation's name."""
        return {name: each for each in self.attacks for name in each.variations}

    @property
    def variations(self) -> list[str]:
        """What detectors were attacked with."""
        return list(self.sources)

    @property
    def generators(self) -> list[str]:
        """Those that make images of their own, instead of varying source images."""
        return [name for name, each in self.sources.items() if name not in _about(each)["conditional"]]

    @cached_property
    def clean(self) -> dict[str, float]:
        """AUROC on the source images as they are, of detectors that all attacks attacked; best first."""
        rows = self.attacks[0].result.measurements.filter(protocol=PROTOCOL, metric="auroc", group=CLEAN)
        shared = [row for row in rows if all(row.detector in each.detectors for each in self.attacks)]
        return {row.detector: row.value for row in sorted(shared, key=lambda row: (-row.value, row.detector))}

    def search(self, detector: str, variation: str) -> SearchedPair:
        """What one variation found against one detector."""
        return self.sources[variation].search(detector, variation)


def outlier_sets(runs: Sequence[Run]) -> list[Outliers]:
    """The attacks among some runs, by the set that they started from; ranks of all are among the same ID images."""
    attacks = of_kind(runs, Attack)
    if not attacks:
        raise DataError("no attack among these runs")
    known = {record.fingerprint for each in attacks for record in _id_test(each)}
    if len(known) > 1:
        raise DataError("attacks that rank among different ID test images cannot share a figure")
    names = list(dict.fromkeys(_about(each)["outliers"] for each in attacks))
    found = [Outliers(name, tuple(each for each in attacks if _about(each)["outliers"] == name)) for name in names]
    for each in found:
        used = [name for one in each.attacks for name in one.variations]
        for name in used:
            if used.count(name) > 1:
                raise DataError(f"two attacks on {each.name} with {name}; give one of them")
        if not each.clean:
            raise DataError(f"no detector was attacked in every attack on {each.name}")
    return found


def only_set(sets: Sequence[Outliers]) -> Outliers:
    """The one set of outliers that a figure shows."""
    if len(sets) > 1:
        raise DataError(f"attacks on {len(sets)} sets given, one needed: {', '.join(each.name for each in sets)}")
    return sets[0]


def _about(attack: Attack) -> dict[str, Any]:
    about: dict[str, Any] = attack.result.scores.context.extra["attack"]
    return about


def _id_test(attack: Attack) -> list[SetRecord]:
    return [each for each in attack.result.record.sets.values() if each.role == "id_test"]
