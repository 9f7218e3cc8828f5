"""Offer: what a classifier and a benchmark have for a detector."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Offer:
    """Known before anything is extracted, so that a detector that cannot run is named at once.

    Parameters
    ----------
    head : whether features and a linear head were found.
    train : whether there are in-distribution training images.
    held_out : whether there are in-distribution validation images.
    signed : whether features may be negative.
    stages : how many resolutions of feature maps the network has.
    members : how many networks vote; 0 for a single network.
    negatives : how many negative labels a vision-language network compares with.
    """

    head: bool
    train: bool
    held_out: bool
    signed: bool = False
    stages: int = 0
    members: int = 0
    negatives: int = 0
