"""A real PostgreSQL of the tests' own: in a temporary folder, behind a Unix socket, gone afterwards.

Every wait is bounded, and where there is no PostgreSQL and none can be had, its tests are skipped with the reason.
"""

import os
import pwd
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_INSTALL_SECONDS = 240
_START_SECONDS = 60


class Postgres:
    """A running server."""

    def __init__(self, sockets: Path, port: int) -> None:
        self.sockets = sockets
        self.port = port

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://oodscope@/{database}?host={self.sockets}&port={self.port}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"d{random.getrandbits(48):x}"
        with self._connection() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def _connection(self):
        import psycopg

        return psycopg.connect(self.url(), autocommit=True, connect_timeout=5)

    def wait(self, process: subprocess.Popen) -> None:
        import psycopg

        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._connection().close()
                return
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > until:
                    pytest.skip(f"PostgreSQL did not start: {error}")
                time.sleep(0.05)


def binaries() -> Path | None:
    """The folder of ``initdb`` and ``postgres``."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


def install() -> None:
    """From Debian's package, where that is ours to do."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("no PostgreSQL here (initdb is not found), and it cannot be installed: neither root nor apt-get")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "postgresql"]
    try:
        done = subprocess.run(command, env=quiet, timeout=_INSTALL_SECONDS, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"no PostgreSQL here, and apt-get did not bring it in {_INSTALL_SECONDS} s")
    if done.returncode:
        pytest.skip(f"no PostgreSQL here, and apt-get failed: {done.stderr.decode(errors='replace')[-200:]}")


@contextmanager
def started() -> Iterator[Postgres]:
    pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")
    if binaries() is None:
        install()
    tools = binaries()
    if tools is None:
        pytest.skip("no PostgreSQL here: initdb is not found")
    # the server refuses to run as root, and its folder must be its own
    folder = Path(tempfile.mkdtemp(prefix="oodscope-pg-", dir="/tmp"))
    whose = {"user": "nobody"} if os.geteuid() == 0 else {}
    if whose:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    process = None
    try:
        data, port = folder / "data", random.randrange(20_000, 60_000)
        make = [tools / "initdb", "-D", data, "-U", "oodscope", "--auth=trust", "--no-sync", "--encoding=UTF8"]
        made = subprocess.run(make, timeout=_START_SECONDS, capture_output=True, check=False, cwd=folder, **whose)
        if made.returncode:
            pytest.skip(f"initdb failed: {made.stderr.decode(errors='replace')[-200:]}")
        settings = {"listen_addresses": "", "unix_socket_directories": folder, "port": port, "fsync": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [tools / "postgres", "-D", data, *options], stdout=log, stderr=log, cwd=folder, **whose
            )
        server = Postgres(folder, port)
        server.wait(process)
        yield server
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # at once: nothing here is kept
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, started once for all tests that want one."""
    with started() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_location(request, tmp_path) -> str:
    """Where a new result store may live: a test that takes this runs on both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "new folder" / "results.db")
    return request.getfixturevalue("postgres").new_database()
