"""Names with settings, as job files and command lines write them."""

from collections.abc import Sequence
from typing import Any

from oodscope.base.config import yaml_text
from oodscope.base.errors import UsageError

GAN = "gan="

Entry = str | dict[str, dict[str, Any]]
"""A name, perhaps with settings: ``"linf,epsilon=0.03"`` or ``{linf: {epsilon: 0.03}}``."""


def named_settings(entries: Sequence[Entry]) -> list[tuple[str, dict[str, Any]]]:
    """Names with their settings, in order: in a text, settings follow their name, separated by commas.

    ``mh,temperature=0.1,random`` are two samplers, the first with a setting. ``gan=FILE`` is a name.
    """
    named: list[tuple[str, dict[str, Any]]] = []
    for entry in entries:
        if isinstance(entry, dict):
            named += [(name, dict(settings or {})) for name, settings in entry.items()]
            continue
        for text in filter(None, (part.strip() for part in entry.split(","))):
            key, sign, value = text.partition("=")
            if not sign or text.startswith(GAN):
                named.append((text, {}))
            elif not named:
                raise UsageError(f"setting {text!r} stands before any name; settings follow their name")
            elif not value:
                raise UsageError(f"setting {key!r} of {named[-1][0]} has no value; write {key}=VALUE")
            else:
                named[-1][1][key.strip()] = yaml_text(value, f"{named[-1][0]}, {key}")
    return named
