"""Images named by a CSV or TSV file with a header."""

import csv
import io
from pathlib import Path

from oodscope.base.errors import DataError, did_you_mean
from oodscope.data.images.files import FileSource, printable
from oodscope.data.images.labels import check_unique, class_names, is_number, read_labels, read_list_text
from oodscope.data.imageset import ImageSet

_KNOWN = ("path", "label", "class")


def open_csv(name: str, path: Path | str, root: Path | str | None = None) -> ImageSet:
    """Images from a table: a column ``path``, and ``label`` or ``class`` or both or neither.

    ``label`` holds numbers, or names; ``class`` holds names, numbered in sorted order unless ``label`` stands
    beside it. Every further column becomes a level of the hierarchy. Commas and quotes in a field are written
    as spreadsheets write them. Fields of a ``.tsv`` file are separated by tabs.

    Parameters
    ----------
    name : of the set.
    path : of the table.
    root : what paths are relative to; by default the folder of the table.
    """
    table = Path(path)
    columns, places = _read(name, table)
    check_unique(columns["path"], places)
    labels, names = None, list[str]()
    if "label" in columns:
        labels, names = read_labels(columns["label"], places)
        if "class" in columns:
            if not all(map(is_number, columns["label"])):
                raise DataError(f"{table}: the columns 'label' and 'class' both hold names; remove one of the two")
            names = class_names(labels, columns["class"], places)
    elif "class" in columns:
        _refuse_empty(columns["class"], places)
        names = sorted(set(columns["class"]))
        code = {cls: number for number, cls in enumerate(names)}
        labels = [code[cls] for cls in columns["class"]]
    levels = {level: column for level, column in columns.items() if level not in _KNOWN}
    source = FileSource(Path(root) if root is not None else table.parent, columns["path"])
    return ImageSet(name, source, labels, names, hierarchy=levels)


def _read(name: str, table: Path) -> tuple[dict[str, list[str]], list[str]]:
    """The columns by name, and where each row stands."""
    # newline="" lets the reader see line ends inside quotes as they are
    text = io.StringIO(read_list_text(name, table), newline="")
    reader = csv.reader(text, delimiter="\t" if table.suffix.lower() == ".tsv" else ",", strict=True)
    rows, places = [], []
    try:
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(table, header)
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            place = f"{table}, line {reader.line_num}"
            if len(row) != len(header):
                raise DataError(f"{place}: {len(row)} fields where the header has {len(header)}")
            rows.append([cell.strip() for cell in row])
            places.append(place)
    except csv.Error as error:
        raise DataError(f"{table}, line {reader.line_num}: {error}") from error
    if not rows:
        raise DataError(f"set {name!r}: {table} lists no image")
    columns = {column: list(cells) for column, cells in zip(header, zip(*rows))}
    # a path keeps its bytes, whatever they are; names go into tables, which hold text
    columns |= {column: [printable(cell) for cell in cells] for column, cells in columns.items() if column != "path"}
    if "" in columns["path"]:
        raise DataError(f"{places[columns['path'].index('')]}: no path")
    return columns, places


def _check_header(table: Path, header: list[str]) -> None:
    if "path" not in header:
        raise DataError(
            f"{table}: no column 'path'.{did_you_mean('path', header)} Its header: {', '.join(header) or 'none'}"
        )
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice is not None:
        raise DataError(f"{table}: two columns are called {twice!r}")


def _refuse_empty(cells: list[str], places: list[str]) -> None:
    if "" in cells:
        raise DataError(f"{places[cells.index('')]}: no class")
