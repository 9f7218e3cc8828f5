"""What does every figure look like? A small picture of each, for docs/figures.md.

    python benchmarks/figure_gallery.py runs/demo docs/images/figures

Figures that the runs of ``oodscope demo`` suffice for show those; all others show made-up numbers, the form and no
result. The last line names the figures of the first kind, which ``oodscope.cli.figures_page`` repeats. Needs
``oodscope[dev]``.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.report.paper.figure import FIGURES, PaperFigure
from oodscope.report.paper.look import FigureLook
from oodscope.report.paper.style import write_figure
from oodscope.results.opening import open_runs
from oodscope.results.run import Run
from oodscope.runs.generated.table import CIRCULAR

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.report.test_attack_figures import EVIL, GAN
from tests.report.test_attack_figures import run as attack
from tests.report.test_paper_figures import runs as made_up
from tests.runs.generated.generated_world import study

PLAIN = {
    EVIL: "edges",
    **{f"{name}{mark}": f"net{n}" for n, name in enumerate(study().networks, 1) for mark in ("", f" {CIRCULAR}")},
}
"""Names of the made-up runs that a test chose to be hostile."""

WIDTH = 700
"""Pixels of the widest picture."""


def chosen(figure: PaperFigure, demo: Sequence[Run]) -> tuple[list[Run], bool]:
    """The runs to draw a figure from, and whether they are the demo's."""
    others = [run for run in demo if run.kind != "evaluation"]
    runs = [*others, *[run for run in demo if run.kind == "evaluation"][:1]]
    try:
        figure.drawn(runs)
    except DataError:
        pass
    else:
        return runs, True
    if figure.name.startswith("evg"):
        return [attack({"gan": GAN})], False
    return ([study()] if figure.name.startswith("rtb") else list(made_up(figure.name))), False


def draw(figure: PaperFigure, demo: Sequence[Run], folder: Path) -> bool:
    """Write the picture of a figure, in 64 colours; whether it is of the demo."""
    runs, real = chosen(figure, demo)
    path = write_figure(figure.drawn(runs, look=FigureLook(PLAIN)), folder / f"{figure.name}.png")
    with Image.open(path) as picture:
        picture.thumbnail((WIDTH, 2 * WIDTH))
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{figure.name}: {'demo' if real else 'made up'}, {path.stat().st_size / 1000:.0f} kB")
    return real


def main() -> None:
    """Draw every figure from the folder of runs that is named first into the folder that is named second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    demo = sorted(open_runs([given.runs]), key=lambda run: run.record.created)
    real = [name for name, figure in FIGURES.own.items() if draw(figure, demo, given.output)]
    print(f"of the demo ({oods.__version__}): {', '.join(sorted(real))}")


if __name__ == "__main__":
    main()
