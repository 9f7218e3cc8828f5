"""Damage at random, the same for the same seed: of bytes, and of the values in a declaration."""

import copy
import json
from random import Random
from typing import Any

import yaml

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**70, 1e308, float("nan"), float("inf"), "", "x" * 3000, "../../x", "/etc/passwd", "a\0b"),
    *("\x1b[2J", "\u202e", "\ud800", "python:os:system", "{0..99999999}", [], {}, [[]], [None], {"": None}, {"a": {}}),
    *([1, "a", None], {"source": "npz"}, "2026-13-40", "0" * 64, -0.0, "NaN"),
)
"""Values that stand where others are expected."""


def damaged(content: bytes, random: Random) -> bytes:
    """Some bytes changed, removed, repeated or put in."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 5, 20))):
        start = random.randrange(len(changed) + 1)
        length = random.choice((1, 1, 2, 8, 100))
        kind = random.randrange(6)
        if kind == 0 and start < len(changed):
            changed[start] ^= 1 << random.randrange(8)
        elif kind == 1:
            changed[start : start + length] = random.randbytes(length)
        elif kind == 2:
            del changed[start : start + length]
        elif kind == 3:
            changed[start:start] = changed[start : start + length] * random.choice((1, 2, 50))
        elif kind == 4:
            del changed[start:]
        else:
            changed[start:start] = random.choice(
                (b"\0", b"\xff" * 8, b'"', b"[" * 100, b"{", b"\r\n", b": ", b"- ", b"&a *a")
            )
    return bytes(changed)


def altered(declared: Any, random: Random) -> Any:
    """The same with some values replaced, removed, renamed or repeated."""
    declared = copy.deepcopy(declared)
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.choice(list(_containers(declared)) or [None])
        if place is None:
            return _odd(random)
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = random.choice(keys) if keys else None
        kind = random.randrange(4)
        if key is None or (kind == 0 and isinstance(place, dict)):
            _put(place, random.choice(("", "evil", "id", "__class__", 5, None)), _odd(random))
        elif kind == 1:
            del place[key]
        else:
            place[key] = _odd(random)
    return declared


def as_json(declared: Any, random: Random) -> bytes:
    """A declaration with odd values, or its text with odd bytes."""
    if random.random() < 0.5:
        return damaged(json.dumps(declared).encode(), random)
    return json.dumps(altered(declared, random), default=str).encode("utf-8", "surrogatepass")


def as_yaml(declared: Any, random: Random) -> bytes:
    """The same as YAML."""
    if random.random() < 0.5:
        return damaged(yaml.safe_dump(declared, sort_keys=False).encode(), random)
    return yaml.safe_dump(altered(declared, random), sort_keys=False).encode("utf-8", "surrogatepass")


def _odd(random: Random) -> Any:
    return copy.deepcopy(random.choice(ODD))


def _containers(value: Any) -> Any:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _containers(inner)


def _put(place: Any, key: Any, value: Any) -> None:
    if isinstance(place, dict):
        place[key] = value
    else:
        place.append(value)
