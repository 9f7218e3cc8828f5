"""The page of a generated set: what was asked, how the images were chosen, and a look at them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from oodscope.base.files import write_text
from oodscope.base.hashing import canonical_json
from oodscope.data.generated.files import open_generated
from oodscope.data.generated.record import GeneratedRecord, read_generated
from oodscope.report.page.templating import data_uri, render_page
from oodscope.report.svg import Plot, bars, caption, drawing, segment, x_axis

PAGE = "index.html"
_SHOWN = 96
"""Images on the page, evenly spread over the set; all of them lie beside it."""

_STEP = 0.05
_SAMPLES = {"val": "id", "pool": "c1", "chosen": "c0"}


@dataclass(frozen=True)
class Sight:
    """One image as the page shows it."""

    picture: str
    label: str
    information: float | None


def write_set_page(folder: Path | str) -> Path:
    """Write ``index.html`` beside the recipe of a generated set, from the recipe and the images alone; its path."""
    record, images = read_generated(folder), open_generated(folder)
    rows = np.unique(np.linspace(0, len(images) - 1, min(_SHOWN, len(images))).round().astype(np.int64))
    sights = [
        Sight(
            data_uri(pixels),
            record.class_names[record.files[row].label] if record.files[row].label >= 0 else "",
            record.files[row].information,
        )
        for row, pixels in zip(rows.tolist(), images.images(rows))
    ]
    page = render_page(
        "generated_set.html",
        name=images.name,
        record=record,
        facts=_facts(record),
        figure=_histogram(record.recipe),
        sights=sights,
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


def _histogram(recipe: dict[str, Any]) -> Markup | None:
    """Mutual information of validation images, of the pool and of the chosen images, with the window."""
    counts = {name: np.array(recipe.get("histograms", {}).get(name, []), dtype=np.float64) for name in _SAMPLES}
    if not all(len(each) and each.sum() for each in counts.values()):
        return None
    shares = {name: each / each.sum() for name, each in counts.items()}
    edges = _STEP * np.arange(len(counts["val"]) + 1, dtype=np.float64)
    high = max(float(share.max()) for share in shares.values())
    plot = Plot(560, 200, (0.0, float(edges[-1])), (0.0, high), bottom=34)
    ticks = [(float(edge), f"{edge:.2g}") for edge in edges[:: max(1, len(edges) // 8)]]
    ends = [float(plot.across(min(end, float(edges[-1])))) for end in recipe["window"]]
    marks = [
        *(bars(plot, edges, shares[name], style) for name, style in _SAMPLES.items()),
        *(segment(end, plot.top, end, plot.height - plot.bottom, "ruler") for end in ends),
        x_axis(plot, ticks),
        caption(plot.width - plot.right, plot.height - 4, "mutual information of the ensemble, nats", "end"),
    ]
    return drawing(plot, "Mutual information", marks)
