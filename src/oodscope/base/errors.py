"""Errors for users: what is wrong, where, and what to do, on one line."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

from oodscope.base.catalog import catalog
from oodscope.base.other_names import other_names

LONGEST = 2000
"""Characters of a message; the middle of a longer one is left out."""


class OodscopeError(Exception):
    """Anything a user can cause and mend. The command line prints it as one line and exits with status 1, or 2.

    Examples
    --------
    >>> try:
    ...     oods.create_detector("knnn")
    ... except oods.OodscopeError as error:
    ...     print(error)
    unknown detector 'knnn'. Did you mean 'knn'?  See: oodscope list detectors
    """

    def __str__(self) -> str:
        # a message may quote a file of others: what it says must not move the cursor, span lines or fill the screen
        text = printable(super().__str__())
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


class UsageError(OodscopeError):
    """What was asked for cannot be meant, such as options that exclude each other: exit status 2."""


class UnknownNameError(UsageError):
    """A name that nobody registered; the message suggests what was probably meant."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        message = f"unknown {kind} {name!r}.{did_you_mean(name, known, kind)}"
        super().__init__(f"{message}  {hint}" if hint else message)


class DataError(OodscopeError):
    """Images, labels or a benchmark that cannot be used as they are."""


class ModelError(OodscopeError):
    """A classifier that cannot be loaded, traced or run."""


class ActivationError(OodscopeError):
    """Activations that are missing, malformed or not finite."""


class DetectorError(OodscopeError):
    """A detector that cannot be fitted to, or applied to, what it was given."""


class StorageError(OodscopeError):
    """A file that could not be written or read: disk full, no permission, broken checksum."""


def did_you_mean(name: str, known: Iterable[str], kind: str = "") -> str:
    """The sentence `` Did you mean 'a' or 'b'?``, other names of the same thing first, then the nearest spellings.

    Parameters
    ----------
    kind : of thing, such as ``detector``; the names that papers use for a kind are in ``other_names``.
    """
    lower = {each.lower(): each for each in known}
    meant = [each for each in other_names(kind, name) if each in lower.values()]
    spelt = [lower[each] for each in get_close_matches(name.lower(), lower, n=2, cutoff=0.5)]
    # where a name is known elsewhere, only spellings that contain it are worth a second suggestion
    near = [*meant, *(each for each in spelt if not meant or name.lower() in each)]
    shown = [repr(each) + _source(kind, each) * bool(meant) for each in dict.fromkeys(near)][:2]
    return f" Did you mean {' or '.join(shown)}?" if shown else ""


def _source(kind: str, name: str) -> str:
    paper = catalog(f"{kind}s").get(name, {}).get("paper") if kind == "detector" else None
    return f" ({paper})" if paper else ""


def printable(text: str) -> str:
    """The text on one line, without control characters and without those that change the direction of text."""
    if text.isprintable():
        return text
    spaced = text.replace("\r\n", " ").replace("\n", " ").replace("\t", " ")
    return "".join(char for char in spaced if not _moves(char))


def _moves(char: str) -> bool:
    """Control, surrogate and bidirectional format characters; others that do not print, such as odd spaces, stay."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
