"""Paper: where a method, a protocol or a benchmark comes from."""

import re
import unicodedata
from typing import NamedTuple, Self

_ARXIV = re.compile(r"arXiv (\d{4}\.\d{4,5})")
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)$")


class Paper(NamedTuple):
    """A publication.

    Parameters
    ----------
    authors : family names as a text cites them, such as ``Liang, Li & Srikant`` or ``Sun et al.``.
    venue : where and when it appeared, such as ``ICML 2022``, or its number at arXiv, such as ``arXiv 2306.09301``.
    """

    title: str
    authors: str
    venue: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """A paper from one line of a card, ``AUTHORS, TITLE, VENUE``; the authors hold no comma."""
        rest, _, venue = text.rpartition(", ")
        authors, _, title = rest.partition(", ")
        if not (authors and title):
            raise ValueError(f"{text!r} must read 'AUTHORS, TITLE, VENUE'")
        return cls(title, authors, venue)

    @property
    def year(self) -> str:
        """When it appeared; empty where the venue does not say."""
        if found := _ARXIV.search(self.venue):
            return f"20{found[1][:2]}"
        found = _YEAR.search(self.venue)
        return found[1] if found else ""

    @property
    def key(self) -> str:
        """What BibTeX cites it by: first author, year, and the first long word of the title, in plain letters."""
        words = [_plain(word) for word in re.split(r"[\s:/-]+", self.title)]
        long = next((word for word in words if len(word) > 3), "".join(words[:1]))
        return f"{_plain(re.split(r',| & | et al', self.authors)[0])}{self.year}{long}"

    def bibtex(self) -> str:
        """The entry for a bibliography: ``@misc`` with ``eprint`` for arXiv, ``@inproceedings`` for all else."""
        arxiv = _ARXIV.search(self.venue)
        fields = {"title": f"{{{_escaped(self.title)}}}", "author": _escaped(self._author_list())}
        if arxiv:
            fields |= {"eprint": arxiv[1], "archiveprefix": "arXiv"}
        else:
            fields["booktitle"] = _escaped(self.venue.removesuffix(self.year).strip() or self.venue)
        if self.year:
            fields["year"] = self.year
        body = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        return f"@{'misc' if arxiv else 'inproceedings'}{{{self.key},\n{body}\n}}"

    def __str__(self) -> str:
        return f"{self.authors}: {self.title}. {self.venue}"

    def _author_list(self) -> str:
        named, others, _ = self.authors.partition(" et al.")
        return " and ".join([*re.split(r", | & ", named), *(["others"] if others else [])])


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]", "", letters.lower())


def _escaped(text: str) -> str:
    """Text without a character that means something to TeX."""
    return re.sub(r"([&%$#_])", r"\\\1", text)
