"""The README's picture: every detector of a run with its interval, and the OOD images that fool the best ones most.

python benchmarks/readme_picture.py runs/demo/RUN docs/images/first-look.png
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from oodscope.document.methods import method_name
from oodscope.metrics.metric import MEAN
from oodscope.results.gallery import hardest
from oodscope.runs.evaluation.run import Result

ROWS, COLUMNS = 3, 6


def draw(result: Result) -> Figure:
    """Dots with intervals on the left, a wall of images on the right."""
    rows = [r for r in result.measurements.filter(protocol="standard", metric="auroc", group="near") if r.set == MEAN]
    rows = sorted((row for row in rows if row.tuning == "default"), key=lambda row: row.value)
    figure = plt.figure(figsize=(10, 3.6), dpi=150, layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.1))
    axes = left.subplots()
    for place, row in enumerate(rows):
        assert row.low is not None and row.high is not None, "a run without intervals has no picture"
        axes.plot([100 * row.low, 100 * row.high], [place, place], color="#4477aa", linewidth=3, alpha=0.5)
        if row.class_low is not None and row.class_high is not None:
            axes.plot([100 * row.class_low, 100 * row.class_high], [place, place], color="#4477aa", linewidth=1)
        axes.plot(100 * row.value, place, "o", color="#4477aa")
    axes.set_yticks(range(len(rows)), [method_name(row.detector) for row in rows])
    axes.set_xlabel(
        "near-OOD AUROC, %\n95 % intervals: thick, for other images; thin, for other OOD classes", fontsize=8
    )
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    wall(result, [row.detector for row in rows[::-1]][:ROWS], right)
    return figure


def wall(result: Result, detectors: list[str], panel: object) -> None:
    """The near-OOD images with the lowest scores of each detector: taken for in-distribution."""
    assert result.gallery is not None, "a run of arrays has no images"
    (name, *_), gallery = result.scores.sets("near"), result.gallery
    panel.suptitle(f"OOD images ({name}) that look most in-distribution to each detector", fontsize=9)  # type: ignore[attr-defined]
    grid = panel.subplots(ROWS, COLUMNS)  # type: ignore[attr-defined]
    frame = result.scores.frame
    for line, detector in zip(grid, detectors):
        for cell, row in zip(line, hardest(result.scores, detector, "near", name, COLUMNS)):
            sample = str(frame["sample_id"].iloc[row])
            cell.imshow(np.asarray(gallery.pictures[gallery.places[name, sample]]), interpolation="nearest")
            cell.set(xticks=[], yticks=[])
        line[0].set_ylabel(method_name(detector).replace(" ", "\n"), fontsize=8)


def main() -> None:
    """Draw the run that is named first into the file that is named second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    draw(Result.load(given.run)).savefig(given.output)


if __name__ == "__main__":
    main()
