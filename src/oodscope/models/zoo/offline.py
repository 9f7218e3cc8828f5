"""Offline: networks are built from what is here, because a file of others may name any place to fetch from."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class NoDownloadError(Exception):
    """What would have been fetched."""


FETCHING = (OSError, NoDownloadError)
"""What the zoo's libraries raise where something is neither here nor to be fetched."""


@contextmanager
def no_downloads() -> Iterator[None]:
    """Inside the block, hubs are read from their caches only, and torch downloads nothing.

    The libraries ask the environment when they are imported, and a constant later; so both are set, and both are as
    they were afterwards.
    """
    import torch.hub

    asked, download = os.environ.get("HF_HUB_OFFLINE"), torch.hub.download_url_to_file
    os.environ["HF_HUB_OFFLINE"] = "1"
    constants = sys.modules.get("huggingface_hub.constants")
    before = getattr(constants, "HF_HUB_OFFLINE", None)
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    torch.hub.download_url_to_file = _refuse
    try:
        yield
    except OSError as error:
        # how the hub's libraries report that something is not in their cache
        library = type(error).__module__.partition(".")[0]
        if library in ("huggingface_hub", "requests", "httpx") or "offline" in str(error):
            raise NoDownloadError("a network of a hub") from error
        raise
    finally:
        torch.hub.download_url_to_file = download
        loaded = sys.modules.get("huggingface_hub.constants")
        if loaded is not None:
            loaded.HF_HUB_OFFLINE = bool(before)  # type: ignore[attr-defined]
        if asked is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = asked


def _refuse(url: str, *_: Any, **__: Any) -> NoReturn:
    raise NoDownloadError(url)
