"""The figures of Raising the Bar (Mukhoti et al. 2022) that show what generated images are: 4, 5 and 9."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from oodscope.base.errors import DataError
from oodscope.report.paper.figure import PaperFigure
from oodscope.report.paper.generated_networks import auroc_by_network, orderings, reliability_plots
from oodscope.report.paper.mosaic import Picture, mosaic, names_width, size_of
from oodscope.report.paper.studies import only_study
from oodscope.report.paper.style import COLOURS, COLUMN, PAGE, plain_axes
from oodscope.report.render.mpl import draw_heatmap
from oodscope.results.run import Run
from oodscope.runs.generated.figures import confusion
from oodscope.runs.generated.run import GeneratedStudy, Samples
from oodscope.runs.generated.sanity import SetCheck

LABELLED, WRITTEN = 30, 12
"""Most classes whose names, and whose shares, are written into a confusion matrix."""

CLASSES, IMAGES = 10, 8
"""Of figure 9b: as many classes as the paper shows, and images of each."""

_OTHER = "#B5B5B5"


def confusions(runs: Sequence[Run]) -> Figure:
    """Figure 4: the class that images came from against the class that judges see, in percent of the first.

    ID test images, then shifted, then near ones.
    """
    study = only_study(runs)
    sanity = study.sanity
    wanted = [each.name for each in sanity.sets if each.role == "id_test"] + sanity.shifted() + sanity.near()
    checks = [sanity.of(name) for name in wanted if sanity.of(name).confusion]
    if not any(each.name in sanity.generated for each in checks):
        raise DataError("no generated set whose images came from classes that are known")
    classes = len(sanity.class_names)
    names = 0.8 * names_width(sanity.class_names) if classes <= LABELLED else 0.0
    side = (PAGE - names - 0.8) / max(3, len(checks))
    figure = Figure(figsize=(names + side * len(checks) + 0.8, side + 0.6 + names), layout="constrained")
    panels = figure.subplots(1, len(checks), squeeze=False, sharey=True)[0]
    for panel, check in zip(panels, checks):
        image = _confusion(panel, check, sanity.class_names)
    panels[0].set_ylabel("class that the image came from")
    figure.supxlabel("class that the judging ensemble sees", fontsize=8)
    figure.colorbar(image, ax=panels, label="% of the class", shrink=0.6, aspect=20)
    if classes > LABELLED:
        panels[0].set_yticks([])
    return figure


def frechet_distances(runs: Sequence[Run]) -> Figure:
    """Figure 5: Fréchet distance to the training images. Left: shifted sets among the other csid sets; right: near ones
    among real sets of OOD images. Generated sets are hatched."""
    study = only_study(runs)
    known = [each for each in study.sanity.sets if each.frechet is not None]
    sides = {
        "covariate shift": [each for each in known if each.role == "csid"],
        "OOD images": [each for each in known if each.role in ("near", "far")],
    }
    shown = {words: sets for words, sets in sides.items() if any(each.name in study.sanity.generated for each in sets)}
    if not shown:
        raise DataError("no Fréchet distance of a generated set; the judges need features, and the benchmark id_train")
    longest = max(map(len, shown.values()))
    figure = Figure(figsize=(COLUMN * len(shown), 0.85 + 0.19 * longest), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for panel, (words, sets) in zip(panels, shown.items()):
        _bars(panel, {each.name: each.frechet or 0.0 for each in sets}, study.sanity.generated)
        panel.set_title(words)
    figure.supxlabel(f"Fréchet distance to the training images\n(features of {study.sanity.features})", fontsize=8)
    return figure


def perceptual_distances(runs: Sequence[Run]) -> Figure:
    """Figure 9a: mean perceptual distance between images and their shifted versions, at one length of the difference.

    Generated sets are hatched.
    """
    study = only_study(runs)
    found = {each.name: each.perceptual for each in study.sanity.sets if each.perceptual is not None}
    if not set(found) & set(study.sanity.generated):
        raise DataError(
            "no perceptual distance of a generated set; judge it with a perceptual distance and its originals"
        )
    figure = Figure(figsize=(COLUMN, 0.65 + 0.19 * len(found)), layout="constrained")
    panel = figure.add_subplot()
    _bars(panel, found, study.sanity.generated)
    panel.set_xlabel(f"mean {study.sanity.perceptual} distance at equal length")
    return figure


def near_by_class(runs: Sequence[Run]) -> Figure:
    """Figure 9b: near images by the class that they came from; a panel per generated near set."""
    study = only_study(runs)
    kept = {name: study.samples[name] for name in study.sanity.near() if name in study.samples}
    sheets = {name: rows for name, sample in kept.items() if (rows := _by_class(study, sample))}
    if not sheets:
        raise DataError("no images of a generated near set that came from known classes")
    widest = max(len(pictures) for rows in sheets.values() for _, pictures in rows)
    named = [[name for name, _ in rows] for rows in sheets.values()]
    beside = sum(map(names_width, named))
    width = min(0.42 * widest, (PAGE - beside) / len(sheets))
    heights = [size_of(len(rows), widest, rows[0][1][0], False, width) for rows in sheets.values()]
    figure = Figure(figsize=(beside + (width + 0.1) * len(sheets), 0.25 + max(heights)), layout="constrained")
    panels = figure.subplots(1, len(sheets), squeeze=False)[0]
    for panel, (name, rows) in zip(panels, sheets.items()):
        mosaic(panel, rows)
        panel.set_title(name)
    return figure


def _confusion(panel: Axes, check: SetCheck, class_names: Sequence[str]) -> AxesImage:
    classes = len(check.confusion)
    written = ".0f" if classes <= WRITTEN else ""
    image = draw_heatmap(panel, confusion(check, class_names), scale=100, written=written, size=5)
    if classes > WRITTEN:
        panel.grid(visible=False, which="minor")
        # upright names need least space side by side
        panel.tick_params(axis="x", labelrotation=90)
        for label in panel.get_xticklabels():
            label.set(ha="center", va="top", rotation_mode="default")
    if classes > LABELLED:
        panel.set_xticks([])
    panel.set_aspect("equal")
    panel.tick_params(labelsize=6 if classes <= WRITTEN else 5)
    panel.set_title(f"{check.name}\n{100 * (check.preserved or 0.0):.1f} % keep their class")
    return image


def _bars(panel: Axes, values: dict[str, float], generated: Sequence[str]) -> None:
    """Bars from the largest value down, with the number at the end of each."""
    names = sorted(values, key=lambda name: (values[name], name))
    for height, name in enumerate(names):
        colour, hatch = (COLOURS[1], "////") if name in generated else (_OTHER, "")
        panel.barh(height, values[name], 0.72, linewidth=0, facecolor=colour, hatch=hatch, edgecolor="white")
        panel.text(values[name], height, f" {values[name]:.3g}", va="center", fontsize=6)
    panel.set_yticks(range(len(names)), names)
    for label, name in zip(panel.get_yticklabels(), names):
        label.set_fontweight("bold" if name in generated else "normal")
    panel.set_ylim(-0.6, len(names) - 0.4)
    panel.margins(x=0.14)
    plain_axes(panel, "x")


def _by_class(study: GeneratedStudy, sample: Samples) -> list[tuple[str, list[Picture]]]:
    """The first classes that images came from, each with its first images."""
    present = np.unique(sample.source[sample.source >= 0]).tolist()[:CLASSES]
    return [(study.sanity.class_names[each], list(sample.images[sample.source == each][:IMAGES])) for each in present]


PAPER = "Raising the Bar"
FIGURES = (
    PaperFigure(
        "rtb-4", PAPER, "Fig. 4", "one study of generated sets that know the classes of their images", confusions
    ),
    PaperFigure("rtb-5", PAPER, "Fig. 5", "one study of generated sets beside real ones", frechet_distances),
    PaperFigure(
        "rtb-6",
        PAPER,
        "Fig. 6",
        "one study of generated near sets or more, real near or far sets beside them",
        auroc_by_network,
    ),
    PaperFigure("rtb-7", PAPER, "Fig. 7", "one study with a generated shifted set", reliability_plots),
    PaperFigure(
        "rtb-8", PAPER, "Fig. 8", "one study with a generated near set, real ones and three detectors", orderings
    ),
    PaperFigure(
        "rtb-9a",
        PAPER,
        "Fig. 9a",
        "one study with a generated shifted set and a perceptual distance",
        perceptual_distances,
    ),
    PaperFigure("rtb-9b", PAPER, "Fig. 9b", "one study with a generated near set", near_by_class),
)
