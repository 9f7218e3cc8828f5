"""``docs/figures.md``: every figure, with the command that draws it; written by ``make catalog``."""

import re
import sys
from pathlib import Path

from oodscope.base.files import write_text
from oodscope.report.paper.figure import FIGURES, PaperFigure

_HEAD = """# Figures

Every figure is drawn from stored runs, in the sizes, fonts and colours of a paper:

```
oodscope figure NAME RUN... --output figure.pdf      # or .svg, .png
```

A `RUN` is the folder of a run, or one that holds several. Runs that do not fit are refused with what is missing.
Schemes and drawings of the papers, which show nothing of an evaluation, are left out.
"""


def page() -> str:
    """The page in Markdown: a section per paper, a table of its figures."""
    papers = sorted({figure.paper for figure in FIGURES.own.values()})
    sections = [_section(paper, [each for each in FIGURES.own.values() if each.paper == paper]) for paper in papers]
    return "\n".join([_HEAD, *sections])


def _section(paper: str, figures: list[PaperFigure]) -> str:
    lines = [f"## {paper}", "", "| name | in the paper | needs | command |", "| --- | --- | --- | --- |"]
    for each in sorted(figures, key=lambda figure: [int(part) for part in re.findall(r"\d+", figure.name)]):
        command = f"`oodscope figure {each.name} runs/... --output {each.name}.pdf`"
        lines.append(f"| `{each.name}` | {each.number or '–'} | {each.needs} | {command} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), page())
