"""The tables of a result store: runs, their measurements, and the evaluations that are running now."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    null,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from oodscope.results.measurement import COLUMNS, COUNTS, FLOATS

_METADATA = MetaData()

RUNS = Table(
    "runs",
    _METADATA,
    Column("id", Text, primary_key=True),
    Column("created", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("folder", Text),
)


def _column(name: str) -> Column[Any]:
    if name == "run":
        return Column(name, ForeignKey(RUNS.c.id), nullable=False, index=True)
    if name in FLOATS:
        return Column(name, Double, nullable=name != "value")
    return Column(name, BigInteger) if name in COUNTS else Column(name, Text, nullable=False)


MEASUREMENTS = Table(
    "measurements", _METADATA, Column("row", Integer, primary_key=True), *(_column(name) for name in COLUMNS)
)

RUNNING = Table(
    "running",
    _METADATA,
    Column("id", Text, primary_key=True),
    Column("what", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("process", BigInteger, nullable=False),
    Column("started", Double, nullable=False),
    Column("updated", Double, nullable=False),
    Column("stage", Text, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
)

_CREATION = 0x6F6F6473
"""The number of the lock under which PostgreSQL's tables are made; any number will do that all writers share."""


def create(connection: Connection) -> None:
    """Create what is missing, one process at a time; nothing is locked where nothing is missing.

    ``CREATE TABLE IF NOT EXISTS`` alone is not enough: two processes that both find nothing may collide in
    PostgreSQL's own tables, and two that both miss a column add it twice.
    """
    if not _missing(connection):
        return
    connection.rollback()  # what was looked at is forgotten: the lock comes first, then another look
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _CREATION})
    for table in _METADATA.sorted_tables:
        connection.execute(CreateTable(table, if_not_exists=True))
        for index in table.indexes:
            connection.execute(CreateIndex(index, if_not_exists=True))
    quote = connection.dialect.identifier_preparer.quote
    for column in _missing(connection):
        kind = column.type.compile(connection.dialect)
        connection.execute(text(f"ALTER TABLE {quote(column.table.name)} ADD COLUMN {quote(column.name)} {kind}"))
    connection.commit()


def as_present(connection: Connection, table: Table) -> dict[str, ColumnElement[Any]]:
    """What to select for each column; nothing for one that the database is too old to have."""
    present = _present(connection, table)
    return {column.name: column if column.name in present else null().label(column.name) for column in table.columns}


def _missing(connection: Connection) -> list[Column[Any]]:
    """The columns that the tables have gained since the database was made; all of a table that is not there."""
    missing = []
    for table in _METADATA.sorted_tables:
        present = _present(connection, table)
        missing += [column for column in table.columns if column.name not in present]
    return missing


def _present(connection: Connection, table: Table) -> set[str]:
    look = inspect(connection)
    return {column["name"] for column in look.get_columns(table.name)} if look.has_table(table.name) else set()
