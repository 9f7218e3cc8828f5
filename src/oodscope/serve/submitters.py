"""Submitters: who may submit entries, each with a token of their own, of which only a hash is kept."""

import hmac
import secrets
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal

from oodscope.base.boundedjson import read_bounded_json
from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DataError, OodscopeError
from oodscope.base.files import plain_name, write_text
from oodscope.serve.token import Token

SERVER = ".server"
"""Below the folder of entries: what only the server reads and writes."""

KEEPER = "keeper"
"""Who submits with the token of the environment or of a file."""


class Submitter(StrictModel):
    """One submitter: the SHA-256 of the token, when it was made, and when it was revoked, if it was."""

    hash: str
    added: str
    revoked: str = ""


class _File(StrictModel):
    schema_version: Literal[1] = 1
    submitters: dict[str, Submitter] = {}


class Submitters:
    """The submitters of one board. The file is read for every submission, so that a revocation counts at once.

    A token is 32 random bytes, so a plain hash of it cannot be turned back; it is shown once, when it is made.

    Parameters
    ----------
    entries : folder of the board.
    shared : the keeper's own token, where there is one.
    """

    def __init__(self, entries: Path, shared: Token | None = None) -> None:
        self.path = entries / SERVER / "submitters.json"
        self.shared = shared

    def names(self) -> dict[str, Submitter]:
        """Every submitter there ever was, revoked ones too."""
        if not self.path.exists():
            return {}
        return parse(_File, read_bounded_json(self.path), str(self.path)).submitters

    def add(self, name: str) -> str:
        """Make a submitter; the token, which is kept nowhere."""
        known = self.names()
        plain_name(name, "the submitter's name")
        if name == KEEPER or (name in known and not known[name].revoked):
            raise DataError(f"there is a submitter {name!r}; revoke it first, or choose another name")
        token = secrets.token_urlsafe(32)
        self._write({**known, name: Submitter(hash=_hash(token), added=_now())})
        return token

    def revoke(self, name: str) -> None:
        """Let a token count no longer; entries that were accepted stay."""
        known = self.names()
        if name not in known or known[name].revoked:
            current = ", ".join(each for each in known if not known[each].revoked) or "none"
            raise DataError(f"no submitter {name!r} with a token. Submitters: {current}")
        self._write({**known, name: known[name].model_copy(update={"revoked": _now()})})

    def check(self) -> None:
        """Refuse a server that nobody could submit to."""
        if self.shared is None and not any(not each.revoked for each in self.names().values()):
            raise OodscopeError(
                "submissions need a token: add a submitter (oodscope serve token add NAME), set OODSCOPE_TOKEN, or "
                "give --token-file FILE"
            )

    def who(self, authorization: str) -> str | None:
        """Whose token a request's ``Authorization`` header brings; every hash is compared, in constant time each."""
        if self.shared is not None and self.shared.allows(authorization):
            return KEEPER
        scheme, _, given = authorization.partition(" ")
        hashed, found = _hash(given.strip()), None
        for name, each in self.names().items():
            if hmac.compare_digest(each.hash, hashed) and not each.revoked:
                found = name
        return found if scheme.lower() == "bearer" else None

    def _write(self, submitters: dict[str, Submitter]) -> None:
        write_text(self.path, _File(submitters=submitters).model_dump_json(indent=1) + "\n")
        self.path.chmod(0o600)


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
