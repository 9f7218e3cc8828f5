"""Dataset cards: what a public dataset is, under which terms, how to get it and how it lies under the root."""

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from oodscope.base.config import StrictModel, parse, read_yaml
from oodscope.base.errors import DataError, did_you_mean
from oodscope.data.imageset import ImageSet
from oodscope.data.packaged import find
from oodscope.data.public.layouts import AnyLayout
from oodscope.metrics.metric import Population


class Fetch(StrictModel):
    """One file to get, and where its content goes.

    Parameters
    ----------
    url : where it can be downloaded without asking anybody; without it, ``ask`` says what the user must do.
    ask : who publishes it and how to get it by hand; beside a ``url``, said where the download failed.
    file : its name under ``downloads/DATASET/`` of the root; from the URL unless given. An archive got by hand is put
        there, and ``oodscope data prepare`` unpacks it.
    md5 : only where the publisher, or torchvision's own source, states it. A file without it is called unverified:
        that it came whole is known from counts and from decoding every image, not that it is the publisher's.
    into : folder under the root that its content goes to.
    strip : leading folder inside the archive that is dropped.
    splits : which splits it serves; all of them unless given.
    """

    url: str | None = None
    ask: str | None = None
    file: str = ""
    md5: str | None = Field(default=None, pattern="^[0-9a-f]{32}$")
    into: str = "."
    strip: str = ""
    splits: list[str] = []

    @model_validator(mode="after")
    def _is_reachable(self) -> "Fetch":
        if self.url is None and not self.ask:
            raise ValueError("a file to fetch needs a url, or says under ask how to get it by hand")
        if (self.url or "").startswith("http:") and self.md5 is None:
            raise ValueError("an address without encryption needs an md5: anybody on the way could change the file")
        return self

    @property
    def name(self) -> str:
        """The name under ``downloads/DATASET/``; empty if the user must lay out the content alone."""
        return self.file or (self.url or "").rpartition("/")[2]

    @property
    def trust(self) -> str:
        """How far its content is known to be the publisher's."""
        return f"MD5 {self.md5}" if self.md5 else "unverified: no checksum is published"


class Card(StrictModel):
    """One public dataset.

    Parameters
    ----------
    licence : the terms, as the publisher states them.
    home : the publisher's page.
    fetch : what to get.
    requires : other cards whose files the splits that are lists need, such as OpenOOD's lists.
    classes : what its classes are: ``sampled`` from many more (the default), ``exhaustive``, or ``none``.
    hierarchy : per level, which classes each group holds, such as CIFAR-100's superclasses.
    """

    name: str
    title: str
    summary: str
    licence: str
    home: str
    fetch: list[Fetch]
    requires: list[str] = []
    classes: Population = "sampled"
    hierarchy: dict[str, dict[str, list[str]]] = {}
    splits: dict[str, AnyLayout] = {}

    def split(self, name: str) -> AnyLayout:
        """One split; an unknown name suggests the nearest."""
        if name not in self.splits:
            raise DataError(f"dataset {self.name!r} has no split {name!r}.{did_you_mean(name, self.splits)}")
        return self.splits[name]

    def files_for(self, split: str) -> "list[tuple[Card, Fetch]]":
        """What serves a split, of this card and of those that it requires."""
        others = self.requires if self.split(split).layout == "list" else []
        return [
            (card, fetch)
            for card in (self, *map(load_card, others))
            for fetch in card.fetch
            if not fetch.splits or split in fetch.splits
        ]

    def has_checksums(self, split: str) -> bool:
        """Whether a published checksum stands for every file of a split, or for every archive that it came in."""
        named = self.split(split).named
        return (bool(named) and all(named.values())) or all(fetch.md5 for _, fetch in self.files_for(split))

    def levels(self, images: ImageSet) -> dict[str, NDArray[np.str_]]:
        """The group of each image at every level of the hierarchy, by the name of its class."""
        columns = {}
        for level, groups in self.hierarchy.items():
            group_of = {member: group for group, members in groups.items() for member in members}
            unknown = next((name for name in images.class_names if name not in group_of), None)
            if unknown is not None:
                raise DataError(
                    f"set {images.name!r}: {unknown!r} is not a class of {self.title}.{did_you_mean(unknown, group_of)}"
                )
            columns[level] = np.array([group_of[name] for name in images.class_names])[images.labels]
        return columns


def load_card(name: str) -> Card:
    """A packaged card by name."""
    return _parsed(find("dataset", name))


@cache
def _parsed(path: Path) -> Card:
    return parse(Card, read_yaml(path), str(path))
