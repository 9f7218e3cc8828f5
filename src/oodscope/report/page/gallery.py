"""The hardest images of every detector as a part of a page: each picture once, shown wherever it is meant."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from oodscope.report.page.templating import data_uri, page_environment
from oodscope.results.gallery import OOD_ROLES, Gallery, hardest, shown_sets
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result

SMALL = 40
"""Pictures no larger than this are enlarged pixel by pixel, so that they do not blur."""


@dataclass(frozen=True)
class Thumbnail:
    """One image as one detector sees it.

    Parameters
    ----------
    picture : its number in the gallery.
    taken_for : the class that the classifier gives it, and ``own``, the class that it has; empty where not known.
    share : of ID test images, those with a higher score (OOD sets), or a lower one (ID sets).
    fooled : detectors among whose hardest images of this set it is.
    passes : whether an OOD image passes, or an ID image raises an alarm, at the threshold with 5 % false alarms.
    """

    picture: int
    sample: str
    score: float
    taken_for: str
    own: str
    share: float
    fooled: int
    passes: bool


@dataclass(frozen=True)
class Wall:
    """The hardest images of one set, detector by detector."""

    name: str
    role: str
    is_ood: bool
    rows: list[tuple[str, list[Thumbnail]]]


def picture_rules(gallery: Gallery | None) -> str:
    """Style rules that hold the pixels, for the page's style sheet: ``.seen0`` to the last picture."""
    if gallery is None:
        return ""
    rules = [f".seen{number}{{background-image:url({data_uri(each)})}}" for number, each in enumerate(gallery.pictures)]
    small = [f".seen{n}" for n, each in enumerate(gallery.pictures) if max(each.shape) <= SMALL]
    return "\n".join([*rules, *([f"{','.join(small)}{{image-rendering:pixelated}}"] if small else [])])


def render_gallery(result: Result, detectors: Sequence[str] | None = None) -> Markup:
    """The walls of a result as HTML; empty where it has no pictures. The page needs ``picture_rules`` once.

    Parameters
    ----------
    detectors : in this order; all, in the order of the scores, by default.
    """
    walls = hardest_walls(result, detectors)
    return Markup(page_environment().get_template("gallery.html").render(walls=walls)) if walls else Markup()


def hardest_walls(result: Result, detectors: Sequence[str] | None = None) -> list[Wall]:
    """What a gallery shows, set by set: the images that each detector gets most wrong, as far as there are pictures."""
    if result.gallery is None:
        return []
    scores, walls = result.scores, []
    lookouts = [_Lookout(result.gallery, scores, name) for name in detectors or scores.detectors]
    for role, name in shown_sets(scores):
        worst = [hardest(scores, each.detector, role, name).tolist() for each in lookouts]
        fooled = Counter(row for rows in worst for row in rows)
        rows = [(each.detector, each.thumbnails(rows, role, fooled)) for each, rows in zip(lookouts, worst)]
        walls.append(
            Wall(name, role, role in OOD_ROLES, [(detector, thumbnails) for detector, thumbnails in rows if thumbnails])
        )
    return [wall for wall in walls if wall.rows]


def failures(result: Result, detector: str, count: int) -> list[tuple[str, Thumbnail]]:
    """The OOD images that one detector takes for ID most confidently, with their sets; of one class at most one."""
    walls = [wall for wall in hardest_walls(result, [detector]) if wall.is_ood]
    worst = [(wall.name, thumbnail) for wall in walls for _, thumbnails in wall.rows for thumbnail in thumbnails]
    worst.sort(key=lambda each: -each[1].share)
    first: dict[tuple[str, str], tuple[str, Thumbnail]] = {}
    for name, thumbnail in worst:
        first.setdefault((name, thumbnail.own or thumbnail.sample), (name, thumbnail))
    return list(first.values())[:count]


class _Lookout:
    """One detector, with what does not change from image to image at hand."""

    def __init__(self, gallery: Gallery, scores: ScoreTable, detector: str) -> None:
        self.detector = detector
        self._gallery = gallery
        self._classes = scores.context.classes
        self._known = np.sort(scores.scores(detector, role="id_test"))
        self._threshold = np.quantile(self._known, 0.95) if self._known.size else np.inf
        columns = ("set", "sample_id", "prediction", "own_class", detector)
        self._columns = [scores.frame[name].to_numpy() for name in columns]

    def thumbnails(self, rows: Sequence[int], role: str, fooled: Mapping[int, int]) -> list[Thumbnail]:
        """Those of the rows of which there is a picture."""
        return [thumbnail for row in rows for thumbnail in self._thumbnail(row, role, fooled[row])]

    def _thumbnail(self, row: int, role: str, fooled: int) -> Iterator[Thumbnail]:
        name, sample, prediction, own, score = (column[row] for column in self._columns)
        place = self._gallery.places.get((str(name), str(sample)))
        if place is None:
            return
        below = int(np.searchsorted(self._known, score, side="left"))
        above = self._known.size - int(np.searchsorted(self._known, score, side="right"))
        taken_for = _named(self._gallery.class_names, int(prediction))
        own_class = _named(self._classes.get(str(name), ()), int(own))
        is_ood = role in OOD_ROLES
        share = (above if is_ood else below) / max(1, self._known.size)
        wrong = score <= self._threshold if is_ood else score > self._threshold
        yield Thumbnail(place, str(sample), float(score), taken_for, own_class, share, fooled, bool(wrong))


def _named(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else ""
