"""The two tables of a result store: runs, and their measurements."""

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


def create(connection: Connection) -> None:
    """Create what is missing, in statements that hold if another process is creating it too."""
    for table in _METADATA.sorted_tables:
        connection.execute(CreateTable(table, if_not_exists=True))
        for index in table.indexes:
            connection.execute(CreateIndex(index, if_not_exists=True))
    _grow(connection)


def as_present(connection: Connection) -> dict[str, ColumnElement[Any]]:
    """What to select for each field of a measurement; nothing for one that the database is too old to have."""
    present = _present(connection)
    return {name: MEASUREMENTS.c[name] if name in present else null().label(name) for name in COLUMNS}


def _present(connection: Connection) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns(MEASUREMENTS.name)}


def _grow(connection: Connection) -> None:
    """Add the columns that measurements have gained since the database was made; its old rows lack them."""
    present = _present(connection)
    for column in MEASUREMENTS.columns:
        if column.name not in present:
            kind = column.type.compile(connection.dialect)
            connection.execute(text(f"ALTER TABLE {MEASUREMENTS.name} ADD COLUMN {column.name} {kind}"))
