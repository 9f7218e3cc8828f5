"""How much data a difference needs: variance components of pairs of detectors in a run, and what would show a point."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from oodscope.base.errors import DataError
from oodscope.document.table import Column, Entry, Row, Table, columns
from oodscope.metrics.comparison.components import Components, class_components, needed, typical
from oodscope.protocols.registry import stored_protocol
from oodscope.protocols.separation import separate
from oodscope.runs.evaluation.run import Result

WORDS = {"classes": "OOD classes", "images": "images of each OOD class", "id_images": "ID images", "seeds": "networks"}


@dataclass(frozen=True)
class PowerReport:
    """The typical components of a difference in AUROC on each set with classes, and what would show ``difference``."""

    sets: dict[str, Components]
    difference: float
    pairs: int

    def table(self) -> Table:
        """One row for each set: components in points, then how many of each would show the difference."""
        heads = columns(
            *("ID image", "OOD image", "class", "network", "se now", "power now"),
            *(f"{WORDS[what]} needed" for what in WORDS),
        )
        rows = tuple(Row((Entry(name),), self._cells(each)) for name, each in self.sets.items())
        notes = (
            "Standard deviations in points of the difference of two detectors in AUROC that one more image, class or "
            f"network brings, root mean square over {self.pairs} pairs. Needed: the fewest that show a difference of "
            f"{100 * self.difference:g} points in 8 of 10 cases for other OOD classes, all else as measured; – where "
            "no number would do, or where it was not measured.",
        )
        return Table("power", "Variance components of a difference", (Column("", "set"),), heads, rows, notes)

    def _cells(self, own: Components) -> tuple[Entry, ...]:
        spreads = (own.id_image, own.ood_image, own.ood_class, own.seed, own.error())
        cells = [Entry("–" if np.isnan(value) else f"{100 * value:.2f}", value) for value in spreads]
        cells.append(Entry(f"{100 * own.power(self.difference):.0f} %", own.power(self.difference)))
        for what in WORDS:
            count = None if what == "seeds" and np.isnan(own.seed) else needed(own, what, self.difference)
            cells.append(Entry("–" if count is None else f"{count:,}", count))
        return tuple(cells)


def power(
    result: Result, *, difference: float = 0.01, detectors: Sequence[str] | None = None, seeds: Sequence[Result] = ()
) -> PowerReport:
    """The components of every pair of detectors on every set with classes, and what a difference would need.

    Parameters
    ----------
    difference : in AUROC, to be seen; 0.01 is one point.
    seeds : runs of the same detectors with other networks of the recipe; without them the part of networks is unknown.
    """
    names = list(detectors or result.scores.detectors)
    protocol = stored_protocol(result.scores, "standard")
    tables = [separate(each.scores, protocol.negatives, protocol.groups) for each in (result, *seeds)]
    pairs = list(combinations(names, 2))
    first = tables[0][names[0]]
    found: dict[str, Components] = {}
    for name, classes in first.ood_classes.items():
        if np.unique(classes).size < 2 or not pairs:
            continue
        components = []
        for a, b in pairs:
            between = [table[a].placements([name]) - table[b].placements([name]) for table in tables]
            by_seed = np.array([each.mean for each in between]) if seeds else None
            components.append(class_components(between[0].of_id, between[0].of_ood[name], classes, by_seed=by_seed))
        found[name] = typical(components)
    if not found:
        raise DataError("power needs two detectors and an OOD set with two classes or more")
    return PowerReport(found, difference, len(pairs))
