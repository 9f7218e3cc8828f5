"""About: what a run cannot know of the method it ran; a short YAML file that a person writes."""

from oodscope.leaderboard.records.records import Part, Publication, Reported
from oodscope.leaderboard.records.text import Line, Link, Name, Text


class About(Part):
    """The part of an entry that only its authors can fill in. Everything is optional.

    Parameters
    ----------
    reported : numbers as printed, each with its source.
    trained_on, pretrained_on : data that the weights have seen, if the run does not record it.
    training_seed : of the network, for entries that are seeds of one method.
    score_form : the score in words or as a formula, for a detector that is not of this package.
    filters : by set, which images of the published set were left out.
    """

    authors: tuple[Name, ...] = ()
    paper: Publication | None = None
    code: Link = ""
    weights: Link = ""
    reported: tuple[Reported, ...] = ()
    trained_on: tuple[Line, ...] | None = None
    pretrained_on: tuple[Line, ...] | None = None
    training_seed: int | None = None
    score_form: Line = ""
    filters: dict[Name, Line] = {}
    notes: tuple[Text, ...] = ()
