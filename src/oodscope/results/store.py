"""ResultStore: many runs in one database. Runs are appended, never overwritten."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, insert, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from oodscope.base.config import parse
from oodscope.base.errors import StorageError
from oodscope.base.files import storage_errors
from oodscope.base.hashing import canonical_json
from oodscope.results import schema
from oodscope.results.measurement import COLUMNS, Measurement, check_fields
from oodscope.results.measurements import Measurements
from oodscope.results.record import RunRecord
from oodscope.results.result import Result

_WAIT_SECONDS = 60


class ResultStore:
    """Records and measurements of many runs, in an SQLite file or in any database that SQLAlchemy speaks.

    Several processes may add runs at the same time. Scores stay in each run's folder.

    Parameters
    ----------
    location : a path, created with the first run; or a URL, such as ``postgresql+psycopg://host/name``.
    """

    def __init__(self, location: Path | str) -> None:
        self.url = _as_url(location)
        in_file = self.url.get_backend_name() == "sqlite" and self.url.database
        self.path = Path(in_file) if in_file else None
        self.name = str(self.path or self.url.render_as_string(hide_password=True))
        self._engine = _engine(self.url, self.name)

    def __repr__(self) -> str:
        return f"ResultStore({self.name!r})"

    def add(self, result: Result) -> None:
        """Append one run: all of it or, if anything fails, nothing. A run id already there is an error."""
        with self._one_line_errors():
            self._prepare()
            with self._engine.begin() as connection:
                record = result.record
                run = {"id": record.id, "created": record.created, "record": record.model_dump_json()}
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
        query = select(schema.RUNS.c.record).order_by(schema.RUNS.c.created, schema.RUNS.c.id)
        with self._reading() as connection:
            records = connection.execute(query).scalars().all()
        return [parse(RunRecord, json.loads(record), self.name) for record in records]

    def measurements(self, **equals: Any) -> Measurements:
        """Those whose fields equal all the given values, in the order they were added; all by default."""
        check_fields(equals)
        if "params" in equals:
            equals["params"] = canonical_json(equals["params"])
        with self._reading() as connection:
            # a reader does not change the database: what an older one lacks reads as missing
            columns = schema.as_present(connection)
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
        with self._engine.begin() as connection:
            if self.path is not None:
                # readers and a writer do not block each other in this mode, which the file remembers
                connection.execute(text("PRAGMA journal_mode=WAL"))
            schema.create(connection)

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
        return make_url(location)
    except SQLAlchemyError as error:
        raise StorageError(f"not a database URL: {error}") from error


def _engine(url: URL, name: str) -> Engine:
    try:
        if url.get_backend_name() != "sqlite":
            return create_engine(url)
        # no pool: a connection kept open would be shared by forked workers, which SQLite does not survive
        return create_engine(url, poolclass=NullPool, connect_args={"timeout": _WAIT_SECONDS})
    except SQLAlchemyError as error:
        raise StorageError(f"{name}: {error}") from error
    except ImportError as error:
        raise StorageError(f"{name}: the database driver {error.name!r} is not installed") from error


def _as_columns(row: Measurement) -> dict[str, Any]:
    return {name: getattr(row, name) for name in COLUMNS} | {"params": canonical_json(row.params)}
