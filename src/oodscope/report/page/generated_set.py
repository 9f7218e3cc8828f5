"""The page of a generated set: what was asked, how the images were chosen, and a look at them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oodscope.base.files import write_text
from oodscope.base.hashing import canonical_json
from oodscope.data.generated.files import open_generated
from oodscope.data.generated.record import GeneratedRecord, read_generated
from oodscope.document.figure import Axis, Figure, Histogram, Line, Position, numbers
from oodscope.report.page.templating import data_uri, render_plotted

PAGE = "index.html"
_SHOWN = 96
"""Images on the page, evenly spread over the set; all of them lie beside it."""

_STEP = 0.05
_SAMPLES: dict[str, tuple[str, Position]] = {
    "val": ("validation images", "id"),
    "pool": ("all generated images", 1),
    "chosen": ("chosen images", 0),
}
"""Names and positions of the samples whose histograms a recipe keeps."""


@dataclass(frozen=True)
class Thumbnail:
    """One image as the page shows it."""

    picture: str
    label: str
    information: float | None


def write_set_page(folder: Path | str) -> Path:
    """Write ``index.html`` beside the recipe of a generated set, from the recipe and the images alone; its path."""
    record, images = read_generated(folder), open_generated(folder)
    rows = np.unique(np.linspace(0, len(images) - 1, min(_SHOWN, len(images))).round().astype(np.int64))
    thumbnails = [
        Thumbnail(
            data_uri(pixels),
            record.class_names[record.files[row].label] if record.files[row].label >= 0 else "",
            record.files[row].information,
        )
        for row, pixels in zip(rows.tolist(), images.images(rows))
    ]
    page = render_plotted(
        "generated_set.html",
        name=images.name,
        record=record,
        facts=_facts(record),
        figure=_histogram(record.recipe),
        thumbnails=thumbnails,
    )
    path = Path(folder) / PAGE
    write_text(path, page)
    return path


def _facts(record: GeneratedRecord) -> dict[str, str]:
    """The recipe as lines of a table; the histograms are drawn instead."""
    return {
        key: value if isinstance(value, str) else canonical_json(value)
        for key, value in record.recipe.items()
        if key != "histograms"
    }


def _histogram(recipe: dict[str, Any]) -> Figure | None:
    """Mutual information of validation images, of the pool and of the chosen images, with the window."""
    counts = {name: np.array(recipe.get("histograms", {}).get(name, []), dtype=np.float64) for name in _SAMPLES}
    if not all(len(each) and each.sum() for each in counts.values()):
        return None
    edges = numbers(_STEP * np.arange(len(counts["val"]) + 1, dtype=np.float64))
    high = max(float((each / each.sum()).max()) for each in counts.values())
    return Figure(
        "information",
        "Mutual information of the ensemble",
        "Each sample as shares; the dotted lines are the ends of the window, "
        f"{recipe['window'][0]:.3g} to {recipe['window'][1]:.3g} nats, by which images were chosen.",
        (
            *(
                Histogram(
                    words,
                    edges,
                    numbers(counts[name] / counts[name].sum()),
                    position,
                    filled=position == "id",
                    hover="{name}: {y:.1%}",
                )
                for name, (words, position) in _SAMPLES.items()
            ),
            *(
                Line("", (end, end), (0.0, high), "ink", dotted=True, weight="thin", listed=False)
                for end in (min(float(end), edges[-1]) for end in recipe["window"])
            ),
        ),
        Axis("mutual information, nats", range=(0.0, edges[-1])),
        Axis("share of the sample", percent=True, from_zero=True),
    )
