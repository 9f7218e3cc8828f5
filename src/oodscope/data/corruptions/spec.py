"""A corrupted set in a benchmark's declaration."""

from typing import Literal

from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.data.corruptions.sets import corrupt
from oodscope.data.imageset import ImageSet


class CorruptedSpec(StrictModel):
    """The ``id_test`` of the same benchmark under corruptions; see ``oodscope.corrupt`` for the parameters.

    ::

        csid:
          cifar10c: {source: corrupted, of: id_test, kind: c, count: 10000, seed: 0}

    Only what is judged may be corrupted to be judged: a shifted copy of a validation image would be a leak that
    no comparison of contents finds.
    """

    source: Literal["corrupted"]
    of: Literal["id_test"] = "id_test"
    kind: str = "c"
    severity: float | None = Field(default=None, gt=0, le=5)
    count: int | None = Field(default=None, gt=0)
    seed: int = 0

    def derive(self, name: str, images: ImageSet) -> ImageSet:
        """The set called ``name``, from the opened ``id_test``."""
        return corrupt(images, self.kind, severity=self.severity, count=self.count, seed=self.seed, name=name)
