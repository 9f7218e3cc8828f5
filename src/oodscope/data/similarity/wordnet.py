"""A small reader of WordNet's database files: what is a kind of what (Miller, CACM 1995).

``index.noun`` lists for each noun the byte offsets of its meanings in ``data.noun``, the commonest first;
``data.noun`` has one line per meaning: its words and pointers to other meanings, of which ``@`` leads to the broader
one (``@i`` from an instance, such as a city). ImageNet's class names are these offsets: ``n02123045`` is the line at
byte 2123045 of version 3.0.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from oodscope.base.errors import DataError

FOLDERS = ("/usr/share/wordnet", "/usr/local/share/wordnet", "/usr/share/nltk_data/corpora/wordnet")
_BROADER = ("@", "@i")
_WNID = re.compile(r"n(\d{8})")


def wordnet_folders() -> tuple[list[Path], bool]:
    """Where WordNet may lie, and whether the user says so.

    The environment variable ``OODSCOPE_WORDNET`` names it, or WordNet's own ``WNSEARCHDIR``; otherwise it is
    where NLTK or a system's packages put it.
    """
    named = os.environ.get("OODSCOPE_WORDNET") or os.environ.get("WNSEARCHDIR")
    if named:
        return [Path(named)], True
    return [Path.home() / "nltk_data/corpora/wordnet", *map(Path, FOLDERS)], False


class WordNet:
    """The nouns of a WordNet database.

    Parameters
    ----------
    folder : holds ``index.noun`` and ``data.noun``, as Debian's ``wordnet-base`` and NLTK's corpus do.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        try:
            self._data = (self.folder / "data.noun").read_bytes()
        except OSError as error:
            raise DataError(f"{self.folder}: no WordNet here: {error.strerror} (data.noun)") from error
        self._broader: dict[int, frozenset[int]] = {}

    @classmethod
    def find(cls) -> "WordNet | None":
        """The one that the user names, or one in a usual place (``wordnet_folders``); ``None`` if there is none."""
        homes, named = wordnet_folders()
        if named:
            return cls(homes[0])
        found = next((home for home in homes if (home / "data.noun").is_file()), None)
        return None if found is None else cls(found)

    def meanings(self, name: str) -> list[int]:
        """The offsets of what a name can mean, the commonest first; of a WordNet id, the one it is."""
        if match := _WNID.fullmatch(name.strip()):
            offset = int(match[1])
            return [offset] if self._line(offset) else []
        return next((self._index[form] for form in _forms(name) if form in self._index), [])

    def words(self, meaning: int) -> list[str]:
        """The synonyms of a meaning."""
        fields = self._fields(meaning)
        return [fields[4 + 2 * k].replace("_", " ") for k in range(int(fields[3], 16))]

    def broader(self, meaning: int) -> frozenset[int]:
        """Every meaning that this one is a kind of, up to the top."""
        if meaning not in self._broader:
            found: set[int] = set()
            pending = [meaning]
            while pending:
                new = set(self._parents(pending.pop())) - found
                found |= new
                pending.extend(new)
            self._broader[meaning] = frozenset(found)
        return self._broader[meaning]

    def is_proper(self, name: str) -> bool:
        """Whether all that a name can mean is one thing, such as a city or a person (instance hyponyms)."""
        meanings = self.meanings(name)
        return bool(meanings) and all("@i" in {symbol for symbol, _ in self._pointers(each)} for each in meanings)

    def is_kind_of(self, name: str, others: Iterable[int]) -> bool:
        """Whether anything that a name can mean is one of these meanings, or a kind of one."""
        wanted = set(others)
        return any(wanted & {meaning, *self.broader(meaning)} for meaning in self.meanings(name))

    def _parents(self, meaning: int) -> Iterator[int]:
        return (offset for symbol, offset in self._pointers(meaning) if symbol in _BROADER)

    def _pointers(self, meaning: int) -> Iterator[tuple[str, int]]:
        """Symbol and place of every pointer to a noun."""
        fields = self._fields(meaning)
        start = 4 + 2 * int(fields[3], 16)
        for k in range(int(fields[start])):
            symbol, offset, part = fields[start + 1 + 4 * k : start + 4 + 4 * k]
            if part == "n":
                yield symbol, int(offset)

    def _fields(self, meaning: int) -> list[str]:
        fields = self._line(meaning)
        if not fields:
            raise DataError(
                f"{self.folder / 'data.noun'}: no meaning at byte {meaning}; the file is of another version"
            )
        return fields

    def _line(self, offset: int) -> list[str]:
        """The fields of the line that begins at a byte, or nothing: a line begins with its own offset."""
        end = self._data.find(b"\n", offset)
        fields = self._data[offset : end if end >= 0 else None].decode("utf-8", "replace").partition(" | ")[0].split()
        return fields if fields and fields[0] == f"{offset:08d}" else []

    @cached_property
    def _index(self) -> dict[str, list[int]]:
        try:
            lines = (self.folder / "index.noun").read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise DataError(f"{self.folder}: no WordNet here: {error.strerror} (index.noun)") from error
        index = {}
        for line in lines:
            if line and not line.startswith(" "):
                fields = line.split()
                index[fields[0]] = [int(offset) for offset in fields[-int(fields[2]) :]]
        return index


def _forms(name: str) -> Iterable[str]:
    """How a name may be written in the index: as it is, and in the singular."""
    word = "_".join(re.split(r"[\s_]+", name.strip().lower()))
    return dict.fromkeys([word, *singulars(word)])


def singulars(word: str) -> Iterator[str]:
    """What an English plural may be the plural of."""
    for ending, single in (("ies", "y"), ("ves", "f"), ("men", "man"), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            yield word.removesuffix(ending) + single
