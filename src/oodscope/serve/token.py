"""Token: the secret of the board's keeper; see ``submitters`` for those of others."""

import hmac
import os
from pathlib import Path

from oodscope.base.errors import OodscopeError

VARIABLE = "OODSCOPE_TOKEN"
_SHORTEST = 16


class Token:
    """Compared in constant time, and never shown."""

    def __init__(self, secret: str) -> None:
        if len(secret) < _SHORTEST or not secret.isascii() or not secret.isprintable() or " " in secret:
            raise OodscopeError(f"the token must be {_SHORTEST} or more visible ASCII characters, without spaces")
        self._secret = secret.encode()

    def __repr__(self) -> str:
        return "Token(...)"

    def allows(self, authorization: str) -> bool:
        """Whether a request's ``Authorization`` header is ``Bearer`` and this token."""
        scheme, _, given = authorization.partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._secret)
        return same and scheme.lower() == "bearer"


def read_token(file: Path | None) -> Token | None:
    """From the file or, without one, from the environment, which then forgets it: no process started later has it.

    Nothing where there is neither: submitters may have tokens of their own.
    """
    from_environment = os.environ.pop(VARIABLE, "")
    if file is not None:
        try:
            return Token(file.read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise OodscopeError(f"{file}: no token can be read from it ({type(error).__name__})") from error
    return Token(from_environment) if from_environment else None
