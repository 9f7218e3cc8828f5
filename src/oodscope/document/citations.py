"""Citations: the publications behind names of the catalogue."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from oodscope.base.catalog import catalog
from oodscope.base.errors import UnknownNameError
from oodscope.base.paper import Paper

SECTIONS = ("detectors", "stream_detectors", "recipes", "benchmarks", "protocols")
"""The sections of the catalogue whose entries have a publication."""

_UNPUBLISHED = "unpublished"


@dataclass(frozen=True)
class Citation:
    """A paper, and the names that ask for it; without a paper, names that nobody has published."""

    names: tuple[str, ...]
    paper: Paper | None

    def bibtex(self) -> str:
        """A comment with the names, and the entry."""
        named = f"% {', '.join(self.names)}"
        return f"{named}: not published" if self.paper is None else f"{named}\n{self.paper.bibtex()}"

    def __str__(self) -> str:
        return f"{', '.join(self.names)}: {self.paper or 'not published'}"


def cite(names: Iterable[str]) -> list[Citation]:
    """The papers of detectors, recipes, benchmarks and protocols, each once, in the order of the names.

    A rectifier with a logit score, such as ``react+msp``, asks for both papers.

    Examples
    --------
    >>> from oodscope.document.citations import cite
    >>> print(cite(["knn"])[0].paper.venue)
    ICML 2022
    """
    asked: dict[Paper | None, list[str]] = {}
    for whole in names:
        for name in whole.split("+"):
            for paper in _papers(name.strip()):
                listed = asked.setdefault(paper, [])
                listed.extend([name.strip()] if name.strip() not in listed else [])
    return [Citation(tuple(named), paper) for paper, named in asked.items()]


def own_bibtex(version: str) -> str:
    """The entry of this package, with the version that was used."""
    fields = f"  title = {{oodscope}},\n  author = {{{{The oodscope authors}}}},\n  version = {{{version}}}"
    return f"@software{{oodscope,\n{fields}\n}}"


def _papers(name: str) -> Iterator[Paper | None]:
    """A name may stand in several sections, such as a detector and the recipe that trains for it: all are meant."""
    entries = [catalog(section)[name] for section in SECTIONS if name in catalog(section)]
    if not entries:
        known = [each for section in SECTIONS for each in catalog(section)]
        raise UnknownNameError("detector, recipe, benchmark or protocol", name, known, "See: oodscope list detectors")
    for entry in entries:
        authors, _, venue = str(entry["paper"]).rpartition(", ")
        yield Paper(entry["paper_title"], authors, venue) if authors and venue != _UNPUBLISHED else None
