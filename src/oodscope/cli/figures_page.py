"""``docs/figures.md``: every figure, with the command that draws it; written by ``make catalog``."""

import re
import sys
from pathlib import Path

from oodscope.base.files import write_text
from oodscope.report.paper.figure import FIGURES, PaperFigure

_HEAD = """# Figures

Every figure is drawn from stored runs, in the sizes, fonts and colours of a paper:

```bash
oodscope figure NAME RUN... --output figure.pdf      # or .svg, .png
```

A `RUN` is the folder of a run, or one that holds several. Runs that do not fit are refused with what is missing.
Schemes and drawings of the papers, which show nothing of an evaluation, are left out.

Detectors have the names of their papers; `--ids` keeps those of the tables. `--labels near_letters=Letters` gives a
set, a network or a detector a name of yours, `--width` is `column` (3.4 in), `page` (7 in) or a number of inches,
`--font` any family that is installed:

```bash
oodscope figure openood-1 runs/... --labels rmds=Ours --width page --font "DejaVu Serif" --output figure.pdf
```

The pictures below are made by `benchmarks/figure_gallery.py`. Those marked *demo* are of the runs of `oodscope demo`;
all others show made-up numbers: a form, and no result.
"""

DEMO = (
    *("evg-2", "evg-3", "evg-5", "evg-6", "evg-7", "openood-1", "openood-6"),
    *("rtb-4", "rtb-5", "rtb-6", "rtb-8", "rtb-9b"),
)
"""Figures whose picture is of the demo's runs."""


def page() -> str:
    """The page in Markdown: a section per paper, a table of its figures."""
    papers = sorted({figure.paper for figure in FIGURES.own.values()})
    sections = [_section(paper, [each for each in FIGURES.own.values() if each.paper == paper]) for paper in papers]
    return "\n".join([_HEAD, *sections])


def _section(paper: str, figures: list[PaperFigure]) -> str:
    lines = [f"## {paper}", "", "| name | in the paper | needs | command |", "| --- | --- | --- | --- |"]
    figures = sorted(figures, key=lambda figure: [int(part) for part in re.findall(r"\d+", figure.name)])
    for each in figures:
        command = f"`oodscope figure {each.name} runs/... --output {each.name}.pdf`"
        lines.append(f"| `{each.name}` | {each.number or '–'} | {each.needs} | {command} |")
    pictures = [f"![{_words(each)}](images/figures/{each.name}.png)" for each in figures]
    shown = [
        line for each, picture in zip(figures, pictures) for line in (f"`{each.name}`{_mark(each)}", "", picture, "")
    ]
    return "\n".join([*lines, "", *shown])


def _words(figure: PaperFigure) -> str:
    return (
        f"{figure.name}: {figure.number} of {figure.paper}" if figure.number else f"{figure.name}, for {figure.paper}"
    )


def _mark(figure: PaperFigure) -> str:
    return " (*demo*)" if figure.name in DEMO else ""


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), page())
