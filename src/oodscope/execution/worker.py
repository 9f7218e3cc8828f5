"""What a worker process runs: calls that arrive on a socket, answers that go back, arrays in shared memory.

The first process imports what all need and forks the others, so that imports are paid once. It holds nothing of the
caller: no threads, no CUDA, no ``__main__``. Every process ends when its socket closes, however the caller ended.
"""

import json
import mmap
import os
import pickle
import signal
import sys
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from PIL import Image

from oodscope.base.errors import OodscopeError


class UnknownHereError(OodscopeError):
    """A call that another process cannot make: its function or arguments belong to the caller's own program."""


def main(settings: str) -> None:
    """Fork one process per socket and wait for them; ``settings`` is what ``Workers`` wrote."""
    declared: dict[str, Any] = json.loads(settings)
    # Ctrl-C belongs to the caller, who closes the sockets
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in declared["preload"]:
        import_module(name)
    # Pillow loads its decoders with the first image: once here, not once in every process
    Image.preinit()
    memory = mmap.mmap(declared["memory"], declared["size"])
    sockets: list[int] = declared["sockets"]
    for place, own in enumerate(sockets):
        if os.fork() == 0:
            for other in sockets[place + 1 :]:
                os.close(other)
            try:
                serve(Connection(own), memory)
            finally:
                os._exit(0)
        os.close(own)
    for _ in sockets:
        os.wait()
    sys.exit(0)


def serve(connection: "Connection[Any, Any]", memory: mmap.mmap) -> None:
    """Answer calls until the other side closes; the first message says that this process is ready."""
    try:
        connection.send_bytes(b"ready")
        while True:
            connection.send_bytes(_answer(connection.recv_bytes(), memory))
    except (EOFError, OSError):
        return


def _answer(call: bytes, memory: mmap.mmap) -> bytes:
    try:
        function, arguments = pickle.loads(call)  # from the process that started this one, on its socket
    except Exception as error:
        return pickle.dumps((False, UnknownHereError(str(error))))
    try:
        return pickle.dumps((True, function(memory, *arguments)))
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:
            return pickle.dumps((False, OodscopeError(f"{type(error).__name__}: {error}")))
