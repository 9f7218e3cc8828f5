"""What comes with the package: manifests, dataset cards, split lists and class lists."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import UnknownNameError
from oodscope.base.registry import Collection

HOME = Path(__file__).parent
"""Folder of ``benchmarks/``, ``datasets/`` and ``lists/``."""


def _packaged(kind: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted((HOME / kind).glob("*.yaml"))}


BENCHMARKS: Collection[Path] = Collection(
    "benchmark",
    "benchmarks",
    lambda: _packaged("benchmarks"),
    check=lambda each: isinstance(each, Path),
    expected="the pathlib.Path of a YAML file",
)
"""The YAML file of every benchmark. An installed package provides a ``Path`` through ``oodscope.benchmarks``."""


def names_in(kind: str) -> list[str]:
    """The ``benchmarks`` or ``datasets`` that have a name."""
    return sorted(BENCHMARKS if kind == "benchmarks" else _packaged(kind))


def find(kind: str, name: str) -> Path:
    """The YAML file of a benchmark or dataset by name; an unknown name suggests the nearest."""
    if name not in names_in(f"{kind}s"):
        raise UnknownNameError(kind, name, names_in(f"{kind}s"), "See: oodscope data list")
    return BENCHMARKS[name] if kind == "benchmark" else _packaged("datasets")[name]


def class_list(name: str) -> list[str]:
    """A packaged list of class names, in label order: ``imagenet_1k`` (1,000 WordNet ids), ``imagenet_200``."""
    return (HOME / "lists" / f"{name}.txt").read_text(encoding="utf-8").split()


@cache
def class_words(name: str) -> tuple[str, ...]:
    """The same classes in words, in the same order: the first name that WordNet gives each, or, where two classes of
    ImageNet share it, one that distinguishes them (``crane bird`` and ``construction crane``)."""
    words = (HOME / "lists" / "imagenet_1k_names.txt").read_text(encoding="utf-8").splitlines()
    by_id = dict(zip(class_list("imagenet_1k"), words, strict=True))
    return tuple(by_id[each] for each in class_list(name))


@dataclass(frozen=True)
class RowList:
    """Which images of an official split belong to a part of it.

    Parameters
    ----------
    member : one flag per image.
    by_class : how the flags are ordered. ``True``: class after class, and within a class in official order,
        because the published lists name images by class and running number (``cat/0007.png`` is the seventh cat);
        ``False``: in official order.
    """

    member: NDArray[np.bool_]
    by_class: bool

    def positions(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions in official order of the member images, for a split with these labels."""
        order = np.argsort(labels, kind="stable") if self.by_class else np.arange(len(labels))
        return np.sort(order[self.member])


def row_list(name: str) -> RowList:
    """A packaged part of a split, by name.

    ``lists/openood15.npz`` holds OpenOOD v1.5's parts as packed bits over 10,000 images each: ``cifar10_val``
    and ``cifar100_val`` (class after class; the other 9,000 images are the test part, ``..._test``), and
    ``cifar10_tin_val``, ``cifar10_tin_test``, ``cifar100_tin_val``, ``cifar100_tin_test`` (flag N is the image
    ``val_N.JPEG`` of Tiny ImageNet).
    """
    with np.load(HOME / "lists" / "openood15.npz", allow_pickle=False) as kept:
        known = {*kept.files, "cifar10_test", "cifar100_test"}
        if name not in known:
            raise UnknownNameError("row list", name, known)
        stored = name if name in kept.files else name.replace("_test", "_val")
        member = np.unpackbits(kept[stored]).astype(bool)
    return RowList(member if stored == name else ~member, by_class="_tin_" not in name)
