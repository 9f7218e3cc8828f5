"""Chapter: what a run says of itself on a page, as data; whoever renders it decides how it looks."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from oodscope.document.claim import Claim
from oodscope.document.figure import Figure
from oodscope.document.table import Table


@dataclass(frozen=True)
class Prose:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Card:
    """One number or name worth a box of its own, with the words above and below it."""

    title: str
    value: str
    text: str = ""


@dataclass(frozen=True)
class Cards:
    """Boxes side by side."""

    cards: tuple[Card, ...]


@dataclass(frozen=True, eq=False)
class Picture:
    """A small image with a caption.

    Parameters
    ----------
    pixels : uint8 ``[H, W]``, ``[H, W, 1]`` or ``[H, W, 3]``.
    """

    pixels: NDArray[np.uint8]
    caption: str = ""


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side under one heading."""

    title: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Claims:
    """Statements with the numbers that they rest on."""

    claims: tuple[Claim, ...]


Block = Prose | Cards | Table | Figure | Gallery | Claims


@dataclass(frozen=True)
class Chapter:
    """The part of a page about one run.

    Parameters
    ----------
    anchor : its id among the chapters of one page; a page adds the number of the run.
    verdict : its result in one sentence; empty where there is none.
    """

    title: str
    anchor: str
    verdict: str = ""
    blocks: tuple[Block, ...] = field(default_factory=tuple)


def anchor_of(words: str) -> str:
    """Words as the id of a section: letters and digits, everything else a hyphen."""
    return "".join(each if each.isalnum() and each.isascii() else "-" for each in words)
