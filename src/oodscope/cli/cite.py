"""``oodscope cite``: what to cite, as BibTeX."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from oodscope import __version__
from oodscope.cli import options
from oodscope.cli.choices import complete


class Style(StrEnum):
    """How citations are printed."""

    BIBTEX = "bibtex"
    TEXT = "text"


def cite(
    names: Annotated[
        list[str],
        typer.Argument(
            autocompletion=complete("detectors", "recipes", "benchmarks", "protocols"),
            help="Names of detectors, recipes, benchmarks or protocols, or folders of runs.",
        ),
    ],
    style: Annotated[
        Style, typer.Option("--format", rich_help_panel=options.OUTPUT, help="Entries for BibTeX, or lines of text.")
    ] = Style.BIBTEX,
) -> None:
    """Print what to cite for names or for runs.

    For a run: this package, its protocols, its benchmark and every detector and recipe that was used.
    """
    from oodscope.document import citations

    asked = [name for word in names for name in (_of_runs(Path(word)) if _is_folder(word) else word.split(","))]
    found = citations.cite(asked)
    if style is Style.TEXT:
        typer.echo("\n".join(map(str, found)))
    else:
        own = [citations.own_bibtex(__version__)] if any(map(_is_folder, names)) else []
        typer.echo("\n\n".join([*own, *(each.bibtex() for each in found)]))


def _is_folder(word: str) -> bool:
    return (("/" in word or word == ".") and Path(word).is_dir()) or (Path(word) / "run.json").is_file()


def _of_runs(folder: Path) -> list[str]:
    """Every name of the catalogue that the runs of a folder used, protocols first."""
    from oodscope.base.catalog import catalog
    from oodscope.cli.command import loading
    from oodscope.document.citations import SECTIONS

    loading()

    from oodscope.results.opening import open_runs

    used: dict[str, None] = {}
    for run in open_runs(folder):
        rows = run.measurements
        parts = [part for detector in rows.distinct("detector") for part in detector.split("+")]
        used |= dict.fromkeys([*run.record.protocols, run.record.benchmark, *rows.distinct("recipe"), *parts])
    return [name for name in used if any(name in catalog(section) for section in SECTIONS)]
