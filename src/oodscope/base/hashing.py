"""One fingerprint for everything: the SHA-256 of a value's canonical form."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def fingerprint(*parts: Any) -> str:
    """A hexadecimal digest of the parts, equal iff the parts are equal in type, shape and content.

    Arrays count with dtype, shape and bytes; everything else must be JSON (mappings in any key order).
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            header, body = f"array:{part.dtype.str}:{part.shape}", memoryview(np.ascontiguousarray(part).tobytes())
        elif isinstance(part, (bytes, bytearray)):
            header, body = f"bytes:{len(part)}", memoryview(part)
        else:
            text = canonical_json(part).encode()
            header, body = f"json:{len(text)}", memoryview(text)
        digest.update(header.encode())
        digest.update(b"\0")
        digest.update(body)
    return digest.hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot fingerprint a {type(value).__name__}")
