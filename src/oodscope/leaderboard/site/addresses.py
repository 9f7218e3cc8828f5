"""Addresses: where each page of the site lies, whatever the things on it are called."""

import re
from hashlib import sha256
from unicodedata import normalize

from oodscope.leaderboard.records.entry import Entry
from oodscope.leaderboard.records.folder import ENTRY, SCORES
from oodscope.leaderboard.records.standing import Standing

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_@+.-]{0,79}")
_TAKEN = {"index", "con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
"""Names that a folder of pages, or an operating system, keeps for itself."""


def safe_name(text: str) -> str:
    """A file name for any text, never the same for two texts, on any file system and in any address.

    A name of lower-case letters, digits and ``_@+.-`` stands for itself, so that addresses can be read and guessed;
    of any other the letters and digits are kept and a hash of the whole is added behind ``--``, which no plain
    name contains.
    """
    plain = _PLAIN.fullmatch(text) is not None and ".." not in text and "--" not in text and text[-1] != "."
    if plain and text.split(".")[0] not in _TAKEN:
        return text
    words = re.sub(r"[^a-z0-9]+", "-", text.lower())[:40].strip("-") or "name"
    return f"{words}--{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def method_key(name: str) -> str:
    """What two spellings of one method share: ``KNN`` and ``knn``, ``Temp Scaling`` and ``temp_scaling``."""
    return re.sub(r"[\s_-]+", "_", normalize("NFKC", name).casefold().strip())


def method_page(name: str) -> str:
    """The page of a method, the same for all its spellings."""
    return f"methods/{safe_name(method_key(name))}.html"


REPORTED_PAGE = "reported.html"
"""Where printed numbers stand that somebody submitted without scores."""


def standing_page(standing: Standing) -> str:
    """Where readers find an entry: its mark on the page of its method, or among those that stand apart."""
    page = REPORTED_PAGE if standing.apart else method_page(standing.entry.method)
    return f"{page}#{anchor(standing.entry.id)}"


def model_page(name: str) -> str:
    """The page of a network."""
    return f"models/{safe_name(name)}.html"


def table_page(benchmark: str, protocol: str, metric: str = "") -> str:
    """The page of one benchmark and protocol; other metrics than the leading one have pages beside it."""
    beside = f"~{safe_name(metric)}" if metric else ""  # no name contains a tilde
    return f"{table_folder(benchmark)}/{safe_name(protocol)}{beside}.html"


def table_folder(benchmark: str) -> str:
    """Where the pages of a benchmark lie."""
    return f"benchmarks/{safe_name(benchmark)}"


def table_data(benchmark: str, protocol: str, ending: str) -> str:
    """The download of one benchmark and protocol, all metrics."""
    return f"data/{safe_name(benchmark)}/{safe_name(protocol)}.{ending}"


def entry_file(entry: str) -> str:
    """The record of one entry."""
    return f"entries/{safe_name(entry)}/{ENTRY}"


def scores_file(entry: str) -> str:
    """The scores of one entry."""
    return f"entries/{safe_name(entry)}/{SCORES}"


def entry_files(entry: Entry, scores: bool) -> list[tuple[str, str]]:
    """The files of an entry by name; its scores only where they come with the site."""
    files = [(ENTRY, entry_file(entry.id))]
    return [*files, (SCORES, scores_file(entry.id))] if scores and entry.scores is not None else files


def anchor(entry: str) -> str:
    """The mark of an entry on every page that shows it."""
    return f"e-{entry}"


def root_of(page: str) -> str:
    """The way from a page to the root of the site, with its slash."""
    return "../" * page.count("/")
