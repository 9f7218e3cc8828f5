"""The figures of evaluation via generation (Yoon et al. 2022) that show pictures and transfer: 3 to 7."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oodscope.base.errors import DataError
from oodscope.report.paper.attack_search import search_figure
from oodscope.report.paper.figure import PaperFigure
from oodscope.report.paper.mosaic import Picture, mosaic, names_width, size_of
from oodscope.report.paper.outliers import Outliers, only_set, outlier_sets
from oodscope.report.paper.style import PAGE
from oodscope.report.render.mpl import draw_heatmap
from oodscope.results.run import Run
from oodscope.runs.attack.figures import transfer_matrix
from oodscope.runs.attack.run import FoundImages

WEAK = 3
"""Detectors of figure 3: as many as the paper has, those with the lowest AUROC on the outliers as they are."""

ACROSS = 14
"""Pictures that fit on a page side by side."""

_TITLE = 0.22
"""Inches for a line of words above."""


def worst_of_weak(runs: Sequence[Run]) -> Figure:
    """Figure 3: the worst images of the weakest detectors under each variation, with their ranks; worst on the left."""
    columns = [
        (outliers, name, list(outliers.clean)[-WEAK:][::-1])
        for outliers in outlier_sets(runs)
        for name in outliers.variations
    ]
    return _worst(columns)


def worst_under_generators(runs: Sequence[Run]) -> Figure:
    """Figure 4: the worst images that a generator makes against each detector, with their ranks; worst on the left."""
    sets = outlier_sets(runs)
    columns = [(outliers, name, list(outliers.clean)) for outliers in sets for name in outliers.generators]
    if not columns:
        used = ", ".join(dict.fromkeys(name for outliers in sets for name in outliers.variations))
        raise DataError(f"attacked with {used}, and with no generator")
    return _worst(columns)


def transfer(runs: Sequence[Run]) -> Figure:
    """Figure 5: AUROC of every detector on the images found against every other one; a panel per set and variation."""
    panels = [(outliers, name) for outliers in outlier_sets(runs) for name in outliers.variations]
    count = max(len(outliers.clean) for outliers, _ in panels)
    if count < 2:
        raise DataError("one detector was attacked; transfer is between two or more")
    side = 0.45 + 0.29 * count
    across = max(1, min(len(panels), int(PAGE / side)))
    lines = -(-len(panels) // across)
    figure = Figure(figsize=(min(PAGE, across * side + 0.9), lines * (side + 0.35)), layout="constrained")
    grid = figure.subplots(lines, across, squeeze=False)
    for place, (panel, (outliers, name)) in enumerate(zip(grid.flat, panels)):
        order = list(outliers.clean)
        image = draw_heatmap(
            panel, transfer_matrix(outliers.sources[name], name, order), scale=100, written=".0f", size=5.5
        )
        panel.set_title(f"{outliers.name}, {name}")
        if place % across and list(panels[place - 1][0].clean) == order:
            panel.tick_params(labelleft=False)
    for panel in grid.flat[len(panels) :]:
        panel.axis("off")
    figure.supxlabel("images found against", fontsize=8)
    figure.supylabel("judged by", fontsize=8)
    figure.colorbar(image, ax=grid, label="AUROC, %", shrink=0.8, aspect=30)
    return figure


def same_sources(runs: Sequence[Run]) -> Figure:
    """Figures 6 and 7: what was made of the same source images against each detector, with ranks.

    Not the worst images but those of the first chains, so that detectors can be compared.
    """
    outliers = only_set(outlier_sets(runs))
    varied = [name for name in outliers.variations if name not in outliers.generators]
    if not varied:
        raise DataError(f"attacked with {', '.join(outliers.variations)} only, which makes images of its own")
    columns = [(name, _examples(outliers, name)) for name in varied]
    # as many per variation as fit; the first ones, of the same chains for all
    shown = max(1, min(ACROSS // len(columns), *(len(each.chains) for _, found in columns for each in found.values())))
    names, first = ["source", *outliers.clean], [next(iter(found.values())) for _, found in columns]
    beside = [names, *[[]] * (len(columns) - 1)]
    figure, panels = _strip([each.images[0] for each in first], shown, beside, len(names))
    for number, (panel, (name, found)) in enumerate(zip(panels, columns)):
        sources = first[number].sources
        assert sources is not None, "only variations of source images are shown"
        rows = [(names[0], list(sources[:shown])), *((each, list(one.images[:shown])) for each, one in found.items())]
        words = [[""] * shown, *(_ranks(one, shown) for one in found.values())]
        mosaic(panel, rows, words, named=number == 0)
        panel.set_title(f"{outliers.name}, {name}")
    return figure


def _examples(outliers: Outliers, variation: str) -> dict[str, FoundImages]:
    """By detector, what was made of the first source images."""
    found = {}
    for detector in outliers.clean:
        examples = outliers.search(detector, variation).examples
        if examples is None:
            raise DataError(
                f"the attack on {outliers.name} with {variation} was saved before images of the same sources were "
                "kept; repeat it in another folder"
            )
        found[detector] = examples
    return found


def _worst(columns: Sequence[tuple[Outliers, str, list[str]]]) -> Figure:
    """A panel per set and variation, a row per detector."""
    found = [
        [(detector, outliers.search(detector, name).worst) for detector in chosen] for outliers, name, chosen in columns
    ]
    shown = max(1, min(ACROSS // len(columns), *(len(worst.chains) for rows in found for _, worst in rows)))
    chosen = [names for _, _, names in columns]
    # panels side by side share the names of the first, as long as they are the same
    beside = [names if place == 0 or names != chosen[place - 1] else [] for place, names in enumerate(chosen)]
    figure, panels = _strip([rows[0][1].images[0] for rows in found], shown, beside, max(map(len, chosen)))
    for panel, (outliers, name, _), rows, names in zip(panels, columns, found, beside):
        pictures = [(detector, list(worst.images[:shown])) for detector, worst in rows]
        mosaic(panel, pictures, [_ranks(worst, shown) for _, worst in rows], named=bool(names))
        panel.set_title(f"{outliers.name}, {name}")
    return figure


def _strip(
    pictures: Sequence[Picture], shown: int, names: Sequence[Sequence[str]], rows: int
) -> tuple[Figure, list[Axes]]:
    """Panels side by side for so many pictures each, in as many rows.

    Parameters
    ----------
    names : what stands beside the rows of each panel.
    """
    width = (PAGE - sum(map(names_width, names))) / len(pictures)
    height = max(size_of(rows, shown, each, True, min(width, 0.62 * shown)) for each in pictures)
    figure = Figure(figsize=(PAGE, height + _TITLE), layout="constrained")
    return figure, list(figure.subplots(1, len(pictures), squeeze=False).flat)


def _ranks(found: FoundImages, shown: int) -> list[str]:
    return [f"{rank:,}" for rank in found.ranks[:shown].tolist()]


PAPER = "Evaluation via generation"
_SAME = "one attack on one set of outliers with variations of images, such as affine and color"
FIGURES = (
    PaperFigure(
        "evg-2",
        PAPER,
        "Fig. 2",
        "one attack with affine, color or another variation with named coordinates, made with --landscape",
        search_figure,
    ),
    PaperFigure("evg-3", PAPER, "Fig. 3", "one attack or more, of one set of outliers or several", worst_of_weak),
    PaperFigure("evg-4", PAPER, "Fig. 4", "one attack or more with a generator (gan=FILE)", worst_under_generators),
    PaperFigure("evg-5", PAPER, "Fig. 5", "one attack or more on two detectors or more", transfer),
    PaperFigure("evg-6", PAPER, "Fig. 6", _SAME, same_sources),
    PaperFigure("evg-7", PAPER, "Fig. 7", f"{_SAME}; the paper's second set", same_sources),
)
