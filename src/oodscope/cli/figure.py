"""``oodscope figure``: a figure as a paper prints it, from stored runs."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.choices import complete


def figure(
    name: Annotated[
        str,
        typer.Argument(
            help="Which figure, such as openood-6; see 'oodscope list figures'.", autocompletion=complete("figures")
        ),
    ],
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold several.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", rich_help_panel=options.OUTPUT, help="File to write; its ending says pdf, svg or png."
        ),
    ],
    metric: Annotated[
        str, typer.Option(help="Metric to show, where the figure has a choice, such as der99_val_correct.")
    ] = "",
    labels: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=WORDS, such as near_letters=Letters; may be given several times. Detectors have the names of "
            "their papers unless --ids is given."
        ),
    ] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Call detectors as the tables do: ebo, not Energy.")] = False,
    width: Annotated[
        str, typer.Option(rich_help_panel=options.OUTPUT, help="column (3.4 in), page (7 in) or a number of inches.")
    ] = "",
    font: Annotated[
        str,
        typer.Option(
            rich_help_panel=options.OUTPUT, help="Font family, such as 'DejaVu Serif'; DejaVu Sans unless given."
        ),
    ] = "",
) -> None:
    """Draw a figure of a paper from your own runs."""
    from oodscope.report.paper.figure import FIGURES
    from oodscope.report.paper.look import FigureLook, check_font, read_labels, read_width
    from oodscope.report.paper.style import check_format, write_figure
    from oodscope.results.opening import open_runs

    wanted = FIGURES[name]
    check_format(output)
    look = FigureLook(read_labels(labels or []), not ids, read_width(width), check_font(font))
    typer.echo(write_figure(wanted.drawn(open_runs(runs), metric, look), output, font))
