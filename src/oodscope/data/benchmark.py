"""Benchmark: named roles filled with image sets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, did_you_mean
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.metrics.metric import MEAN, Population

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Validation(Generic[T]):
    """The only thing a hyper-parameter search accepts: ``id_val`` and ``ood_val``."""

    id: T
    ood: T

    def map(self, function: Callable[[T], U]) -> "Validation[U]":
        return Validation(function(self.id), function(self.ood))


@dataclass(frozen=True)
class Test(Generic[T]):
    """The only thing a measurement accepts: ``id_test`` and the test sets by group and name."""

    __test__ = False  # not a test case, whatever pytest makes of the name

    id: T
    near: Mapping[str, T] = field(default_factory=dict)
    far: Mapping[str, T] = field(default_factory=dict)
    csid: Mapping[str, T] = field(default_factory=dict)

    def map(self, function: Callable[[T], U]) -> "Test[U]":
        groups = ({name: function(item) for name, item in group.items()} for group in (self.near, self.far, self.csid))
        return Test(function(self.id), *groups)


Role = Literal["id_train", "id_val", "id_test", "near", "far", "csid", "ood_val", "ood_train"]
ID_ROLES = ("id_train", "id_val", "id_test", "csid")


@dataclass(frozen=True)
class Benchmark:
    """What a detector is judged on.

    Parameters
    ----------
    name, version : together the identity of every number measured on it.
    id_test : in-distribution test images with labels; the only role that must be filled.
    id_train, id_val : for fitting detectors, and for thresholds and hyper-parameters.
    near, far : out-of-distribution test sets; near ones share the style of ID, far ones do not.
    csid : covariate-shifted ID: the same classes under another style; negatives of the full spectrum.
    ood_val : outliers that hyper-parameters may be searched on; never a test set.
    ood_train : outliers that training methods may learn from.
    scored_train : training images whose scores set thresholds, where a protocol divides ``id_train``.
    transform : preprocessing for classifiers that bring none.
    notes : what a reader of its results should know, such as a role that was left out.
    populations : what the classes of each OOD set are, by the name of the set: ``sampled`` from many more,
        ``exhaustive`` or ``none``; classes of a set that is not named count as sampled.

    Examples
    --------
    >>> small = oods.Benchmark(name="mine", version="1", id_test=bench.id_test, near=bench.near)
    >>> [(role, images.name) for role, images in small.members()]
    [('id_test', 'id_test'), ('near', 'static'), ('near', 'snow')]
    """

    name: str
    version: str
    id_test: ImageSet
    id_train: ImageSet | None = None
    id_val: ImageSet | None = None
    near: tuple[ImageSet, ...] = ()
    far: tuple[ImageSet, ...] = ()
    csid: tuple[ImageSet, ...] = ()
    ood_val: ImageSet | None = None
    ood_train: ImageSet | None = None
    scored_train: ImageSet | None = None
    transform: Preprocess | None = None
    description: str = ""
    notes: tuple[str, ...] = ()
    populations: Mapping[str, Population] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [images.name for _, images in self.members()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(f"benchmark {self.name!r}: two sets are called {twice[0]!r}; give each its own name")
        if MEAN in names:
            raise DataError(f"benchmark {self.name!r}: {MEAN!r} is the mean over sets in every table; rename that set")
        for role, images in self.members():
            if role in ID_ROLES:
                self._check_id_labels(role, images)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The in-distribution classes."""
        return (self.id_train or self.id_test).class_names

    @property
    def validation(self) -> Validation[ImageSet] | None:
        """What a search may see, if both of its sets are there."""
        if self.id_val is None or self.ood_val is None:
            return None
        return Validation(self.id_val, self.ood_val)

    @property
    def test(self) -> Test[ImageSet]:
        """What a measurement may see."""
        near, far, csid = ({images.name: images for images in group} for group in (self.near, self.far, self.csid))
        return Test(self.id_test, near, far, csid)

    def members(self) -> Iterator[tuple[Role, ImageSet]]:
        """Every filled role with its set; ``near``, ``far`` and ``csid`` may come several times."""
        single: tuple[tuple[Role, ImageSet | None], ...] = (
            ("id_train", self.id_train),
            ("id_val", self.id_val),
            ("id_test", self.id_test),
        )
        yield from ((role, images) for role, images in single if images is not None)
        yield from (("near", images) for images in self.near)
        yield from (("far", images) for images in self.far)
        yield from (("csid", images) for images in self.csid)
        if self.ood_val is not None:
            yield "ood_val", self.ood_val
        if self.ood_train is not None:
            yield "ood_train", self.ood_train

    def id_labels(self, role: Role, images: ImageSet) -> NDArray[np.int64]:
        """The labels of a set in the in-distribution classes; -1 throughout for outliers.

        A covariate-shifted set may hold some of the classes only (ImageNet-R has 200 of 1,000): its
        labels are mapped by class name.
        """
        if role not in ID_ROLES:
            return np.full(len(images), UNLABELLED, dtype=np.int64)
        return images.in_classes(self.class_names).labels

    def in_classes(self, class_names: Sequence[str]) -> "Benchmark":
        """This benchmark for a classifier that knows ``class_names``, in the order of its logits.

        The in-distribution sets may hold some of the classes only; their labels are matched by name.
        """
        if self.class_names == tuple(class_names):
            return self
        moved = {
            role: images.in_classes(class_names)
            for role, images in self.members()
            if role in ("id_train", "id_val", "id_test")
        }
        return replace(self, **moved)  # type: ignore[arg-type]  # roles are field names

    def _check_id_labels(self, role: Role, images: ImageSet) -> None:
        where = f"benchmark {self.name!r}: {role} set {images.name!r}"
        missing = int((images.labels == UNLABELLED).sum())
        if missing:
            raise DataError(f"{where} has {missing} images without a label; in-distribution sets need labels")
        unknown = sorted(set(images.class_names) - set(self.class_names))
        if unknown:
            raise DataError(
                f"{where} has the class {unknown[0]!r}, which is not among the in-distribution "
                f"classes.{did_you_mean(unknown[0], self.class_names)}"
            )
        if len(self.class_names) < 2 or (role != "csid" and len(np.unique(images.labels)) < 2):
            raise DataError(f"{where} holds one class only; a classifier to judge needs at least two")
