"""Errors for users: what is wrong, where, and what to do, on one line."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches


class OodscopeError(Exception):
    """Anything a user can cause and mend. The command line prints it as one line and exits with status 1.

    Examples
    --------
    >>> try:
    ...     oods.create_detector("knnn")
    ... except oods.OodscopeError as error:
    ...     print(error)
    unknown detector 'knnn'. Did you mean 'knn'?  See: oodscope list detectors
    """

    def __str__(self) -> str:
        # a message may quote a file of others: what it says must not move the cursor or span lines
        return printable(super().__str__())


class UnknownNameError(OodscopeError):
    """A name that nobody registered; the message offers the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        message = f"unknown {kind} {name!r}.{did_you_mean(name, known)}"
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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The sentence `` Did you mean 'a' or 'b'?`` for the names nearest to ``name``; empty if none is near."""
    lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lower, n=2, cutoff=0.5)
    return f" Did you mean {' or '.join(repr(lower[n]) for n in near)}?" if near else ""


def printable(text: str) -> str:
    """The text on one line, without control characters and without those that change the direction of text."""
    if text.isprintable():
        return text
    spaced = text.replace("\r\n", " ").replace("\n", " ").replace("\t", " ")
    return "".join(char for char in spaced if not _moves(char))


def _moves(char: str) -> bool:
    """Control, surrogate and bidirectional format characters; others that do not print, such as odd spaces, stay."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
