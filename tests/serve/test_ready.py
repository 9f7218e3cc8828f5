"""The address is announced when connections are taken, not before."""

import socket
from urllib.parse import urlsplit

import pytest

from oodscope.serve import server


class EmptyBoard:
    """A board without its pages, which take a process to build."""

    trouble = ""

    def __init__(self, entries):
        self.entries = entries

    async def refresh(self):
        pass


class AnnouncedError(Exception):
    """Ends the server before it answers."""


def test_who_reads_the_address_can_connect(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "LiveBoard", EmptyBoard)

    def connect(address: str) -> None:
        socket.create_connection(("127.0.0.1", urlsplit(address).port), timeout=10).close()
        raise AnnouncedError

    settings = server.Settings(store=str(tmp_path / "results.sqlite"), entries=tmp_path / "board", port=0)
    with pytest.raises(AnnouncedError):
        server.serve(settings, connect)
