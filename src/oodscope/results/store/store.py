"""ResultStore: many runs in one database. Runs are appended, never overwritten."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    NullPool,
    create_engine,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from oodscope.base.config import parse
from oodscope.base.errors import StorageError
from oodscope.base.files import network_file_system, storage_errors
from oodscope.base.hashing import canonical_json
from oodscope.results.measurement import COLUMNS, Measurement, Measurements, check_fields
from oodscope.results.record import Recorded, RunRecord
from oodscope.results.store import schema

STALE_SECONDS = 20.0
"""Nothing heard for so long: the process was killed, its machine is gone, or the store is out of its reach."""


@dataclass(frozen=True, kw_only=True)
class Running:
    """One evaluation that runs somewhere, as last reported to a ``ResultStore``.

    Parameters
    ----------
    id : unique among all that ever ran.
    what : in words, such as ``evaluate resnet18_32 on cifar10``.
    host, process : where, to find it again.
    started, updated : seconds since 1970, by the clock of its host.
    stage, done, total : what it is busy with now, and how many of how many items are finished.
    """

    id: str
    what: str
    host: str
    process: int
    started: float
    updated: float
    stage: str = ""
    done: int = 0
    total: int = 0

    def stale(self, now: float) -> bool:
        """Whether nothing was heard of it for so long that it has probably ended without a word."""
        return now - self.updated > STALE_SECONDS


_WAIT_SECONDS = 60
_FORGOTTEN_SECONDS = 24 * 3600.0


class ResultStore:
    """Records and measurements of many runs, in an SQLite file or in a PostgreSQL database.

    Several processes may add runs at the same time. Scores stay in each run's folder. What runs now can be
    reported here too (``oodscope.results.store.reporting``), line by line, for those who watch.

    Parameters
    ----------
    location : a path, created with the first run; or a URL, such as ``postgresql://user@host/name``.
    wait_seconds : how long to wait for another writer; a minute by default.

    Examples
    --------
    >>> from oodscope.results.store.store import ResultStore
    >>> store = ResultStore(folder / "results.sqlite")
    >>> store.add(result)
    >>> store.count(), store.measurements(metric="auroc", set="mean").distinct("detector")
    (1, ['msp', 'knn'])
    """

    def __init__(self, location: Path | str, *, wait_seconds: float | None = None) -> None:
        self.url = _as_url(location)
        in_file = self.url.get_backend_name() == "sqlite" and self.url.database
        self.path = Path(in_file) if in_file else None
        if self.path is not None and (kind := network_file_system(self.path)) is not None:
            raise StorageError(
                f"{self.path}: SQLite loses rows on a network file system ({kind}); name a PostgreSQL database with "
                "OODSCOPE_STORE=postgresql://..., or a file on a disk of this machine"
            )
        self.name = str(self.path or self.url.render_as_string(hide_password=True))
        self._engine = _engine(self.url, self.name, _WAIT_SECONDS if wait_seconds is None else wait_seconds)

    def __repr__(self) -> str:
        return f"ResultStore({self.name!r})"

    def made(self) -> bool:
        """Whether there is anything yet: the first who writes makes the store, all tables at once."""
        if self.path is not None and not self.path.exists():
            return False
        with self._one_line_errors(), self._engine.connect() as connection:
            return bool(inspect(connection).get_table_names())

    def add(self, result: Recorded, folder: Path | None = None) -> None:
        """Append one run: all of it or, if anything fails, nothing. A run id already there is an error.

        Parameters
        ----------
        folder : where the result was saved, if it was.
        """
        with self._one_line_errors():
            self._prepare()
            with self._engine.begin() as connection:
                record = result.record
                place = None if folder is None else self._place(folder)
                run = {"id": record.id, "created": record.created, "record": record.model_dump_json(), "folder": place}
                try:
                    connection.execute(insert(schema.RUNS), run)
                except IntegrityError as error:
                    raise StorageError(
                        f"{self.name}: run {record.id!r} is there; results are appended, never overwritten"
                    ) from error
                if rows := [_as_columns(row) for row in result.measurements]:
                    connection.execute(insert(schema.MEASUREMENTS), rows)

    def runs(self) -> list[RunRecord]:
        """The record of every run, oldest first."""
        with self._reading() as connection:
            rows = connection.execute(select(schema.RUNS.c.created, schema.RUNS.c.id, schema.RUNS.c.record)).all()
        # sorted here: databases differ in how they compare texts
        return [parse(RunRecord, json.loads(record), self.name) for _, _, record in sorted(map(tuple, rows))]

    def count(self) -> int:
        """How many runs there are. They are only ever appended, so an equal count means nothing new."""
        with self._reading() as connection:
            return connection.execute(select(func.count()).select_from(schema.RUNS)).scalar_one()

    def folder(self, run: str) -> Path | None:
        """Where the result of a run was saved; ``None`` if that is not known, or it is not there any more."""
        with self._reading() as connection:
            columns = schema.as_present(connection, schema.RUNS)
            place = connection.execute(select(columns["folder"]).where(schema.RUNS.c.id == run)).scalar()
        if self.path is not None:
            # runs of an older store lie beside it, each under its name
            place = self.path.parent / (place or run)
        return Path(place) if place is not None and (Path(place) / "run.json").is_file() else None

    def report_progress(self, running: Running) -> None:
        """Write, or write again, how far an evaluation is; what nobody renewed for a day goes."""
        line = asdict(running)
        with self._one_line_errors():
            self._prepare()
            with self._engine.begin() as connection:
                same = schema.RUNNING.c.id == running.id
                if not connection.execute(update(schema.RUNNING).where(same).values(line)).rowcount:
                    connection.execute(insert(schema.RUNNING), line)
                    old = schema.RUNNING.c.updated < running.updated - _FORGOTTEN_SECONDS
                    connection.execute(delete(schema.RUNNING).where(old))

    def forget(self, id: str) -> None:
        """The evaluation has ended."""
        with self._one_line_errors(), self._engine.begin() as connection:
            connection.execute(delete(schema.RUNNING).where(schema.RUNNING.c.id == id))

    def running(self) -> list[Running]:
        """What every evaluation last reported, oldest first; those that were killed are there too, for a day."""
        with self._reading() as connection:
            if not inspect(connection).has_table(schema.RUNNING.name):
                return []
            rows = connection.execute(select(schema.RUNNING)).mappings().all()
        return sorted((Running(**row) for row in rows), key=lambda each: (each.started, each.id))

    def measurements(self, **equals: Any) -> Measurements:
        """Those whose fields equal all the given values, in the order they were added; all by default."""
        check_fields(equals)
        if "params" in equals:
            equals["params"] = canonical_json(equals["params"])
        with self._reading() as connection:
            # a reader does not change the database: what an older one lacks reads as missing
            columns = _of_measurements(connection)
            query = select(*columns.values()).order_by(schema.MEASUREMENTS.c.row)
            for name, value in equals.items():
                query = query.where(columns[name] == value)
            rows = [dict(zip(columns, row)) for row in connection.execute(query).all()]
        return Measurements(Measurement(**row | {"params": json.loads(row["params"])}) for row in rows)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        # a reader never creates the file: a mistyped path must not look like an empty store
        if self.path is not None and not self.path.exists():
            raise StorageError(f"{self.name}: no such result store")
        with self._one_line_errors(), self._engine.connect() as connection:
            if not inspect(connection).has_table(schema.RUNS.name):
                raise StorageError(f"{self.name}: not a result store; it has no table of runs")
            yield connection

    def _prepare(self) -> None:
        if self.path is not None:
            with storage_errors(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._engine.connect() as connection:
            if self.path is not None and connection.execute(text("PRAGMA journal_mode")).scalar() != "wal":
                # readers and a writer do not block each other in this mode, which the file remembers
                connection.execute(text("PRAGMA journal_mode=WAL"))
            schema.create(connection)

    def _place(self, folder: Path) -> str:
        """Seen from the store where it lies below it, so that both can move together."""
        folder = folder.resolve()
        if self.path is not None and folder.is_relative_to(self.path.parent.resolve()):
            return folder.relative_to(self.path.parent.resolve()).as_posix()
        return str(folder)

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise StorageError(f"{self.name}: the database refused: {reason}") from error


def _as_url(location: Path | str) -> URL:
    if isinstance(location, Path) or "://" not in location:
        return URL.create("sqlite", database=str(location))
    try:
        url = make_url(location)
    except SQLAlchemyError as error:
        raise StorageError(f"not a database URL: {error}") from error
    # "postgres://" is what others write; which driver a bare name means depends on SQLAlchemy's version
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgres", "postgresql") else url


def _engine(url: URL, name: str, wait_seconds: float) -> Engine:
    options: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        options = {"timeout": wait_seconds}
    elif url.get_backend_name() == "postgresql" and "options" not in url.query:
        waits = f"-c lock_timeout={int(wait_seconds * 1000)}"
        options = {"connect_timeout": max(2, int(min(wait_seconds, 10))), "options": waits}
    try:
        # no pool: a connection kept open would be shared by forked workers, which no database survives
        return create_engine(url, poolclass=NullPool, connect_args=options)
    except SQLAlchemyError as error:
        raise StorageError(f"{name}: {error}") from error
    except ImportError as error:
        advice = ": pip install 'oodscope[postgres]'" if error.name == "psycopg" else ""
        raise StorageError(f"{name}: the database driver {error.name!r} is not installed{advice}") from error


def _of_measurements(connection: Connection) -> dict[str, ColumnElement[Any]]:
    present = schema.as_present(connection, schema.MEASUREMENTS)
    return {name: present[name] for name in COLUMNS}


def _as_columns(row: Measurement) -> dict[str, Any]:
    return {name: getattr(row, name) for name in COLUMNS} | {"params": canonical_json(row.params)}
