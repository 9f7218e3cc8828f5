"""Sanity: whether generated images are what they are said to be, by networks that had no part in making them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from oodscope.base.config import StrictModel
from oodscope.base.errors import UnknownNameError
from oodscope.metrics.generated.information import most_information
from oodscope.metrics.interval import Interval, wilson_interval

BINS = 40
"""Of the histograms of mutual information."""

Counts = tuple[int, ...]


class SetCheck(StrictModel):
    """What was found out about one set of images.

    Parameters
    ----------
    role : as in the benchmark: ``id_val``, ``id_test``, ``near``, ``far`` or ``csid``.
    n : its images.
    confusion : ``confusion[i][j]`` images came from class i and were taken for class j by the judging ensemble; empty
        where images come from none of the classes.
    information : counts of the judging ensemble's mutual information, in ``BINS`` bins from 0 to the most that an
        ensemble of its size can have.
    made_information : the same of the ensemble that the images were made with; empty where it is not at hand.
    kept : images whose mutual information under the makers lies in the window; missing where either is not known.
    frechet : Fréchet distance to the training images, in the feature space that the record names; ``frechet_infinity``
        is extrapolated to infinitely many images.
    kernel : KID to the training images in the same features, and the ends of its interval.
    source, judged, p_source : of every image of a generated near set: the class that it was made from, the one that the
        judging ensemble sees, and the probability that it gives the former.
    taken_for : images of a real OOD set that the judging ensemble takes for each class.
    perceptual : mean perceptual distance to the image that each was made from, once all differences are scaled to one
        length; missing where there is no such image.
    """

    name: str
    role: str
    n: int
    confusion: tuple[Counts, ...] = ()
    information: Counts = ()
    made_information: Counts = ()
    kept: int | None = None
    frechet: float | None = None
    frechet_infinity: float | None = None
    kernel: tuple[float, float, float] | None = None
    source: Counts = ()
    judged: Counts = ()
    p_source: tuple[float, ...] = ()
    taken_for: Counts = ()
    perceptual: float | None = None

    @property
    def preserved(self) -> float | None:
        """The share of images that the judging ensemble gives the class that they came from."""
        return None if not self.confusion else self._agreeing / sum(map(sum, self.confusion))

    @property
    def preserved_interval(self) -> Interval | None:
        """Wilson's interval of that share."""
        return None if not self.confusion else wilson_interval(self._agreeing, sum(map(sum, self.confusion)))

    @property
    def _agreeing(self) -> int:
        return sum(row[number] for number, row in enumerate(self.confusion))


class Sanity(StrictModel):
    """The record of all checks of one benchmark.

    Parameters
    ----------
    generated : names of the sets that were generated.
    class_names : of the rows and columns of every confusion matrix.
    judges, makers : name and fingerprint of each network that judged the images, and of each whose mutual information
        shaped or filtered them. No network is in both.
    window : ends of the mutual information (of the makers, in nats) that near images were kept by.
    features : the network in whose features Fréchet distances were measured; how many ``frechet_images`` of each set.
    perceptual : name of the perceptual distance; empty where none was measured.
    """

    generated: tuple[str, ...]
    class_names: tuple[str, ...]
    judges: Mapping[str, str]
    makers: Mapping[str, str] = {}
    window: tuple[float, float] | None = None
    features: str = ""
    frechet_images: int = 0
    perceptual: str = ""
    sets: tuple[SetCheck, ...]

    def of(self, name: str) -> SetCheck:
        """What was found out about the set called ``name``."""
        for each in self.sets:
            if each.name == name:
                return each
        raise UnknownNameError("set", name, [each.name for each in self.sets])

    def near(self) -> list[str]:
        """Generated sets of OOD images."""
        return [each.name for each in self.sets if each.name in self.generated and each.role in ("near", "far")]

    def shifted(self) -> list[str]:
        """Generated sets of images that should keep their class."""
        return [each.name for each in self.sets if each.name in self.generated and each.role == "csid"]

    def edges(self, members: int) -> NDArray[np.float64]:
        """Ends of the bins of mutual information for an ensemble of so many networks, in nats."""
        return information_edges(members, len(self.class_names))


def information_edges(members: int, classes: int) -> NDArray[np.float64]:
    """``BINS`` bins from 0 to ln min(T, C), the most that T networks can disagree about C classes."""
    return np.linspace(0.0, most_information(members, classes), BINS + 1)
